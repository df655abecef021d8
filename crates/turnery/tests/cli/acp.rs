//! `turnery acp` as a process: stdout, signals and the end of input.

use crate::{
    editor::Editor,
    home::{Home, signal},
};
use rustix::process::Signal;
use serde_json::json;

// proves: TR-5
#[tokio::test]
async fn acp_is_what_an_editor_gets_however_it_asks() {
    let home = Home::new();
    for args in [&["acp"][..], &["--acp"], &[], &["--acp", "--mode", "plan"]] {
        let mut editor = Editor::open(&home, args, &[]);
        let answer = editor.initialize().await;
        assert_eq!(answer["result"]["protocolVersion"], 1, "{args:?}");
        let done = editor.leave().await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[tokio::test]
async fn nothing_is_read_or_made_before_it_is_needed() {
    let home = Home::new();
    let mut editor = Editor::open(&home, &["acp"], &[]);
    editor.initialize().await;
    let made = std::fs::read_dir(home.project().parent().expect("home"))
        .expect("read")
        .count();
    assert_eq!(made, 1, "only the project folder is there");
}

#[tokio::test]
async fn a_signal_ends_it_well() {
    for kind in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let mut editor = Editor::open(&home, &["acp"], &[]);
        editor.initialize().await;
        signal(&editor.child, kind);
        let done = editor.ended().await;
        assert_eq!(done.code, Some(0), "{kind:?}: {done:?}");
    }
}

// proves: UP-37, THEME-19
#[tokio::test]
async fn the_loudest_logs_leave_stdout_to_the_protocol() {
    let home = Home::new();
    let model = home.scripted(json!([{"steps": [{"text": "hi"}]}]));
    let mut editor = Editor::open(
        &home,
        &["acp", "--model", &model],
        &[("TURNERY_LOG", "trace"), ("RUST_LOG", "trace")],
    );
    editor.initialize().await;
    let cwd = home.project();
    let session = editor
        .request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
        .await;
    let id = session["result"]["sessionId"].clone();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
    let answer = editor.request(2, "session/prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

/// TR-3, TR-12: a command has none of our pipes, and what is written to descriptor 1 behind our back goes
/// to stderr. `request` holds every line of stdout to be JSON.
// proves: TR-12, G-8, THEME-19
#[tokio::test]
async fn nothing_gets_at_the_protocols_pipes() {
    let home = Home::new();
    // The parent of a command is its supervisor, and turnery is the parent of that.
    let command = "echo stray; turnery=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); \
                   echo astray > /proc/$turnery/fd/1; \
                   readlink /proc/$$/fd/* > open; head -c 1 | wc -c > eaten";
    let model = home.scripted(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    // A confined command cannot even open the agent's pipes.
    let args = [
        "acp",
        "--model",
        &model,
        "--mode",
        "auto",
        "--sandbox",
        "off",
    ];
    let mut editor = Editor::open(&home, &args, &[]);
    editor.initialize().await;
    let cwd = home.project();
    let session = editor
        .request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
        .await;
    let id = session["result"]["sessionId"].clone();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
    let answer = editor.request(2, "session/prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let left = |name: &str| std::fs::read_to_string(cwd.join(name)).expect("written");
    let open = left("open");
    assert!(open.starts_with("/dev/null\n"), "{open}");
    for pipe in editor.pipes() {
        assert!(
            !open.contains(&pipe),
            "{pipe} is open in the command: {open}"
        );
    }
    assert_eq!(left("eaten").trim(), "0");
    let done = editor.leave().await;
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), "astray\n"));
}

#[tokio::test]
async fn a_broken_configuration_is_told_to_the_editor() {
    let home = Home::new();
    home.write("turnery/config.toml", "modle = \"offline\"\n");
    let mut editor = Editor::open(&home, &["acp"], &[]);
    let answer = editor.initialize().await;
    assert!(answer["error"].is_null(), "{answer}");
    let cwd = home.project();
    let answer = editor
        .request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
        .await;
    let error = answer["error"].to_string();
    assert!(
        error.contains("config.toml:1: unknown key `modle`"),
        "{answer}"
    );
}
