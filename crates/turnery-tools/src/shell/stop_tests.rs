//! Tests that no process of a command is left after a cancel, a timeout or a drop.

use super::test_support::{
    ShellFixture, count_processes, envelope_text, unique_marker, wait_until_gone,
};
use crate::{Progress, Tool};
use serde_json::json;
use turnery_engine::{ToolEnvelope, ToolErrorKind};

fn failure_kind(envelope: &ToolEnvelope) -> ToolErrorKind {
    envelope.result.as_ref().unwrap_err().kind
}

/// Message without a supervisor, as here.
const STOPPED_MESSAGE: &str = "the command and its process group were stopped; a process that left the group and \
                       cleared its environment may still run";

fn is_ready(report: &Progress) -> bool {
    matches!(report, Progress::Output(text) if text.contains("ready"))
}

#[tokio::test]
async fn cancel_gives_command_time_to_finish() {
    let mark = unique_marker();
    let command = format!("trap 'echo bye; exit 3' TERM; sleep {mark} & echo ready; wait");
    // A paused clock stands still while something blocks, so the grace lasts as long as the command needs.
    let (end, ended) = std::sync::mpsc::sync_channel::<()>(0);
    let mut ended = Some(ended);
    let (envelope, _) = ShellFixture::new()
        .run_with_reports(json!({ "command": command }), |report, cancel| {
            if is_ready(report)
                && let Some(ended) = ended.take()
            {
                tokio::time::pause();
                tokio::task::spawn_blocking(move || ended.recv());
                cancel.cancel();
            }
        })
        .await;
    drop(end);
    assert_eq!(failure_kind(&envelope), ToolErrorKind::Cancelled);
    assert_eq!(
        envelope_text(&envelope),
        format!("ready\nbye\ncancelled: {STOPPED_MESSAGE}")
    );
    assert!(wait_until_gone(&mark));
}

#[tokio::test]
async fn command_that_ignores_sigterm_is_killed() {
    let mark = unique_marker();
    let command = format!(
        "trap '' TERM; (trap '' TERM; sleep {mark}; sleep {mark}) & echo ready; sleep {mark}; sleep {mark}"
    );
    let (envelope, _) = ShellFixture::new()
        .run_with_reports(json!({ "command": command }), |report, cancel| {
            if is_ready(report) {
                // From here the clock advances by itself, so the grace passes at once.
                tokio::time::pause();
                cancel.cancel();
            }
        })
        .await;
    assert_eq!(failure_kind(&envelope), ToolErrorKind::Cancelled);
    assert!(envelope_text(&envelope).starts_with("ready\ncancelled"));
    assert!(wait_until_gone(&mark));
}

/// Stops a command that times out (JIDO-68, JIDO-69).
#[tokio::test]
async fn timed_out_command_is_stopped_and_output_kept() {
    let mark = unique_marker();
    let command = format!("echo ready; sleep {mark} & sleep {mark}");
    let (envelope, _) = ShellFixture::new()
        .run_with_reports(
            json!({ "command": command, "timeout_ms": 90_000 }),
            |report, _| {
                if is_ready(report) {
                    tokio::time::pause();
                }
            },
        )
        .await;
    assert_eq!(failure_kind(&envelope), ToolErrorKind::Timeout);
    assert_eq!(
        envelope_text(&envelope),
        format!(
            "ready\ntimed out after 90 s: {STOPPED_MESSAGE}. Give it a longer timeout_ms (at most 600000), or let it do less"
        )
    );
    assert_eq!(envelope.value, Some(json!({ "timeout_ms": 90_000 })));
    assert!(wait_until_gone(&mark));
}

#[tokio::test]
async fn dropped_call_kills_all_processes() {
    let mark = unique_marker();
    let mut trial = ShellFixture::new();
    let command = format!(
        "trap '' TERM; (sleep {mark} >/dev/null 2>&1 </dev/null &); sleep {mark} | sleep {mark} & \
         setsid sh -c 'echo left >&2; exec sleep {mark}' 2>left & until [ -s left ]; do :; done; echo ready; sleep {mark}"
    );
    let args = json!({ "command": command });
    let mut running = trial.shell.run(&args, &trial.cx);
    tokio::select! {
        biased;
        Some(report) = trial.progress.recv() => assert!(is_ready(&report)),
        _ = &mut running => panic!("it ended by itself"),
    }
    // During `exec` a process has no command line for a moment.
    while count_processes(&mark) == 0 {
        std::thread::yield_now();
    }
    drop(running);
    assert!(wait_until_gone(&mark));
}

#[tokio::test]
async fn cancel_works_while_client_reads_nothing() {
    let mark = unique_marker();
    let mut trial = ShellFixture::new();
    let args = json!({ "command": format!("echo {mark} >&2; sleep {mark} & yes {mark}") });
    let mut running = trial.shell.run(&args, &trial.cx);
    let first = tokio::select! {
        biased;
        Some(report) = trial.progress.recv() => report,
        _ = &mut running => panic!("it ended by itself"),
    };
    assert!(matches!(first, Progress::Output(_)));
    // Nobody receives from here on, so the bounded channel fills and then the pipe.
    while trial.progress.len() < trial.progress.max_capacity() {
        tokio::select! {
            biased;
            _ = &mut running => panic!("it ended by itself"),
            () = tokio::task::yield_now() => {}
        }
    }
    trial.cx.cancel.cancel();
    let envelope = running.await;
    assert_eq!(failure_kind(&envelope), ToolErrorKind::Cancelled);
    assert!(wait_until_gone(&mark));
}
