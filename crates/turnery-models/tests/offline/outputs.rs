//! Tests outputs of test runners, compilers and git; truncated, rejected and failed results; images.

use crate::driver::{Transcript, play, play_content};
use turnery_engine::{Content, ImageData};

/// Runs the tests in a folder with this one file.
fn play_tests(manifest: &str, printed: &str, code: i32) -> Transcript {
    play("run the tests", |tool, _| match tool {
        "list_dir" => Ok(format!("{manifest}  12 B\nsrc/\n")),
        _ => Err(format!("{printed}\nexit code: {code}")),
    })
}

const CUT: &str = "[9 bytes left out here. To see it, narrow the command: grep for what matters, or print a part with head, tail or sed -n]";

#[test]
fn manifest_selects_the_test_command() {
    for (listing, command) in [
        (
            "Cargo.toml  1 B\nMakefile  1 B\n",
            "cargo test --no-fail-fast",
        ),
        ("package.json  1 B\n", "npm test"),
        ("go.mod  1 B\n", "go test ./..."),
        ("pyproject.toml  1 B\n", "python3 -m pytest -q"),
        ("Makefile  1 B\n", "make test"),
    ] {
        let played = play("run the tests", |tool, _| match tool {
            "list_dir" => Ok(listing.to_owned()),
            _ => Ok("fine\nexit code: 0".to_owned()),
        });
        assert_eq!(played.calls[1].1["command"], command, "{listing}");
        played.assert_says(&[&format!("`{command}` succeeded (exit code 0).")]);
    }
    for listing in ["notes.txt  1 B\n", "Cargo.toml  1 B\npackage.json  1 B\n"] {
        let played = play("run the tests", |_, _| Ok(listing.to_owned()));
        assert_eq!(played.names(), ["list_dir"]);
        played.assert_says(&["is not clear"]);
    }
}

#[test]
fn failing_cargo_tests_are_sorted() {
    let printed = "test a::one ... FAILED
test a::two ... FAILED

failures:

---- a::one stdout ----

thread 'a::one' (12) panicked at src/a.rs:14:9:
assertion `left == right` failed
  left: 1
 right: 2
note: run with RUST_BACKTRACE=1

---- a::two stdout ----
Error: \"no file\"

failures:
    a::one
    a::two

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
error: test failed, to rerun pass `--lib`";
    play_tests("Cargo.toml", printed, 101).assert_says(&[
        "failed (exit code 101).\n```\ntest result: FAILED. 3 passed; 2 failed;",
        "I recognise 2 failures:\n- ---- a::one stdout ----\n  thread 'a::one' (12) panicked at src/a.rs:14:9:\n  assertion `left == right` failed\n    left: 1\n   right: 2\n- ---- a::two stdout ----\n  Error: \"no file\"",
    ]);
}

#[test]
fn compile_errors_are_listed_without_warnings() {
    let printed = "warning: unused variable: `x`
 --> src/b.rs:3:9
  |
error[E0308]: mismatched types
  --> src/a.rs:10:5
   |
error: could not compile `a` (lib) due to 1 previous error; 1 warning emitted";
    let played = play_tests("Cargo.toml", printed, 101);
    played.assert_says(&[
        "I recognise 1 failure:\n- error[E0308]: mismatched types\n    --> src/a.rs:10:5",
    ]);
    assert!(!played.text.contains("src/b.rs"), "{}", played.text);
}

#[test]
fn other_runners_are_read() {
    for (manifest, printed, counts, failure) in [
        (
            "pyproject.toml",
            "FAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed, 3 passed in 0.12s",
            "1 failed, 3 passed in 0.12s",
            "- FAILED tests/test_a.py::test_x - assert 1 == 2",
        ),
        (
            "go.mod",
            "--- FAIL: TestSum (0.00s)\n    sum_test.go:12: got 3, want 4\nFAIL\nFAIL\texample.com/sum\t0.002s",
            "",
            "- --- FAIL: TestSum (0.00s)\n      sum_test.go:12: got 3, want 4",
        ),
        (
            "package.json",
            "not ok 1 - adds\n  ---\n  location: '/p/a.test.js:2:1'\n  error: 'wrong'\n  ...\n# pass 4\n# fail 1",
            "# pass 4\n# fail 1",
            "- not ok 1 - adds\n    location: '/p/a.test.js:2:1'\n    error: 'wrong'",
        ),
        (
            "Makefile",
            "src/x.c:12:5: error: expected ';'\nmake: *** [x.o] Error 1",
            "",
            "- src/x.c:12:5: error: expected ';'",
        ),
    ] {
        play_tests(manifest, printed, 1).assert_says(&[counts, "I recognise 1 failure:", failure]);
    }
}

#[test]
fn truncated_output_is_reported() {
    let printed = format!("test result: ok. 1 passed; 0 failed; 0 ignored\n{CUT}\nmore");
    play_tests("Cargo.toml", &printed, 101).assert_says(&["The middle of its output is missing"]);
}

/// The last line of the command's own output is not an exit code.
#[test]
fn stopped_command_has_no_exit_code() {
    let played = play("run `make it`", |_, _| {
        Err("exit code: 0\nmore\ntimed out after 600 s: it was stopped".to_owned())
    });
    played.assert_says(&["`make it` did not run to its end:", "timed out after 600 s"]);
}

#[test]
fn remarks_behind_the_exit_code_are_kept() {
    let played = play("run `make it`", |_, _| {
        Err("one\nexit code: 2\nthe network is off for commands".to_owned())
    });
    played.assert_says(&[
        "`make it` failed (exit code 2).",
        "one\nthe network is off for commands",
    ]);
}

#[test]
fn change_counts_cover_truncated_lists() {
    let played = play("what changed?", |_, args| {
        let command = args["command"].as_str().expect("a command");
        Ok(match command.starts_with("git status") {
            true => format!("## main...origin/main\n M a.rs\n?? b\n{CUT}\n?? c\nexit code: 0"),
            false => format!(
                "3\t1\ta.rs\n{CUT}\n1\t0\tz.rs\n 900 files changed, 43 insertions(+), 3 deletions(-)\nwarning: CRLF\nexit code: 0"
            ),
        })
    });
    played.assert_says(&[
        "900 files changed, 43 insertions(+), 3 deletions(-)",
        "untracked files or folders: at least 2.",
    ]);
}

#[test]
fn clean_empty_and_missing_repository_is_reported() {
    for (status, diff, expected) in [
        (
            "## main\nexit code: 0",
            "",
            "Nothing is uncommitted (branch: main).",
        ),
        (
            "## No commits yet on main\n?? a\nexit code: 0",
            "fatal: ambiguous argument 'HEAD': unknown revision\nexit code: 128",
            "Nothing was ever committed here.",
        ),
        (
            "fatal: not a git repository\nexit code: 128",
            "",
            "not a git repository",
        ),
    ] {
        let played = play("what changed?", |_, args| {
            let command = args["command"].as_str().expect("a command");
            Err(if command.starts_with("git status") {
                status
            } else {
                diff
            }
            .to_owned())
        });
        played.assert_says(&[expected]);
    }
}

#[test]
fn search_notice_makes_the_count_a_lower_bound() {
    for notice in [
        "[the first 1 matches; narrow the pattern, path or glob]",
        "[2 files could not be read]",
        "[files that rules deny to read are left out]",
    ] {
        let found = format!("a.rs:1: needle\n{notice}");
        let played = play("search for needle", |_, _| Ok(found.clone()));
        played.assert_says(&["on at least 1 line in at least 1 file", notice]);
        let played = play("replace `needle` with `pin`", |_, _| Ok(found.clone()));
        assert_eq!(played.names(), ["search"]);
        played.assert_says(&["Nothing was changed", notice]);
    }
}

#[test]
fn denied_edit_stops_the_rest() {
    let mut edits = 0;
    let played = play("replace `a_b` with `c_d`", |tool, _| {
        edits += usize::from(tool == "edit_file");
        match (tool, edits) {
            ("search", _) => Ok("a.rs:1: a_b\nb.rs:1: a_b\nc.rs:1: a_b\n".to_owned()),
            (_, 1) => Ok("Edited a.rs:\n@@ -1 +1 @@\n-a_b\n+c_d\n".to_owned()),
            _ => Err("the user rejected this call".to_owned()),
        }
    });
    assert_eq!(played.names(), ["search", "edit_file", "edit_file"]);
    played.assert_says(&[
        "Stopped at b.rs: the user rejected this call",
        "Changed before: 1\n- a.rs",
    ]);
}

#[test]
fn denied_command_is_reported() {
    let played = play("run `make it`", |_, _| {
        Err("the user rejected this call".to_owned())
    });
    played.assert_says(&["`make it` did not run to its end: the user rejected this call"]);
}

/// The help lists only commands that work.
#[test]
fn every_command_in_the_help_works() {
    let help = play("help", |tool, _| panic!("{tool}"));
    let lines = help.text.lines().filter_map(|line| line.strip_prefix("- "));
    let prompts: Vec<&str> = lines.flat_map(|line| line.split(" / ")).collect();
    assert_eq!(prompts.len(), 13, "{prompts:?}");
    for prompt in prompts {
        let prompt = match prompt.split_once(" (") {
            Some((prompt, _)) => {
                format!("{prompt}\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-error: x\n+y\n")
            }
            None => prompt.to_owned(),
        };
        let played = play(&prompt, |_, _| Err("no".to_owned()));
        assert!(!played.text.starts_with("I work offline"), "{prompt}");
    }
}

/// Editors talk to this model before anything is configured, and the agent advertises image support.
#[test]
fn image_is_accepted_and_reported_as_unseen() {
    let image = ImageData {
        mime_type: "image/png".to_owned(),
        base64: "iVBORw0KGgo=".into(),
    };
    let prompt = vec![Content::text("hello"), Content::Image(image)];
    let played = play_content(prompt, &[], |tool, _| panic!("{tool}"));
    played.assert_says(&["I cannot see pictures", "I work offline, without a model"]);
    let words = play("hello", |tool, _| panic!("{tool}"));
    assert!(!words.text.contains("pictures"), "{}", words.text);
}

#[test]
fn unavailable_tool_is_not_called() {
    let prompt = vec![Content::text("list the TODOs")];
    let played = play_content(prompt, &["read_file"], |tool, _| panic!("{tool}"));
    assert_eq!(
        played.text,
        "This session has no tool `search`, which I need."
    );
}

/// Pasted text without an instruction triggers no search, and a long line must not hang.
#[test]
fn endless_line_is_no_command() {
    let endless = format!("where is `Name` defined? {}", "and so on ".repeat(400_000));
    let played = play(&endless, |tool, _| panic!("{tool}"));
    played.assert_says(&["I work offline, without a model"]);
}
