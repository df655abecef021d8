//! Skills that run something: tests, builds, linters, the compiler's explanations.

use crate::driver::{Played, play};

fn run(prompt: &str, listing: &str, command: &str, printed: &str, code: i32) -> Played {
    play(prompt, |tool, args| {
        Ok(match tool {
            "list_dir" => listing.into(),
            _ => {
                assert_eq!(args["command"], command);
                format!("{printed}\nexit code: {code}\n")
            }
        })
    })
}

#[test]
fn passing_tests_are_counted() {
    let printed = "test a ... ok\ntest result: ok. 40 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    let played = run(
        "run the tests",
        "Cargo.toml\nsrc/\n",
        "cargo test --no-fail-fast",
        printed,
        0,
    );
    assert_eq!(
        played.text,
        "This is a Rust project (Cargo): I run `cargo test --no-fail-fast`.
The tests pass: 42 passed, 1 skipped (`cargo test --no-fail-fast`)."
    );
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

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
    let played = run(
        "do the tests pass?",
        "Cargo.toml",
        "cargo test --no-fail-fast",
        printed,
        101,
    );
    played.says(&[
        "The tests fail: 2 failed, 3 passed (`cargo test --no-fail-fast`, exit code 101).",
        "First: src/a.rs:14 (a::one)\n```\nassertion `left == right` failed\n  left: 1\n right: 2\n```",
        "Then 1 other:\n- a::two",
    ]);
}

#[test]
fn compile_errors_come_first() {
    let printed = "warning: unused variable: `x`
 --> src/b.rs:3:9
  |
error[E0308]: mismatched types
  --> src/a.rs:10:5
   |
error: could not compile `a` (lib) due to 1 previous error; 1 warning emitted";
    let played = run("build", "Cargo.toml", "cargo build", printed, 101);
    played.says(&[
        "The build fails: 1 error (`cargo build`, exit code 101).",
        "First: src/a.rs:10 (E0308)\n```\nmismatched types\n```",
        "1 warning:\n- src/b.rs:3  unused variable: `x`",
    ]);
    let tests = run(
        "cargo test",
        "Cargo.toml",
        "cargo test --no-fail-fast",
        printed,
        101,
    );
    tests.says(&["The tests were not run, because the code does not compile"]);
}

#[test]
fn other_runners_are_read() {
    let cases = [
        (
            "pyproject.toml",
            "python3 -m pytest -q",
            "tests/test_a.py:5: AssertionError\n=== short test summary info ===\nFAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed, 3 passed in 0.12s",
            "The tests fail: 1 failed, 3 passed",
            "First: tests/test_a.py:5 (test_x)\n```\nassert 1 == 2\n```",
        ),
        (
            "go.mod",
            "go test ./...",
            "--- FAIL: TestSum (0.00s)\n    sum_test.go:12: got 3, want 4\nFAIL\nFAIL\texample.com/sum\t0.002s",
            "The tests fail: 1 failed",
            "First: sum_test.go:12 (TestSum)\n```\ngot 3, want 4\n```",
        ),
        (
            "package.json",
            "npm test",
            "not ok 2 - adds numbers\n# pass 4\n# fail 1",
            "The tests fail: 1 failed, 4 passed",
            "First: adds numbers",
        ),
        (
            "package.json",
            "npm test",
            "TAP version 13\nnot ok 1 - adds\n  ---\n  location: '/p/a.test.js:2:1'\n  error: |-\n    Expected:\n    \n    2 !== 3\n    \n  code: 'ERR_ASSERTION'\n  ...\n# pass 0\n# fail 1",
            "The tests fail: 1 failed, 0 passed",
            "First: /p/a.test.js:2 (adds)\n```\nExpected:\n\n2 !== 3\n```",
        ),
        (
            "Makefile",
            "make test",
            "src/x.c:12:5: error: expected ';'\nmake: *** [x.o] Error 1",
            "does not compile: 1 error",
            "First: src/x.c:12\n```\nexpected ';'\n```",
        ),
    ];
    for (manifest, command, printed, counts, first) in cases {
        run("run the tests", manifest, command, printed, 1).says(&[counts, first]);
    }
}

#[test]
fn what_is_not_recognised_is_shown_as_it_ends() {
    let played = run("run `./check it`", "", "./check it", "one\ntwo", 3);
    played.says(&[
        "The command failed (`./check it`, exit code 3).",
        "It ends with:\n\n```\none\ntwo\n```",
    ]);
}

#[test]
fn a_denied_command_is_told() {
    let played = play("run the tests", |tool, _| match tool {
        "list_dir" => Ok("Cargo.toml".into()),
        _ => Err("the user rejected this call".into()),
    });
    played.says(&["I did not run `cargo test --no-fail-fast`, because it was not allowed: the user rejected this call"]);
}

#[test]
fn an_unknown_project_is_told() {
    let played = play("run the tests", |_, _| Ok("notes.txt".into()));
    assert_eq!(played.names(), ["list_dir"]);
    played.says(&["I do not know how to do that here"]);
}

#[test]
fn an_error_code_is_explained() {
    let played = play("explain E0502", |_, args| {
        assert_eq!(args["command"], "rustc --explain E0502");
        Ok("A variable was borrowed.\nexit code: 0".into())
    });
    assert_eq!(
        played.text,
        "E0502, as rustc explains it:\n\nA variable was borrowed."
    );
}

#[test]
fn a_program_that_is_missing_is_named() {
    for (printed, name) in [
        ("bash: line 1: ruff: command not found", "ruff"),
        ("sh: 1: jest: not found", "jest"),
        ("/usr/bin/python3: No module named pytest", "pytest"),
    ] {
        let played = run("lint", "pyproject.toml", "ruff check .", printed, 127);
        played.says(&[&format!("`{name}` is not installed here")]);
    }
}

#[test]
fn the_reason_of_a_denial_is_said_once() {
    let played = play("run `make it`", |_, _| {
        Err("the call was not allowed: nobody is there to ask; to allow it, add --allow 'x'".into())
    });
    assert_eq!(
        played.text,
        "I did not run `make it`, because it was not allowed: nobody is there to ask; to allow it, add --allow 'x'"
    );
}
