//! Runs a command line in a terminal that the client provides and shows.

use super::{
    environment,
    exit_status::{CommandExit, StopOutcome},
    output_buffer,
    output_buffer::OutputBuffer,
    strip_ansi::AnsiStripper,
};
use crate::{
    Progress, TerminalCommandOutput, TerminalError, Terminals, ToolCx, grace,
    policy::{GitSettings, git::environment::git_variables},
};
use std::{path::Path, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use turnery_engine::{Artifact, CallDetail, ToolEnvelope, ToolErrorKind};

/// Runs the command line until it exits. On timeout the command is killed before its output is read (TERM-4).
/// Returns `None` if the client has no terminals after all; then nothing was run.
pub(crate) async fn run(
    terminals: &dyn Terminals,
    line: &str,
    cwd: &Path,
    limit: Duration,
    git: GitSettings,
    detail: CallDetail,
    cx: &ToolCx,
) -> Option<ToolEnvelope> {
    let stop = cx.cancel.child_token();
    let (started, mut starts) = mpsc::channel(1);
    let mut environment = git_variables(git, |_| None);
    if let Some(cwd) = cwd.to_str() {
        environment.push((environment::PWD.to_owned(), cwd.to_owned()));
    }
    let running = terminals.run(
        line,
        cwd,
        &environment,
        OutputBuffer::MAX_BYTES as u64,
        started,
        stop.clone(),
    );
    tokio::pin!(running);
    let alarm = sleep_until(Instant::now() + limit);
    tokio::pin!(alarm);
    let mut shown = None;
    let mut timed_out = false;
    let mut is_starting = true;
    let ran = loop {
        tokio::select! {
            biased;
            id = starts.recv(), if is_starting => {
                is_starting = false;
                shown = show_terminal(id, &detail, cx).await;
            }
            ran = &mut running => break Some(ran),
            () = &mut alarm => {
                if timed_out {
                    break None;
                }
                timed_out = true;
                stop.cancel();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
        }
    };
    if is_starting {
        // The command ended before the terminal was shown.
        shown = show_terminal(starts.try_recv().ok(), &detail, cx).await;
    }
    // Without a terminal there was nothing to kill.
    let unconfirmed = match shown {
        Some(_) => StopOutcome::Unconfirmed,
        None => StopOutcome::TerminalNotOpened,
    };
    let mut envelope = match ran {
        Some(Ok(ran)) if timed_out => {
            CommandExit::TimedOut(limit).envelope(output_text(ran), &StopOutcome::KilledByClient)
        }
        Some(Ok(ran)) if cx.cancel.is_cancelled() => {
            CommandExit::Cancelled.envelope(output_text(ran), &StopOutcome::KilledByClient)
        }
        Some(Ok(ran)) => {
            to_command_exit(&ran).envelope(output_text(ran), &StopOutcome::KilledByClient)
        }
        Some(Err(_)) | None if timed_out => {
            CommandExit::TimedOut(limit).envelope(String::new(), &unconfirmed)
        }
        Some(Err(_)) | None if cx.cancel.is_cancelled() => {
            CommandExit::Cancelled.envelope(String::new(), &unconfirmed)
        }
        Some(Err(TerminalError::Unsupported)) => return None,
        Some(Err(TerminalError::NotOpened(reason))) => {
            execution_failure(format!("the client could not run this: {reason}"))
        }
        Some(Err(TerminalError::UnknownOutcome(reason))) => execution_failure(format!(
            "the command was started in the client's terminal, but the client did not report how it ended ({reason}): \
             it may have completed, so check before you run it again"
        )),
        None => execution_failure("the client did not say how this ended".to_owned()),
    };
    // The client keeps showing the terminal's output.
    envelope.artifacts.extend(shown);
    Some(envelope)
}

/// Shows the terminal in the call.
async fn show_terminal(
    terminal_id: Option<String>,
    detail: &CallDetail,
    cx: &ToolCx,
) -> Option<Artifact> {
    let terminal = Artifact::Terminal {
        terminal_id: terminal_id?,
    };
    let detail = CallDetail {
        artifacts: vec![terminal.clone()],
        ..detail.clone()
    };
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {}
        // An error means that progress is not displayed.
        _ = cx.progress.send(Progress::Detail(detail)) => {}
    }
    Some(terminal)
}

fn execution_failure(message: String) -> ToolEnvelope {
    ToolEnvelope::failed(ToolErrorKind::ExecutionError, message)
}

fn to_command_exit(ran: &TerminalCommandOutput) -> CommandExit {
    match (ran.exit_code, &ran.signal) {
        (_, Some(signal)) => CommandExit::Killed(signal.clone()),
        (Some(code), None) => CommandExit::Exited(code),
        (None, None) => CommandExit::Unknown,
    }
}

/// Converts terminal output to plain text. Terminals use CRLF and colours, and a client may send more output
/// than was requested.
fn output_text(ran: TerminalCommandOutput) -> String {
    let mut kept = OutputBuffer::default();
    kept.push(AnsiStripper::strip(ran.output.as_bytes()).as_bytes());
    let text = kept.into_text();
    if ran.truncated {
        return output_buffer::omission_note(None) + &text;
    }
    text
}
