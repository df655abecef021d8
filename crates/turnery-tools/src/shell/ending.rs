//! Ending: how a command came to its end, in words and as a result.

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

impl Ending {
    fn line(&self) -> String {
        match self {
            Self::Exited(code) => format!("exit code: {code}"),
            Self::Killed(signal) => format!("killed by signal: {signal}"),
            Self::TimedOut(limit) => format!(
                "timed out after {} s: the command and all that it started were stopped. Give it a longer timeout_ms (at most 600000), or let it do less",
                limit.as_secs_f64()
            ),
            Self::Cancelled => {
                "cancelled: the command and all that it started were stopped".to_owned()
            }
            Self::Unknown => "ended without an exit code".to_owned(),
        }
    }

    /// The result of the call: what was printed, then a line that says how it ended.
    ///
    /// An exit code other than 0 is a failure of the call although the text is the same, since
    /// clients show a failed call in red and a model reads the text either way.
    pub(super) fn envelope(&self, mut text: String) -> ToolEnvelope {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.line());
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
