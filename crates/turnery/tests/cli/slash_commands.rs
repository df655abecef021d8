//! Tests slash commands, built-in and from Markdown files, in `turnery run` and in an editor.

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
    home.write_file("project/.turnery/commands/review.md", "Look over $1.");
    home.write_file("turnery/commands/greet.md", "Greet $ARGUMENTS");
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
    home.write_file("project/.turnery/commands/both.md", "the first");
    home.write_file("more/.turnery/commands/both.md", "the second");
    home.write_file("more/.turnery/commands/other.md", "another");
    let mut editor = Editor::spawn(&home, &["acp", "--model", &model], &[]);
    editor.initialize().await;
    let more = home.project_folder().with_file_name("more");
    let params =
        json!({"cwd": home.project_folder(), "mcpServers": [], "additionalDirectories": [more]});
    editor.send_request(1, "session/new", params).await;
    let offer = editor
        .wait_for(|message| {
            message["params"]["update"]["sessionUpdate"] == "available_commands_update"
        })
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
