//! Describes how a command ended, in words and as the result of a call.

use crate::processes::{RunningProcess, StopReport};
use serde_json::json;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};
use turnery_engine::{ToolEnvelope, ToolErrorKind};

/// Exit of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// Exited by itself, with this code.
    Exited(i64),
    /// Terminated by a signal that turnery did not send: its number or its name.
    Killed(String),
    /// Stopped after this time limit.
    TimedOut(Duration),
    /// Cancelled.
    Cancelled,
    /// Unknown.
    Unknown,
}

impl From<ExitStatus> for CommandExit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(i64::from(code)),
            (None, Some(signal)) => Self::Killed(signal.to_string()),
            (None, None) => Self::Unknown,
        }
    }
}

/// Outcome of stopping a command and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopOutcome {
    /// The command ran locally.
    Local(StopReport),
    /// The command ran in a client terminal; the client was told to kill it and has confirmed its end.
    KilledByClient,
    /// The command ran in a client terminal; the client was told to kill it but has not confirmed its end.
    Unconfirmed,
    /// The client did not respond to the request for a terminal.
    TerminalNotOpened,
}

impl StopOutcome {
    fn describe(&self) -> String {
        match self {
            Self::Local(StopReport::Everything) => {
                "the command and all that it started were stopped".to_owned()
            }
            Self::Local(StopReport::GroupAndTagged) => {
                "the command and its process group were stopped; a process that left the group and cleared its environment may still run".to_owned()
            }
            Self::Local(StopReport::Remaining(processes)) => format!(
                "the command and all that it started were stopped, except for processes that have not ended yet: {}",
                join_processes(processes)
            ),
            Self::KilledByClient => {
                "the client killed the command in its terminal; what it started in the background may still run".to_owned()
            }
            Self::Unconfirmed => {
                "the client was told to kill the command in its terminal, but has not confirmed that it ended".to_owned()
            }
            Self::TerminalNotOpened => {
                "the client was asked for a terminal and has not answered; if it still opens one, it is told to close it at once".to_owned()
            }
        }
    }

    /// Returns a warning about processes that outlive a command which ended by itself.
    fn remaining_warning(&self) -> Option<String> {
        match self {
            Self::Local(StopReport::Remaining(processes)) => Some(format!(
                "processes that were to be stopped with it and have not ended yet: {}",
                join_processes(processes)
            )),
            Self::Local(StopReport::Everything | StopReport::GroupAndTagged)
            | Self::KilledByClient
            | Self::Unconfirmed
            | Self::TerminalNotOpened => None,
        }
    }
}

fn join_processes(processes: &[RunningProcess]) -> String {
    let names: Vec<String> = processes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

impl CommandExit {
    fn status_line(&self, stopped: &StopOutcome) -> String {
        match self {
            Self::Exited(code) => format!("exit code: {code}"),
            Self::Killed(signal) => format!("killed by signal: {signal}"),
            Self::TimedOut(limit) => format!(
                "timed out after {} s: {}. Give it a longer timeout_ms (at most 600000), or let it do less",
                limit.as_secs_f64(),
                stopped.describe()
            ),
            Self::Cancelled => format!("cancelled: {}", stopped.describe()),
            Self::Unknown => "ended without an exit code".to_owned(),
        }
    }

    /// Returns the result of the call: the output, then a line that says how the command ended.
    ///
    /// An exit code other than 0 is a failure of the call although the text is the same, since clients show a
    /// failed call in red and a model reads the text either way.
    pub(crate) fn envelope(&self, text: String, stopped: &StopOutcome) -> ToolEnvelope {
        self.envelope_with(text, stopped, None)
    }

    /// Returns the result of the call with a note for the model at the end.
    pub(crate) fn envelope_with(
        &self,
        mut text: String,
        stopped: &StopOutcome,
        hint: Option<String>,
    ) -> ToolEnvelope {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.status_line(stopped));
        if !matches!(self, Self::TimedOut(_) | Self::Cancelled)
            && let Some(warning) = stopped.remaining_warning()
        {
            text.push('\n');
            text.push_str(&warning);
        }
        if let Some(hint) = hint {
            text.push('\n');
            text.push_str(&hint);
        }
        let (kind, value) = match self {
            Self::Exited(0) => (None, json!({ "exit_code": 0 })),
            Self::Exited(code) => (
                Some(ToolErrorKind::ExecutionError),
                json!({ "exit_code": code }),
            ),
            Self::Killed(signal) => (
                Some(ToolErrorKind::ExecutionError),
                json!({ "signal": signal }),
            ),
            Self::TimedOut(limit) => (
                Some(ToolErrorKind::Timeout),
                json!({ "timeout_ms": u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }),
            ),
            Self::Cancelled => (Some(ToolErrorKind::Cancelled), json!({ "cancelled": true })),
            Self::Unknown => (Some(ToolErrorKind::ExecutionError), json!({})),
        };
        let mut envelope = match kind {
            None => ToolEnvelope::text(text),
            Some(kind) => ToolEnvelope::failed(kind, text),
        };
        envelope.value = Some(value);
        envelope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ending: &CommandExit, stopped: &StopOutcome) -> String {
        let envelope = ending.envelope("out".to_owned(), stopped);
        match envelope.result {
            Ok(content) => content.iter().filter_map(|it| it.as_text()).collect(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn remaining_processes_are_named() {
        let process = |pid, command: &str| RunningProcess {
            pid,
            command: command.to_owned(),
        };
        let remaining = StopOutcome::Local(StopReport::Remaining(vec![
            process(41, "sudo sleep 9"),
            process(42, "dd"),
        ]));
        assert_eq!(
            text(&CommandExit::Cancelled, &remaining),
            "out\ncancelled: the command and all that it started were stopped, except for processes that \
             have not ended yet: 41 (sudo sleep 9), 42 (dd)"
        );
        assert_eq!(
            text(&CommandExit::Exited(0), &remaining),
            "out\nexit code: 0\nprocesses that were to be stopped with it and have not ended yet: \
             41 (sudo sleep 9), 42 (dd)"
        );
    }

    #[test]
    fn full_stop_is_reported_only_if_kernel_confirms() {
        let everything = StopOutcome::Local(StopReport::Everything);
        assert_eq!(
            text(&CommandExit::Cancelled, &everything),
            "out\ncancelled: the command and all that it started were stopped"
        );
        let searched = StopOutcome::Local(StopReport::GroupAndTagged);
        for stopped in [
            searched,
            StopOutcome::KilledByClient,
            StopOutcome::Unconfirmed,
        ] {
            let text = text(&CommandExit::Cancelled, &stopped);
            assert!(!text.contains("all that it started"), "{text}");
        }
    }
}
