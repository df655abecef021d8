//! Local tests: what commands print and how they end, with real processes.

use super::{
    Shell,
    trial::{Trial, is_gone, mark, printed, text},
};
use crate::{Access, Tool};
use serde_json::json;
use turnery_engine::{Artifact, CallKind, Content, FailureKind, ToolEnvelope};

async fn run(command: &str) -> ToolEnvelope {
    Trial::new().run(json!({ "command": command })).await.0
}

fn kind(envelope: &ToolEnvelope) -> Option<FailureKind> {
    envelope.result.as_ref().err().map(|failure| failure.kind)
}

#[tokio::test]
async fn output_and_errors_come_in_the_order_they_were_written() {
    let (envelope, reports) = Trial::new()
        .run(json!({ "command": "echo a; echo b >&2; echo c" }))
        .await;
    assert_eq!(text(&envelope), "a\nb\nc\nexit code: 0");
    assert_eq!(printed(&reports), "a\nb\nc\n");
    assert_eq!(envelope.value, Some(json!({ "exit_code": 0 })));
    assert_eq!(kind(&envelope), None);
}

#[tokio::test]
async fn another_exit_code_is_a_failure_with_the_same_text() {
    let envelope = run("echo x; exit 3").await;
    assert_eq!(text(&envelope), "x\nexit code: 3");
    assert_eq!(kind(&envelope), Some(FailureKind::ExecutionError));
    assert_eq!(envelope.value, Some(json!({ "exit_code": 3 })));
    assert_eq!(
        text(&run("printf x; kill -9 $$").await),
        "x\nkilled by signal: 9"
    );
    assert_eq!(
        text(&run("no-such-program-here").await).lines().last(),
        Some("exit code: 127")
    );
}

/// A line that also does other things was asked about or allowed by a rule: there the hook is the person's.
#[tokio::test]
async fn a_hook_does_not_run_for_git_that_only_reads() {
    for (command, runs) in [("git status", false), ("git status; touch x", true)] {
        let trial = Trial::new();
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
async fn a_command_that_reads_finds_nothing_to_read() {
    assert_eq!(text(&run("cat; read x; echo $?").await), "1\nexit code: 0");
}

/// TR-12: an empty input, one pipe for all output, and no file that we have open.
// proves: TR-12
#[tokio::test]
async fn none_of_our_descriptors_is_inherited() {
    let trial = Trial::new();
    let path = trial.folder().canonicalize().unwrap().join("open");
    let open = std::fs::File::create(&path).unwrap();
    let (envelope, _) = trial
        .run(json!({ "command": "for f in /proc/$$/fd/*; do echo ${f##*/} $(readlink $f); done" }))
        .await;
    drop(open);
    let text = text(&envelope);
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
async fn binary_and_coloured_output_becomes_text() {
    assert_eq!(
        text(&run(r"printf '\377\000\001a\033[31mred\033[0m\r\nb'").await),
        "\u{fffd}ared\nb\nexit code: 0"
    );
}

#[tokio::test]
async fn the_environment_has_no_pager_no_colour_and_no_keys() {
    let mut trial = Trial::new();
    // Cargo sets both for tests.
    trial.shell = Shell::hiding(["cargo_pkg_name", "*_MANIFEST_DIR"]);
    let command = "echo \"[$CARGO_PKG_NAME$CARGO_MANIFEST_DIR] $TERM $PAGER $GIT_PAGER $NO_COLOR $GIT_TERMINAL_PROMPT\"; echo ${PATH:+path}";
    let (envelope, _) = trial.run(json!({ "command": command })).await;
    assert_eq!(text(&envelope), "[] dumb cat cat 1 0\npath\nexit code: 0");
}

#[tokio::test]
async fn it_runs_in_the_folder_that_was_named() {
    let trial = Trial::new();
    let inner = trial.folder().canonicalize().unwrap().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let expected = format!("{}\nexit code: 0", inner.display());
    let (envelope, _) = trial.run(json!({ "command": "pwd", "cwd": "inner" })).await;
    assert_eq!(text(&envelope), expected);
    let (envelope, _) = Trial::new()
        .run(json!({ "command": "pwd", "cwd": "missing" }))
        .await;
    assert_eq!(kind(&envelope), Some(FailureKind::ExecutionError));
    assert!(text(&envelope).starts_with("could not start a shell in "));
}

#[tokio::test]
async fn a_call_says_what_it_will_run_and_where() {
    let trial = Trial::new();
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
        assert_eq!(failure.kind, FailureKind::Validation);
    }
}

#[tokio::test]
async fn what_it_leaves_in_the_background_ends_with_it() {
    let mark = mark();
    let envelope = run(&format!(
        "sleep {mark} & (sleep {mark} >/dev/null 2>&1 </dev/null &) ; echo done"
    ))
    .await;
    assert_eq!(text(&envelope), "done\nexit code: 0");
    assert!(is_gone(&mark));
}

/// Without a supervisor, as here, a process that left the group is found by what it inherited.
#[tokio::test]
async fn process_outside_the_group_ends_with_the_command() {
    let mark = mark();
    let envelope = run(&format!(
        "setsid sh -c 'echo up > flag; exec sleep {mark}' & until [ -s flag ]; do :; done; echo done"
    ))
    .await;
    assert_eq!(text(&envelope), "done\nexit code: 0");
    assert!(is_gone(&mark));
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
async fn a_flood_of_a_gigabyte_is_bounded() {
    let before = peak_memory_kib();
    let (envelope, reports) = Trial::new()
        .run(json!({ "command": "yes | head -c 1000000000" }))
        .await;
    let text = text(&envelope);
    assert!(text.starts_with("y\ny\n") && text.ends_with("y\nexit code: 0"));
    assert!(text.contains("bytes left out here"));
    assert!(text.len() < 32 * 1024, "{}", text.len());
    assert!(printed(&reports).len() < 1200 * 1024);
    let grown = peak_memory_kib() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}
