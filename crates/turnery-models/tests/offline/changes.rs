//! Skills that change files or tell of changes: replace, patch, git.

use crate::driver::play;
use serde_json::json;

#[test]
fn a_text_is_replaced_file_by_file() {
    let played = play("replace `old_name` with `new_name` in src", |tool, args| {
        Ok(match tool {
            "search" => {
                assert_eq!(args["path"], "src");
                assert_eq!(args["literal"], true);
                "src/a.rs:1: fn old_name() {\nsrc/a.rs:5:     old_name();\nsrc/b.rs:2: use a::old_name;\n".into()
            }
            _ => "edited".into(),
        })
    });
    let edit = |path: &str| {
        (
            "edit_file".to_owned(),
            json!({"path": path, "old_text": "old_name", "new_text": "new_name", "replace_all": true}),
        )
    };
    assert_eq!(played.calls[1..], [edit("src/a.rs"), edit("src/b.rs")]);
    assert_eq!(played.plans, 3);
    played.says(&[
        "`old_name` is on 3 lines in 2 files.",
        "`old_name` became `new_name` in 2 files:\n- src/a.rs\n- src/b.rs",
    ]);
}

/// What `/init` asks for.
#[test]
fn an_agents_file_says_what_can_be_seen() {
    let prompt = "Write a file named AGENTS.md in the working directory: what an agent needs.\n\nFirst look around.";
    let played = play(prompt, |tool, args| {
        Ok(match tool {
            "list_dir" if args["depth"] == 1 => "Cargo.toml\nREADME.md\nsrc/\n".into(),
            "list_dir" => "Cargo.toml\nREADME.md\nsrc/\n  main.rs\n".into(),
            "read_file" if args["path"] == "README.md" => {
                "1\t# Clock\n2\t\n3\tTells the time.\n".into()
            }
            "read_file" => "1\t[package]\n2\tname = \"clock\"\n".into(),
            _ => "written".into(),
        })
    });
    let (tool, args) = played.calls.last().expect("a call");
    assert_eq!(
        (tool.as_str(), &args["path"]),
        ("write_file", &json!("AGENTS.md"))
    );
    let text = args["content"].as_str().expect("text");
    for part in [
        "Clock is a Rust project (Cargo).\n\n> Tells the time.\n",
        "- Test: `cargo test --no-fail-fast`\n- One test: `cargo test --no-fail-fast NAME`\n",
        "## Layout\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    played.says(&["AGENTS.md says what the README"]);
}

#[test]
fn an_agents_file_that_is_there_is_left_alone() {
    let played = play("create an AGENTS.md", |_, _| {
        Ok("AGENTS.md\nCargo.toml\n".into())
    });
    assert_eq!(played.names(), ["list_dir", "list_dir"]);
    played.says(&["There is an AGENTS.md already"]);
}

#[test]
fn a_longer_word_is_left_alone() {
    let played = play("rename Loop to Run", |tool, _| {
        Ok(match tool {
            "search" => {
                "a.rs:1: let x = Loop::new(spec: LoopSpec);\na.rs:2: struct LoopSpec;\n".into()
            }
            _ => "edited".into(),
        })
    });
    assert_eq!(
        played.calls[1..],
        [(
            "edit_file".to_owned(),
            json!({
                "path": "a.rs",
                "old_text": "let x = Loop::new(spec: LoopSpec);",
                "new_text": "let x = Run::new(spec: LoopSpec);",
                "replace_all": true
            })
        )]
    );
    played.says(&["Left alone, because it is part of a longer word:\n- a.rs:2  struct LoopSpec;"]);
}

#[test]
fn a_denied_edit_stops_the_rest() {
    let played = play("replace a_b with c_d", |tool, _| match tool {
        "search" => Ok("a.rs:1: a_b\nb.rs:1: a_b\n".into()),
        _ => Err("the user rejected this call".into()),
    });
    assert_eq!(played.names(), ["search", "edit_file"]);
    played.says(&[
        "No file was changed.",
        "- a.rs, where I stopped: the user rejected this call",
    ]);
}

const DIFF: &str = "Please apply this:
```diff
diff --git a/src/a.rs b/src/a.rs
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,3 +1,3 @@ fn main
 one
-two
+zwei
 three
@@ -9 +9,2 @@
 nine
+ten
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+hello
+world
```
";

#[test]
fn a_pasted_diff_is_applied() {
    let played = play(DIFF, |_, args| {
        if args["old_text"] == "nine" {
            Err("old_text is not in src/a.rs".into())
        } else {
            Ok("edited".into())
        }
    });
    assert_eq!(
        played.calls,
        [
            (
                "edit_file".to_owned(),
                json!({"path": "src/a.rs", "old_text": "one\ntwo\nthree", "new_text": "one\nzwei\nthree"})
            ),
            (
                "edit_file".to_owned(),
                json!({"path": "src/a.rs", "old_text": "nine", "new_text": "nine\nten"})
            ),
            (
                "write_file".to_owned(),
                json!({"path": "new.txt", "content": "hello\nworld\n"})
            ),
        ]
    );
    played.says(&[
        "I apply 3 changes to 2 files.",
        "2 of 3 changes applied. Not applied:\n- src/a.rs:9: old_text is not in src/a.rs",
    ]);
}

#[test]
fn what_a_patch_cannot_do_is_said() {
    let played = play(
        "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n--- a/y\n+++ b/y\n@@ -3,0 +4 @@\n+new\n",
        |_, _| panic!("no call"),
    );
    played.says(&[
        "- x: the patch removes this file",
        "- y:3: has no line of context",
    ]);
}

const GIT_DIFF: &str = "diff --git a/crates/acp/src/a.rs b/crates/acp/src/a.rs
index 1..2 100644
--- a/crates/acp/src/a.rs
+++ b/crates/acp/src/a.rs
@@ -3 +3,2 @@ impl Loop {
-    old
+    fn on(&self) {
+    --- no header
@@ -20 +22 @@ pub fn finish() {
-    x
+    y
exit code: 0
";

#[test]
fn changes_are_told_by_file_and_function() {
    let status = "## main...origin/main [ahead 1]\n M crates/acp/src/a.rs\n?? crates/acp/notes.txt\nexit code: 0\n";
    let played = play("what changed?", |_, args| {
        let command = args["command"].as_str().unwrap_or_default();
        Ok(if command.starts_with("git status") {
            status
        } else {
            GIT_DIFF
        }
        .into())
    });
    assert_eq!(
        played.text,
        "2 files changed on main, +3 -2 lines:
- crates/acp/src/a.rs (changed, +3 -2): on, finish
- crates/acp/notes.txt (new)

A commit message could be:

```
acp: change on, finish
```"
    );
}

#[test]
fn a_clean_repository_shows_its_latest_commits() {
    let played = play("git status", |_, args| {
        Ok(
            if args["command"]
                .as_str()
                .is_some_and(|command| command.contains("log"))
            {
                "abc first\nexit code: 0".into()
            } else {
                "## main\nexit code: 0".into()
            },
        )
    });
    played.says(&["Nothing is uncommitted on main.", "abc first"]);
}

#[test]
fn outside_a_repository_it_says_so() {
    let printed =
        "fatal: not a git repository (or any of the parent directories): .git\nexit code: 128";
    for result in [Ok(printed.to_owned()), Err(printed.to_owned())] {
        let played = play("what changed", |_, _| result.clone());
        assert_eq!(played.text, "This folder is not in a git repository.");
    }
}

#[test]
fn the_counts_of_a_diff_that_was_cut_are_whole() {
    let played = play("git changes", |_, args| {
        let command = args["command"].as_str().unwrap_or_default();
        Ok(if command.starts_with("git status") {
            "## main\n M a.rs\n M b.rs\nexit code: 0"
        } else {
            assert_eq!(
                command,
                "git diff HEAD --no-color --numstat --patch --unified=0"
            );
            "3\t1\ta.rs\n40\t2\tb.rs\n\ndiff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n[cut]\nexit code: 0"
        }
        .into())
    });
    played.says(&[
        "2 files changed on main, +43 -3 lines:\n- a.rs (changed, +3 -1)\n- b.rs (changed, +40 -2)\n",
    ]);
}

#[test]
fn a_repository_without_a_commit_says_so() {
    for (prompt, printed) in [
        (
            "git log",
            "fatal: your current branch 'main' does not have any commits yet",
        ),
        (
            "recent commits",
            "fatal: ambiguous argument 'HEAD': unknown revision",
        ),
    ] {
        let played = play(prompt, |_, _| Err(format!("{printed}\nexit code: 128")));
        played.says(&["This repository has no commit yet"]);
    }
}
