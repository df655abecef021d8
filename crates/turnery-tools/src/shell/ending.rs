//! Ending: how a command came to its end, in words and as a result.

use crate::processes::{RunningProcess, StopReport};
use serde_json::json;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};
use turnery_engine::{FailureKind, ToolEnvelope};

/// How a command came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with this code.
    Exited(i64),
    /// By a signal that was not ours: its number or its name.
    Killed(String),
    /// It ran longer than this and was stopped.
    TimedOut(Duration),
    /// Somebody wanted it to stop.
    Cancelled,
    /// Nobody can tell.
    Unknown,
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(i64::from(code)),
            (None, Some(signal)) => Self::Killed(signal.to_string()),
            (None, None) => Self::Unknown,
        }
    }
}

/// What became of the command and of what it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It ran here.
    Here(StopReport),
    /// It ran in a terminal of the client, which was told to kill it and has confirmed its end.
    ByClient,
    /// The same, but the client has not confirmed its end.
    Unconfirmed,
    /// The client was asked for a terminal and has not answered.
    NotOpened,
}

impl Stopped {
    fn sentence(&self) -> String {
        match self {
            Self::Here(StopReport::Everything) => {
                "the command and all that it started were stopped".to_owned()
            }
            Self::Here(StopReport::GroupAndTagged) => {
                "the command and its process group were stopped; a process that left the group and cleared its environment may still run".to_owned()
            }
            Self::Here(StopReport::Remaining(processes)) => format!(
                "the command and all that it started were stopped, except for processes that have not ended yet: {}",
                list(processes)
            ),
            Self::ByClient => {
                "the client killed the command in its terminal; what it started in the background may still run".to_owned()
            }
            Self::Unconfirmed => {
                "the client was told to kill the command in its terminal, but has not confirmed that it ended".to_owned()
            }
            Self::NotOpened => {
                "the client was asked for a terminal and has not answered; if it still opens one, it is told to close it at once".to_owned()
            }
        }
    }

    /// Line about processes of a command which ended by itself that have not ended yet.
    fn warning(&self) -> Option<String> {
        match self {
            Self::Here(StopReport::Remaining(processes)) => Some(format!(
                "processes that were to be stopped with it and have not ended yet: {}",
                list(processes)
            )),
            Self::Here(StopReport::Everything | StopReport::GroupAndTagged)
            | Self::ByClient
            | Self::Unconfirmed
            | Self::NotOpened => None,
        }
    }
}

fn list(processes: &[RunningProcess]) -> String {
    let names: Vec<String> = processes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

impl Ending {
    fn line(&self, stopped: &Stopped) -> String {
        match self {
            Self::Exited(code) => format!("exit code: {code}"),
            Self::Killed(signal) => format!("killed by signal: {signal}"),
            Self::TimedOut(limit) => format!(
                "timed out after {} s: {}. Give it a longer timeout_ms (at most 600000), or let it do less",
                limit.as_secs_f64(),
                stopped.sentence()
            ),
            Self::Cancelled => format!("cancelled: {}", stopped.sentence()),
            Self::Unknown => "ended without an exit code".to_owned(),
        }
    }

    /// The result of the call: what was printed, then a line that says how it ended.
    ///
    /// An exit code other than 0 is a failure of the call although the text is the same, since
    /// clients show a failed call in red and a model reads the text either way.
    pub(super) fn envelope(&self, text: String, stopped: &Stopped) -> ToolEnvelope {
        self.envelope_with(text, stopped, None)
    }

    /// The same, with a line at the end for the model.
    pub(super) fn envelope_with(
        &self,
        mut text: String,
        stopped: &Stopped,
        hint: Option<String>,
    ) -> ToolEnvelope {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.line(stopped));
        if !matches!(self, Self::TimedOut(_) | Self::Cancelled)
            && let Some(warning) = stopped.warning()
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
                Some(FailureKind::ExecutionError),
                json!({ "exit_code": code }),
            ),
            Self::Killed(signal) => (
                Some(FailureKind::ExecutionError),
                json!({ "signal": signal }),
            ),
            Self::TimedOut(limit) => (
                Some(FailureKind::Timeout),
                json!({ "timeout_ms": u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }),
            ),
            Self::Cancelled => (Some(FailureKind::Cancelled), json!({ "cancelled": true })),
            Self::Unknown => (Some(FailureKind::ExecutionError), json!({})),
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

    fn text(ending: &Ending, stopped: &Stopped) -> String {
        let envelope = ending.envelope("out".to_owned(), stopped);
        match envelope.result {
            Ok(content) => content.iter().filter_map(|it| it.as_text()).collect(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn remaining_processes_are_named_and_not_called_stopped() {
        let process = |pid, command: &str| RunningProcess {
            pid,
            command: command.to_owned(),
        };
        let remaining = Stopped::Here(StopReport::Remaining(vec![
            process(41, "sudo sleep 9"),
            process(42, "dd"),
        ]));
        assert_eq!(
            text(&Ending::Cancelled, &remaining),
            "out\ncancelled: the command and all that it started were stopped, except for processes that \
             have not ended yet: 41 (sudo sleep 9), 42 (dd)"
        );
        assert_eq!(
            text(&Ending::Exited(0), &remaining),
            "out\nexit code: 0\nprocesses that were to be stopped with it and have not ended yet: \
             41 (sudo sleep 9), 42 (dd)"
        );
    }

    #[test]
    fn everything_is_claimed_only_if_the_kernel_says_so() {
        let everything = Stopped::Here(StopReport::Everything);
        assert_eq!(
            text(&Ending::Cancelled, &everything),
            "out\ncancelled: the command and all that it started were stopped"
        );
        let searched = Stopped::Here(StopReport::GroupAndTagged);
        for stopped in [searched, Stopped::ByClient, Stopped::Unconfirmed] {
            let text = text(&Ending::Cancelled, &stopped);
            assert!(!text.contains("all that it started"), "{text}");
        }
    }
}
