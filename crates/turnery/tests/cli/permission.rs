//! `turnery run` without a terminal: calls that need permission are denied, with a hint how to allow them.

use crate::home::Home;
use serde_json::{Value, json};

fn write_then_say() -> Value {
    json!([
        {"steps": [{"tool_call": {"name": "write_file", "args": {"path": "new.txt", "content": "x\n"}}}]},
        {"when": {"last_tool_result_contains": "--allow"}, "steps": [{"text": "not allowed"}]},
        {"steps": [{"text": "written"}]},
    ])
}

#[tokio::test]
async fn unallowed_call_is_denied_and_flag_is_named() {
    let home = Home::new();
    let model = home.scripted_model(write_then_say());
    let done = home.run(&["run", "--model", &model, "write it"]).await;
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "not allowed\n"),
        "{done:?}"
    );
    assert!(done.stderr.contains("✗ denied:"), "{done:?}");
    assert!(done.stderr.contains("--allow 'edit"), "{done:?}");
    assert!(!home.project_folder().join("new.txt").exists());
}

// proves: THEME-6, THEME-7
#[tokio::test]
async fn rule_or_mode_allows_and_deny_wins() {
    for (flags, written) in [
        (&["--allow", "edit(*.txt)"][..], true),
        (&["--mode", "edit"], true),
        (&["--allow", "edit(src/**)"], false),
        (&["--mode", "auto", "--deny", "edit(new.txt)"], false),
    ] {
        let home = Home::new();
        let model = home.scripted_model(write_then_say());
        let run = [&["run", "--model", &model, "write it"][..], flags].concat();
        let done = home.run(&run).await;
        assert_eq!(
            home.project_folder().join("new.txt").exists(),
            written,
            "{flags:?}: {done:?}"
        );
        assert_eq!(done.stderr.contains('✗'), !written, "{flags:?}: {done:?}");
    }
}
