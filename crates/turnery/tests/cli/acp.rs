//! `turnery acp` as a process: stdout, signals and the end of input.

use crate::{
    editor::Editor,
    home::{Home, send_signal},
    inspection::may_inspect_all,
};
use rustix::process::Signal;
use serde_json::json;

// proves: TR-5
#[tokio::test]
async fn all_ways_to_start_acp_serve_an_editor() {
    let home = Home::new();
    for args in [&["acp"][..], &["--acp"], &[], &["--acp", "--mode", "plan"]] {
        let mut editor = Editor::spawn(&home, args, &[]);
        let answer = editor.initialize().await;
        assert_eq!(answer["result"]["protocolVersion"], 1, "{args:?}");
        let done = editor.close_input().await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[tokio::test]
async fn startup_creates_no_files() {
    let home = Home::new();
    let mut editor = Editor::spawn(&home, &["acp"], &[]);
    editor.initialize().await;
    let made = std::fs::read_dir(home.project_folder().parent().expect("home"))
        .expect("read")
        .count();
    assert_eq!(made, 1, "only the project folder is there");
}

#[tokio::test]
async fn signal_ends_acp_cleanly() {
    for kind in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let mut editor = Editor::spawn(&home, &["acp"], &[]);
        editor.initialize().await;
        send_signal(&editor.child, kind);
        let done = editor.wait_for_exit().await;
        assert_eq!(done.code, Some(0), "{kind:?}: {done:?}");
    }
}

// proves: UP-37, THEME-19
#[tokio::test]
async fn trace_logs_stay_off_stdout() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "hi"}]}]));
    let mut editor = Editor::spawn(
        &home,
        &["acp", "--model", &model],
        &[("TURNERY_LOG", "trace"), ("RUST_LOG", "trace")],
    );
    editor.initialize().await;
    let cwd = home.project_folder();
    let id = editor.new_session(&cwd).await;
    let answer = editor.prompt(2, &id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

/// TR-3, TR-12: a command inherits none of the agent's pipes, and stray writes to descriptor 1 go to stderr.
/// `request` checks that every line of stdout is JSON.
// proves: TR-12, G-8, THEME-19
#[tokio::test]
async fn commands_cannot_reach_protocol_pipes() {
    let home = Home::new();
    // The parent of a command is its supervisor, and turnery is the parent of that.
    let command = "echo stray; turnery=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); \
                   echo astray > /proc/$turnery/fd/1; \
                   readlink /proc/$$/fd/* > open; head -c 1 | wc -c > eaten";
    let model = home.scripted_model(json!([
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
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let cwd = home.project_folder();
    let id = editor.new_session(&cwd).await;
    let answer = editor.prompt(2, &id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let left = |name: &str| std::fs::read_to_string(cwd.join(name)).expect("written");
    let open = left("open");
    assert!(open.starts_with("/dev/null\n"), "{open}");
    for pipe in editor.pipe_names() {
        assert!(
            !open.contains(&pipe),
            "{pipe} is open in the command: {open}"
        );
    }
    assert_eq!(left("eaten").trim(), "0");
    let done = editor.close_input().await;
    let stderr = if may_inspect_all() { "astray\n" } else { "" };
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), stderr));
}

#[tokio::test]
async fn broken_configuration_is_reported_to_editor() {
    let home = Home::new();
    home.write_file("turnery/config.toml", "modle = \"offline\"\n");
    let mut editor = Editor::spawn(&home, &["acp"], &[]);
    let answer = editor.initialize().await;
    assert!(answer["error"].is_null(), "{answer}");
    let cwd = home.project_folder();
    let answer = editor
        .request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
        .await;
    let error = answer["error"].to_string();
    assert!(
        error.contains("config.toml:1: unknown key `modle`"),
        "{answer}"
    );
}
