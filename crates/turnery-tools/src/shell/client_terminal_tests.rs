//! Tests of commands in client terminals, with a scripted client.

use super::test_support::{ShellFixture, envelope_text, printed_output};
use crate::{
    Access, Judgement, Mode, Policy, Progress, TerminalCommandOutput, TerminalError, Terminals,
};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{Artifact, ToolErrorKind};

/// A client with terminals that run nothing.
struct FakeTerminals {
    /// Response of the terminal, after the kill if `waits` is set.
    result: Result<TerminalCommandOutput, TerminalError>,
    waits: bool,
    /// Command lines received.
    commands: Mutex<Vec<String>>,
    /// Variables of the last command.
    environment: Mutex<Vec<(String, String)>>,
}

impl FakeTerminals {
    fn new(result: Result<TerminalCommandOutput, TerminalError>, waits: bool) -> Arc<Self> {
        Arc::new(Self {
            result,
            waits,
            commands: Mutex::default(),
            environment: Mutex::default(),
        })
    }
}

impl Terminals for FakeTerminals {
    fn run<'a>(
        &'a self,
        command: &'a str,
        _cwd: &'a Path,
        environment: &'a [(String, String)],
        _output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalCommandOutput, TerminalError>> {
        Box::pin(async move {
            self.commands.lock().unwrap().push(command.to_owned());
            *self.environment.lock().unwrap() = environment.to_vec();
            let is_opened = !matches!(
                self.result,
                Err(TerminalError::Unsupported | TerminalError::NotOpened(_))
            );
            if is_opened {
                started.send("t1".to_owned()).await.unwrap();
            }
            if self.waits {
                cancel.cancelled().await;
            }
            self.result.clone()
        })
    }
}

fn terminal_output(
    output: &str,
    exit_code: Option<i64>,
    signal: Option<&str>,
) -> TerminalCommandOutput {
    TerminalCommandOutput {
        output: output.to_owned(),
        truncated: false,
        exit_code,
        signal: signal.map(str::to_owned),
    }
}

fn terminal_artifact() -> Artifact {
    Artifact::Terminal {
        terminal_id: "t1".to_owned(),
    }
}

#[tokio::test]
async fn terminal_is_shown_and_result_is_plain_text() {
    let client = FakeTerminals::new(
        Ok(terminal_output("\u{1b}[1ma\u{1b}[0m\r\nb", Some(0), None)),
        false,
    );
    let trial = ShellFixture::with_terminals(Some(client.clone()));
    let (envelope, reports) = trial.run(json!({ "command": "echo \"a b\" | cat" })).await;
    assert_eq!(*client.commands.lock().unwrap(), ["echo \"a b\" | cat"]);
    assert_eq!(envelope_text(&envelope), "a\nb\nexit code: 0");
    let [Progress::Detail(detail)] = reports.as_slice() else {
        panic!("{reports:?}");
    };
    assert_eq!(detail.artifacts, [terminal_artifact()]);
    assert_eq!(envelope.artifacts, [terminal_artifact()]);
    assert_eq!(printed_output(&reports), "");
}

#[tokio::test]
async fn git_that_only_reads_gets_a_hardened_environment() {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (command, is_hardened) in [
        ("git status", true),
        ("cd sub; git diff | head", false),
        ("git diff | head > out", true),
        ("git commit -m x", false),
        ("git status; make", false),
        ("ls", false),
    ] {
        let client = FakeTerminals::new(Ok(terminal_output("", Some(0), None)), false);
        let trial = ShellFixture::with_terminals(Some(client.clone()));
        let folder = trial.cx.workspace.cwd().to_str().unwrap().to_owned();
        trial.run(json!({ "command": command })).await;
        let environment = client.environment.lock().unwrap();
        assert!(environment.contains(&variable("PWD", &folder)), "{command}");
        assert_eq!(environment.len() > 1, is_hardened, "{command}");
        for expected in [
            variable("GIT_CONFIG_KEY_2", "core.fsmonitor"),
            variable("GIT_CONFIG_VALUE_2", "false"),
            variable("GIT_NO_LAZY_FETCH", "1"),
        ] {
            assert_eq!(environment.contains(&expected), is_hardened, "{command}");
        }
    }
}

#[tokio::test]
async fn nonzero_exits_and_errors_are_failures() {
    for (result, expected) in [
        (
            Ok(terminal_output("x\r\n", Some(2), None)),
            "x\nexit code: 2",
        ),
        (
            Ok(terminal_output("", None, Some("SIGKILL"))),
            "killed by signal: SIGKILL",
        ),
        (
            Ok(terminal_output("", None, None)),
            "ended without an exit code",
        ),
        (
            Err(TerminalError::NotOpened("no room".to_owned())),
            "the client could not run this: no room",
        ),
        (
            Err(TerminalError::UnknownOutcome("gone".to_owned())),
            "the command was started in the client's terminal, but the client did not report how it ended (gone): \
             it may have completed, so check before you run it again",
        ),
    ] {
        let trial = ShellFixture::with_terminals(Some(FakeTerminals::new(result, false)));
        let (envelope, _) = trial.run(json!({ "command": "x" })).await;
        let failure = envelope.result.as_ref().unwrap_err();
        assert_eq!(failure.kind, ToolErrorKind::ExecutionError);
        assert_eq!(envelope_text(&envelope), expected);
    }
}

/// The command runs locally if the client has no terminals after all.
// proves: TERM-3
#[tokio::test]
async fn unsupported_terminals_fall_back_to_local_run() {
    let trial = ShellFixture::with_terminals(Some(FakeTerminals::new(
        Err(TerminalError::Unsupported),
        false,
    )));
    let (envelope, _) = trial.run(json!({ "command": "echo here" })).await;
    assert_eq!(envelope_text(&envelope), "here\nexit code: 0");
    assert_eq!(envelope.artifacts, []);
}

#[tokio::test]
async fn truncated_output_is_marked() {
    let run = TerminalCommandOutput {
        truncated: true,
        ..terminal_output("end\n", Some(0), None)
    };
    let trial = ShellFixture::with_terminals(Some(FakeTerminals::new(Ok(run), false)));
    let (envelope, _) = trial.run(json!({ "command": "x" })).await;
    let text = envelope_text(&envelope);
    assert!(text.starts_with("[output left out here."), "{text}");
    assert!(text.ends_with("]\nend\nexit code: 0"), "{text}");
}

/// A timeout kills the command, then reads its output (TERM-4).
// proves: TERM-4
#[tokio::test(start_paused = true)]
async fn timeout_kills_command_and_keeps_output() {
    let client = FakeTerminals::new(Ok(terminal_output("half", None, Some("SIGTERM"))), true);
    let trial = ShellFixture::with_terminals(Some(client));
    let (envelope, _) = trial
        .run(json!({ "command": "x", "timeout_ms": 5000 }))
        .await;
    let failure = envelope.result.as_ref().unwrap_err();
    assert_eq!(failure.kind, ToolErrorKind::Timeout);
    assert!(envelope_text(&envelope).starts_with("half\ntimed out after 5 s:"));
}

/// A kill is reported only if a terminal exists.
#[tokio::test(start_paused = true)]
async fn timeout_reports_unconfirmed_kill() {
    let silent = |fault: fn(String) -> TerminalError| Err(fault("silent".to_owned()));
    for (result, expected) in [
        (
            silent(TerminalError::NotOpened),
            "timed out after 5 s: the client was asked for a terminal and has not answered;",
        ),
        (
            silent(TerminalError::UnknownOutcome),
            "timed out after 5 s: the client was told to kill the command in its terminal, but",
        ),
    ] {
        let trial = ShellFixture::with_terminals(Some(FakeTerminals::new(result, true)));
        let (envelope, _) = trial
            .run(json!({ "command": "x", "timeout_ms": 5000 }))
            .await;
        let text = envelope_text(&envelope);
        assert!(text.starts_with(expected), "{text}");
    }
}

#[tokio::test]
async fn cancel_is_forwarded_to_client() {
    let client = FakeTerminals::new(Ok(terminal_output("half\n", None, None)), true);
    let trial = ShellFixture::with_terminals(Some(client));
    let (envelope, _) = trial
        .run_with_reports(json!({ "command": "x" }), |_, cancel| cancel.cancel())
        .await;
    let failure = envelope.result.as_ref().unwrap_err();
    assert_eq!(failure.kind, ToolErrorKind::Cancelled);
    assert!(envelope_text(&envelope).starts_with("half\ncancelled:"));
}

/// The client may find a shell of the project by its name.
#[test]
fn rule_covers_nothing_where_project_has_own_shell() {
    let client = FakeTerminals::new(Ok(terminal_output("", Some(0), None)), false);
    let policy = Policy::new(Mode::Ask, vec!["shell(make)".parse().unwrap()], vec![]);
    for (program, expected) in [
        ("other", Judgement::Allow),
        ("bash", Judgement::Ask { always: None }),
    ] {
        let trial = ShellFixture::with_terminals(Some(client.clone()));
        let workspace = crate::Workspace::clone(&trial.cx.workspace);
        let workspace = workspace.with_search_path("bin:/usr/bin".as_ref());
        let cwd = workspace.cwd().to_owned();
        std::fs::create_dir(cwd.join("bin")).unwrap();
        std::fs::write(cwd.join("bin").join(program), "").unwrap();
        let command = "make".to_owned();
        let judged = policy.judge("shell", &Access::Run { command, cwd }, &workspace);
        assert_eq!(judged, expected, "{program}");
    }
}
