//! Tests that no tool reveals files that a rule denies to read.

use crate::fixture::{ToolFixture, new_call};
use serde_json::{Value, json};
use turnery_engine::{Content, ToolErrorKind};
use turnery_tools::{Mode, Policy};

const RULE: &str =
    "the rule read(**/.env*) denies this: do it another way, or ask the user to change the rule";

fn policy() -> Policy {
    let rules = ["read(**/.env*)", "read(keys)", "search(notes.txt)"];
    let deny = rules
        .iter()
        .map(|rule| rule.parse().expect("it is a rule"))
        .collect();
    Policy::new(Mode::Auto, Vec::new(), deny)
}

/// Makes a call as the agent does, with the files that the policy hides from the tool.
async fn call_text_with_policy(bench: &mut ToolFixture, name: &str, args: Value) -> String {
    bench.cx.hidden = policy().hidden_files_for(name);
    bench.call_text(name, args).await
}

fn fixture() -> ToolFixture {
    let bench = ToolFixture::new();
    bench.write_file(".env", "TOKEN=s3cret\n");
    bench.write_file("keys/deep/id", "TOKEN of s3cret\n");
    bench.write_file("notes.txt", "TOKEN in notes\n");
    bench.write_file("src/a.rs", "TOKEN in code\n");
    bench
}

#[tokio::test]
async fn hidden_files_are_omitted_from_listings_with_notice() {
    let mut bench = fixture();
    let note = "[files that rules deny to read are left out]";
    for glob in [json!("*"), json!(".env"), json!("{.env,*.rs,id}")] {
        let args = json!({"pattern": "TOKEN", "glob": glob});
        let found = call_text_with_policy(&mut bench, "search", args).await;
        assert!(
            !found.contains("s3cret") && !found.contains("notes"),
            "{found}"
        );
    }
    assert_eq!(
        call_text_with_policy(&mut bench, "search", json!({"pattern": "TOKEN"})).await,
        format!("src/a.rs:1: TOKEN in code\n{note}")
    );
    assert_eq!(
        call_text_with_policy(
            &mut bench,
            "find_files",
            json!({"pattern": "{.env,id,notes.txt}"})
        )
        .await,
        format!("notes.txt\n{note}")
    );
    assert_eq!(
        call_text_with_policy(&mut bench, "list_dir", json!({"depth": 9})).await,
        format!("notes.txt  15 B\nsrc/\n  a.rs  14 B\n{note}")
    );
    bench.cx.hidden = Policy::default().hidden_files_for("search");
    let all = bench
        .call_text("search", json!({"pattern": "TOKEN", "glob": "*"}))
        .await;
    assert_eq!(all.matches("TOKEN").count(), 3, "{all}");
}

#[tokio::test]
async fn call_naming_hidden_file_is_refused_without_policy() {
    let mut bench = fixture();
    std::os::unix::fs::symlink(".env", bench.root.join("link")).unwrap();
    for (name, args) in [
        ("read_file", json!({"path": ".env"})),
        ("read_file", json!({"path": "link"})),
        ("search", json!({"pattern": "x", "path": ".env"})),
        ("write_file", json!({"path": ".env.new", "content": "x"})),
        (
            "edit_file",
            json!({"path": "src/../link", "old_text": "TOKEN", "new_text": "x"}),
        ),
    ] {
        bench.cx.hidden = policy().hidden_files_for(name);
        let failure = bench.call_failure(name, args).await;
        assert_eq!(failure, (ToolErrorKind::Denied, RULE.to_owned()), "{name}");
    }
}

/// A failed edit suggests the nearest text, before permission is asked.
#[tokio::test]
async fn failed_edit_does_not_reveal_hidden_text() {
    let mut bench = fixture();
    bench.cx.hidden = policy().hidden_files_for("edit_file");
    let args = json!({"path": ".env", "old_text": "TOKEN=secret", "new_text": "x"});
    let failure = bench.prepare("edit_file", args).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (ToolErrorKind::Denied, RULE)
    );
    let args = json!({"path": "src/a.rs", "old_text": "TOKEN in cod3", "new_text": "x"});
    let failure = bench.prepare("edit_file", args).await.unwrap_err();
    assert!(
        failure.message.contains("TOKEN in code"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn files_below_link_that_a_rule_names_are_hidden() {
    let mut bench = fixture();
    std::os::unix::fs::symlink("src", bench.root.join("link")).unwrap();
    let policy = Policy::new(
        Mode::Auto,
        Vec::new(),
        vec!["read(link/**)".parse().unwrap()],
    );
    for (name, args) in [
        ("search", json!({"pattern": "TOKEN", "path": "link"})),
        ("list_dir", json!({"path": "link"})),
        ("find_files", json!({"pattern": "*.rs", "path": "link"})),
    ] {
        bench.cx.hidden = policy.hidden_files_for(name);
        let text = bench.call_text(name, args).await;
        assert!(!text.contains("a.rs"), "{text}");
        assert!(text.ends_with("left out]"), "{text}");
    }
    bench.cx.hidden = policy.hidden_files_for("edit_file");
    let args = json!({"path": "link/a.rs", "old_text": "TOKEN in cod3", "new_text": "x"});
    let failure = bench.prepare("edit_file", args).await.unwrap_err();
    assert_eq!(failure.kind, ToolErrorKind::Denied);
}

#[tokio::test]
async fn without_a_rule_nothing_is_hidden() {
    let bench = fixture();
    let read = new_call("read_file", json!({"path": ".env"}));
    let envelope = bench.toolbox.run(&read, &bench.cx).await;
    let content = envelope.result.unwrap();
    assert_eq!(content, [Content::text("1\tTOKEN=s3cret\n")]);
}
