//! Tests of the output and the exit of commands, with real processes.

use super::test_support::{
    ShellFixture, envelope_text, printed_output, unique_marker, wait_until_gone,
};
use crate::{Access, Shell, Tool};
use serde_json::json;
use turnery_engine::{Artifact, CallKind, Content, ToolEnvelope, ToolErrorKind};

async fn run(command: &str) -> ToolEnvelope {
    ShellFixture::new()
        .run(json!({ "command": command }))
        .await
        .0
}

fn failure_kind(envelope: &ToolEnvelope) -> Option<ToolErrorKind> {
    envelope.result.as_ref().err().map(|failure| failure.kind)
}

#[tokio::test]
async fn stdout_and_stderr_keep_their_order() {
    let (envelope, reports) = ShellFixture::new()
        .run(json!({ "command": "echo a; echo b >&2; echo c" }))
        .await;
    assert_eq!(envelope_text(&envelope), "a\nb\nc\nexit code: 0");
    assert_eq!(printed_output(&reports), "a\nb\nc\n");
    assert_eq!(envelope.value, Some(json!({ "exit_code": 0 })));
    assert_eq!(failure_kind(&envelope), None);
}

#[tokio::test]
async fn nonzero_exit_code_is_failure_with_same_text() {
    let envelope = run("echo x; exit 3").await;
    assert_eq!(envelope_text(&envelope), "x\nexit code: 3");
    assert_eq!(failure_kind(&envelope), Some(ToolErrorKind::ExecutionError));
    assert_eq!(envelope.value, Some(json!({ "exit_code": 3 })));
    assert_eq!(
        envelope_text(&run("printf x; kill -9 $$").await),
        "x\nkilled by signal: 9"
    );
    assert_eq!(
        envelope_text(&run("no-such-program-here").await)
            .lines()
            .last(),
        Some("exit code: 127")
    );
}

/// The user allowed a line that also does other things, by a rule or when asked: then the hook may run.
#[tokio::test]
async fn hook_does_not_run_for_read_only_git() {
    for (command, runs) in [("git status", false), ("git status; touch x", true)] {
        let trial = ShellFixture::new();
        // The trial's folder is gone when the command has run.
        let outside = tempfile::tempdir().unwrap();
        let ran = outside.path().join("ran");
        let prepare = "git init -q . && echo x > a && git add a && touch -d '1 hour ago' a && \
                       printf '#!/bin/sh\\n: > \"%s\"\\n' \"$0\" > .git/hooks/post-index-change && \
                       chmod +x .git/hooks/post-index-change";
        let prepared = std::process::Command::new("bash")
            .args(["-c", prepare])
            .arg(&ran)
            .current_dir(trial.folder())
            .status()
            .unwrap();
        assert!(prepared.success());
        let (envelope, _) = trial.run(json!({ "command": command })).await;
        assert_eq!(ran.exists(), runs, "{command}: {envelope:?}");
    }
}

#[tokio::test]
async fn stdin_is_empty() {
    assert_eq!(
        envelope_text(&run("cat; read x; echo $?").await),
        "1\nexit code: 0"
    );
}

/// Stdin is empty, output goes to one pipe, and no open file is inherited (TR-12).
// proves: TR-12
#[tokio::test]
async fn no_descriptors_are_inherited() {
    let trial = ShellFixture::new();
    let path = trial.folder().canonicalize().unwrap().join("open");
    let open = std::fs::File::create(&path).unwrap();
    let (envelope, _) = trial
        .run(json!({ "command": "for f in /proc/$$/fd/*; do echo ${f##*/} $(readlink $f); done" }))
        .await;
    drop(open);
    let text = envelope_text(&envelope);
    let target = |number: &str| {
        let mut words = text.lines().filter_map(|line| line.split_once(' '));
        words.find(|(found, _)| *found == number).unwrap().1
    };
    assert_eq!(target("0"), "/dev/null");
    assert!(target("1").starts_with("pipe:"), "{text}");
    assert_eq!(target("2"), target("1"));
    assert!(!text.contains(path.to_str().unwrap()), "{text}");
    for ours in ["/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"] {
        let ours = std::fs::read_link(ours).unwrap();
        assert_ne!(ours.to_str(), Some(target("1")));
    }
}

#[tokio::test]
async fn binary_and_coloured_output_becomes_plain_text() {
    assert_eq!(
        envelope_text(&run(r"printf '\377\000\001a\033[31mred\033[0m\r\nb'").await),
        "\u{fffd}ared\nb\nexit code: 0"
    );
}

#[tokio::test]
async fn environment_disables_pager_and_colour_and_hides_keys() {
    let mut trial = ShellFixture::new();
    // Cargo sets both for tests.
    trial.shell = Shell::hiding(["cargo_pkg_name", "*_MANIFEST_DIR"]);
    let command = "echo \"[$CARGO_PKG_NAME$CARGO_MANIFEST_DIR] $TERM $PAGER $GIT_PAGER $NO_COLOR $GIT_TERMINAL_PROMPT\"; echo ${PATH:+path}";
    let (envelope, _) = trial.run(json!({ "command": command })).await;
    assert_eq!(
        envelope_text(&envelope),
        "[] dumb cat cat 1 0\npath\nexit code: 0"
    );
}

#[tokio::test]
async fn command_runs_in_given_cwd() {
    let trial = ShellFixture::new();
    let inner = trial.folder().canonicalize().unwrap().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let expected = format!("{}\nexit code: 0", inner.display());
    let (envelope, _) = trial.run(json!({ "command": "pwd", "cwd": "inner" })).await;
    assert_eq!(envelope_text(&envelope), expected);
    let (envelope, _) = ShellFixture::new()
        .run(json!({ "command": "pwd", "cwd": "missing" }))
        .await;
    assert_eq!(failure_kind(&envelope), Some(ToolErrorKind::ExecutionError));
    assert!(envelope_text(&envelope).starts_with("could not start a shell in "));
}

#[tokio::test]
async fn prepared_call_shows_command_and_cwd() {
    let trial = ShellFixture::new();
    let args = json!({ "command": "cargo test" });
    let prepared = trial.shell.prepare(&args, &trial.cx).await.unwrap();
    let cwd = trial.cx.workspace.cwd().to_owned();
    assert_eq!(
        prepared.detail,
        trial.shell.describe(&args, &trial.cx.workspace)
    );
    assert_eq!(prepared.detail.title, "cargo test");
    assert_eq!(prepared.detail.kind, CallKind::Execute);
    assert_eq!(prepared.detail.locations, []);
    assert_eq!(prepared.detail.artifacts, []);
    let elsewhere = json!({ "command": "cargo test", "cwd": "inner" });
    let described = trial.shell.describe(&elsewhere, &trial.cx.workspace);
    assert_eq!(described.locations, []);
    let text = format!("In {}/inner:\n```sh\ncargo test\n```", cwd.display());
    assert_eq!(
        described.artifacts,
        [Artifact::Content(Content::text(text))]
    );
    let command = "cargo test".to_owned();
    assert_eq!(prepared.access, Access::Run { command, cwd });
    for command in ["", "  \n", "a\0b"] {
        let args = json!({ "command": command });
        let failure = trial.shell.prepare(&args, &trial.cx).await.unwrap_err();
        assert_eq!(failure.kind, ToolErrorKind::Validation);
    }
}

#[tokio::test]
async fn background_processes_end_with_command() {
    let mark = unique_marker();
    let envelope = run(&format!(
        "sleep {mark} & (sleep {mark} >/dev/null 2>&1 </dev/null &) ; echo done"
    ))
    .await;
    assert_eq!(envelope_text(&envelope), "done\nexit code: 0");
    assert!(wait_until_gone(&mark));
}

/// Without a supervisor, as here, a process that left the group is found by its inherited tag.
#[tokio::test]
async fn process_outside_the_group_ends_with_the_command() {
    let mark = unique_marker();
    let envelope = run(&format!(
        "setsid sh -c 'echo up > flag; exec sleep {mark}' & until [ -s flag ]; do :; done; echo done"
    ))
    .await;
    assert_eq!(envelope_text(&envelope), "done\nexit code: 0");
    assert!(wait_until_gone(&mark));
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn gigabyte_of_output_is_bounded() {
    let before = peak_memory_kib();
    let (envelope, reports) = ShellFixture::new()
        .run(json!({ "command": "yes | head -c 1000000000" }))
        .await;
    let text = envelope_text(&envelope);
    assert!(text.starts_with("y\ny\n") && text.ends_with("y\nexit code: 0"));
    assert!(text.contains("bytes left out here"));
    assert!(text.len() < 32 * 1024, "{}", text.len());
    assert!(printed_output(&reports).len() < 1200 * 1024);
    let grown = peak_memory_kib() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}
