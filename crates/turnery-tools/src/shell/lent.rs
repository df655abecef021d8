//! Lent: runs a command line in a terminal that the client lends and shows.

use super::{
    ending::{Ending, Stopped},
    environment, kept,
    kept::Kept,
    plain::Plain,
};
use crate::{
    Progress, TerminalFault, TerminalRun, Terminals, ToolCx, grace,
    policy::{GitSettings, git::environment::variables},
};
use std::{path::Path, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use turnery_engine::{Artifact, CallDetail, FailureKind, ToolEnvelope};

/// Run it to its end. The timeout is a kill, then the output (TERM-4).
/// `None` when there are no terminals after all, and nothing was run.
pub(super) async fn run(
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
    let mut environment = variables(git, |_| None);
    if let Some(cwd) = cwd.to_str() {
        environment.push((environment::FOLDER.to_owned(), cwd.to_owned()));
    }
    let running = terminals.run(
        line,
        cwd,
        &environment,
        Kept::LIMIT as u64,
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
                shown = show(id, &detail, cx).await;
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
        // It was over before anybody looked.
        shown = show(starts.try_recv().ok(), &detail, cx).await;
    }
    // Without a terminal there was nothing to kill.
    let unconfirmed = match shown {
        Some(_) => Stopped::Unconfirmed,
        None => Stopped::NotOpened,
    };
    let mut envelope = match ran {
        Some(Ok(ran)) if timed_out => {
            Ending::TimedOut(limit).envelope(text(ran), &Stopped::ByClient)
        }
        Some(Ok(ran)) if cx.cancel.is_cancelled() => {
            Ending::Cancelled.envelope(text(ran), &Stopped::ByClient)
        }
        Some(Ok(ran)) => ending(&ran).envelope(text(ran), &Stopped::ByClient),
        Some(Err(_)) | None if timed_out => {
            Ending::TimedOut(limit).envelope(String::new(), &unconfirmed)
        }
        Some(Err(_)) | None if cx.cancel.is_cancelled() => {
            Ending::Cancelled.envelope(String::new(), &unconfirmed)
        }
        Some(Err(TerminalFault::Absent)) => return None,
        Some(Err(TerminalFault::NotOpened(reason))) => {
            failed(format!("the client could not run this: {reason}"))
        }
        Some(Err(TerminalFault::Lost(reason))) => failed(format!(
            "the command was started in the client's terminal, but the client does not say how it ended ({reason}): \
             it may have done all that it was to do, so check before it is run again"
        )),
        None => failed("the client did not say how this ended".to_owned()),
    };
    // The terminal goes on showing what it shows.
    envelope.artifacts.extend(shown);
    Some(envelope)
}

/// Show the terminal in the call.
async fn show(terminal_id: Option<String>, detail: &CallDetail, cx: &ToolCx) -> Option<Artifact> {
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
        // Nobody watches: then nobody misses it.
        _ = cx.progress.send(Progress::Shows(detail)) => {}
    }
    Some(terminal)
}

fn failed(message: String) -> ToolEnvelope {
    ToolEnvelope::failed(FailureKind::ExecutionError, message)
}

fn ending(ran: &TerminalRun) -> Ending {
    match (ran.exit_code, &ran.signal) {
        (_, Some(signal)) => Ending::Killed(signal.clone()),
        (Some(code), None) => Ending::Exited(code),
        (None, None) => Ending::Unknown,
    }
}

/// Terminals end lines with CRLF and colour them; a client may also send more than it was asked for.
fn text(ran: TerminalRun) -> String {
    let mut kept = Kept::default();
    kept.add(Plain::whole(ran.output.as_bytes()).as_bytes());
    let text = kept.into_text();
    if ran.truncated {
        return kept::left_out(None) + &text;
    }
    text
}
