//! `turnery run`: what is not allowed is denied when nobody can be asked, and the way to allow it is named.

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
async fn a_call_that_nobody_allowed_is_denied_and_the_flag_is_named() {
    let home = Home::new();
    let model = home.scripted(write_then_say());
    let done = home.run(&["run", "--model", &model, "write it"]).await;
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "not allowed\n"),
        "{done:?}"
    );
    assert!(done.stderr.contains("✗ denied:"), "{done:?}");
    assert!(done.stderr.contains("--allow 'edit"), "{done:?}");
    assert!(!home.project().join("new.txt").exists());
}

#[tokio::test]
async fn a_rule_allows_a_mode_allows_and_a_deny_wins() {
    for (flags, written) in [
        (&["--allow", "edit(*.txt)"][..], true),
        (&["--mode", "edit"], true),
        (&["--allow", "edit(src/**)"], false),
        (&["--mode", "auto", "--deny", "edit(new.txt)"], false),
    ] {
        let home = Home::new();
        let model = home.scripted(write_then_say());
        let run = [&["run", "--model", &model, "write it"][..], flags].concat();
        let done = home.run(&run).await;
        assert_eq!(
            home.project().join("new.txt").exists(),
            written,
            "{flags:?}: {done:?}"
        );
        assert_eq!(done.stderr.contains('✗'), !written, "{flags:?}: {done:?}");
    }
}
