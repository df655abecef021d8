//! What a rule denies to read is shown by no tool, whichever way it is asked for.

use crate::bench::{Bench, call};
use serde_json::{Value, json};
use turnery_engine::{Content, FailureKind};
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

/// A call as the agent makes it: with what the policy hides from that tool.
async fn told(bench: &mut Bench, name: &str, args: Value) -> String {
    bench.cx.hidden = policy().hidden_from(name);
    bench.told(name, args).await
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put(".env", "TOKEN=s3cret\n");
    bench.put("keys/deep/id", "TOKEN of s3cret\n");
    bench.put("notes.txt", "TOKEN in notes\n");
    bench.put("src/a.rs", "TOKEN in code\n");
    bench
}

#[tokio::test]
async fn searches_and_lists_leave_it_out_and_say_so() {
    let mut bench = bench();
    let note = "[what rules keep from being read is left out]";
    for glob in [json!("*"), json!(".env"), json!("{.env,*.rs,id}")] {
        let args = json!({"pattern": "TOKEN", "glob": glob});
        let found = told(&mut bench, "search", args).await;
        assert!(
            !found.contains("s3cret") && !found.contains("notes"),
            "{found}"
        );
    }
    assert_eq!(
        told(&mut bench, "search", json!({"pattern": "TOKEN"})).await,
        format!("src/a.rs:1: TOKEN in code\n{note}")
    );
    assert_eq!(
        told(
            &mut bench,
            "find_files",
            json!({"pattern": "{.env,id,notes.txt}"})
        )
        .await,
        format!("notes.txt\n{note}")
    );
    assert_eq!(
        told(&mut bench, "list_dir", json!({"depth": 9})).await,
        format!("notes.txt  15 B\nsrc/\n  a.rs  14 B\n{note}")
    );
    bench.cx.hidden = Policy::default().hidden_from("search");
    let all = bench
        .told("search", json!({"pattern": "TOKEN", "glob": "*"}))
        .await;
    assert_eq!(all.matches("TOKEN").count(), 3, "{all}");
}

#[tokio::test]
async fn a_call_that_names_it_is_refused_even_without_a_judge() {
    let mut bench = bench();
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
        bench.cx.hidden = policy().hidden_from(name);
        let failure = bench.failure(name, args).await;
        assert_eq!(failure, (FailureKind::Denied, RULE.to_owned()), "{name}");
    }
}

/// A failed edit hints at the nearest text: before a person or a rule was asked.
#[tokio::test]
async fn an_edit_that_fits_nothing_does_not_tell_what_is_there() {
    let mut bench = bench();
    bench.cx.hidden = policy().hidden_from("edit_file");
    let args = json!({"path": ".env", "old_text": "TOKEN=secret", "new_text": "x"});
    let failure = bench.prepare("edit_file", args).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Denied, RULE)
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
async fn without_a_rule_nothing_is_hidden() {
    let bench = bench();
    let read = call("read_file", json!({"path": ".env"}));
    let envelope = bench.toolbox.run(&read, &bench.cx).await;
    let content = envelope.result.unwrap();
    assert_eq!(content, [Content::text("1\tTOKEN=s3cret\n")]);
}
