//! Slash commands from Markdown files, for scripts and editors; and a process that is killed during a call.

use crate::{editor::Editor, home::Home};
use serde_json::json;

/// `turnery run "/name args"`: the project's and the user's; what is no command is said as it is.
#[tokio::test]
async fn run_expands_slash_command() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "Look over src/a.rs."}, "steps": [{"text": "project"}]},
        {"when": {"last_user_contains": "Greet the world"}, "steps": [{"text": "user"}]},
        {"when": {"last_user_contains": "AGENTS.md"}, "steps": [{"text": "init"}]},
        {"when": {"last_user_contains": "/usr/bin"}, "steps": [{"text": "as it is"}]},
    ]));
    home.write("project/.turnery/commands/review.md", "Look over $1.");
    home.write("turnery/commands/greet.md", "Greet $ARGUMENTS");
    for (prompt, expected) in [
        ("/review src/a.rs", "project\n"),
        ("/greet the world", "user\n"),
        ("/init", "init\n"),
        ("/usr/bin", "as it is\n"),
    ] {
        let done = home.run(&["run", "--model", &model, prompt]).await;
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), expected),
            "{prompt}"
        );
    }
}

/// Without a model, `/init` reports that it needs one and writes nothing.
#[tokio::test]
async fn init_without_a_model_writes_nothing() {
    let home = Home::new();
    let args = ["run", "--model", "offline", "--mode", "edit", "/init"];
    let done = home.run(&args).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.starts_with("I work offline, without a model"),
        "{done:?}"
    );
    assert!(!home.project_folder().join("AGENTS.md").exists());
}

/// An editor is offered them, those of each root; of two with one name the earlier root's counts.
// proves: DIR-6, THEME-17
#[tokio::test]
async fn editor_gets_commands_of_each_root() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "hi"}]}]));
    home.write("project/.turnery/commands/both.md", "the first");
    home.write("more/.turnery/commands/both.md", "the second");
    home.write("more/.turnery/commands/other.md", "another");
    let mut editor = Editor::open(&home, &["acp", "--model", &model], &[]);
    editor.initialize().await;
    let more = home.project_folder().with_file_name("more");
    let params =
        json!({"cwd": home.project_folder(), "mcpServers": [], "additionalDirectories": [more]});
    editor.send_request(1, "session/new", params).await;
    let offer = editor
        .wait(|message| message["params"]["update"]["sessionUpdate"] == "available_commands_update")
        .await;
    let offered = offer["params"]["update"]["availableCommands"].as_array();
    let offered: Vec<(&str, &str)> = offered
        .expect("a list")
        .iter()
        .map(|it| {
            (
                it["name"].as_str().expect("a name"),
                it["description"].as_str().expect("text"),
            )
        })
        .collect();
    for expected in [
        ("both", "the first (project)"),
        ("other", "another (project)"),
        ("init", "Write an AGENTS.md for this project"),
    ] {
        assert!(offered.contains(&expected), "{offered:?}");
    }
    editor.close_input().await;
}

/// LOAD-7: the process is killed during a call. Another process loads the session; the call has failed, nothing
/// appears to be running, and the session continues.
// proves: LOAD-7, THEME-2, THEME-3
#[tokio::test]
async fn call_cut_short_by_kill_is_loaded_as_failed() {
    let home = Home::new();
    let command = "mkfifo never; echo rea''dy; read -r _ < never";
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "first"}, "steps": [{"text": "one"}]},
        {"when": {"last_user_contains": "after"}, "steps": [{"text": "three"}]},
        {"when": {"last_user_contains": "go"}, "steps": [
            {"tool_call": {"name": "shell", "args": {"command": command}}},
        ]},
    ]));
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let prompt =
        |id: &str, text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    editor
        .request(2, "session/prompt", prompt(&id, "first"))
        .await;
    editor
        .send_request(3, "session/prompt", prompt(&id, "go"))
        .await;
    editor
        .wait(|message| {
            let update = &message["params"]["update"];
            update["content"].to_string().contains("ready")
        })
        .await;
    editor.killed().await;

    let mut editor = Editor::open(&home, &args, &[]);
    editor.initialize().await;
    let at = json!({"sessionId": id, "cwd": home.project_folder(), "mcpServers": []});
    let loaded = editor.request(1, "session/load", at).await;
    assert!(loaded.get("error").is_none(), "{loaded}");
    let updates: Vec<_> = editor
        .said
        .iter()
        .map(|it| &it["params"]["update"])
        .collect();
    let texts: Vec<_> = updates
        .iter()
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    // The interrupted part is not part of the conversation.
    assert_eq!(texts[..2], ["first", "one"], "{texts:?}");
    for update in updates.iter().filter(|it| it["toolCallId"].is_string()) {
        assert_eq!(update["status"], "failed", "{update}");
    }
    let answer = editor
        .request(4, "session/prompt", prompt(&id, "after"))
        .await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    editor.close_input().await;
}
