//! Outcomes: why a loop ended. Their words, classes and exit codes are in [`OutcomeReport`].

mod report;
mod stored;

pub use report::{EndKind, OutcomeReport};
#[cfg(not(feature = "schema"))]
use stored::StoredOutcome;
pub(crate) use stored::optional;
#[cfg(feature = "schema")]
pub(crate) use stored::{StoredOptionalOutcome, StoredOutcome};

use crate::{ModelErrorKind, ResponseText};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reason why a loop ended (LASH-3). Stored as two members, `outcome` and `detail`; a field of this type is
/// flattened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredOutcome", into = "StoredOutcome")]
pub enum Outcome {
    /// The loop finished normally. The limit, if any, is the one that caused the last reply, or that the last
    /// response exceeded (C-4).
    Finished(TurnFinish, Option<ReachedLimit>),
    /// The session continues in a new frame (LASH-12).
    FrameSwitch {
        /// Id of the new frame: `{loop_id}.f`, derived from the loop that opens it.
        frame_id: String,
        /// Task of the new frame.
        task: String,
    },
    /// The loop stopped before producing a terminal value.
    Stopped(TurnStop),
}

impl Outcome {
    /// Returns the terminal value, for outcomes that have one.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Finished(
                TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. },
                _,
            )
            | Self::Stopped(
                TurnStop::SubmittedError { value } | TurnStop::ToolError { value, .. },
            ) => Some(value),
            _ => None,
        }
    }

    /// Returns true if the loop finished, or goes on in another frame: it was not stopped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Finished(..) | Self::FrameSwitch { .. } => true,
            Self::Stopped(_) => false,
        }
    }

    /// Returns true if the next prompt sees a loop with this outcome (UP-35).
    pub(crate) fn stays_in_conversation(&self) -> bool {
        match self {
            Self::Finished(..) | Self::FrameSwitch { .. } => true,
            Self::Stopped(stop) => match stop {
                TurnStop::InvalidInput { .. }
                | TurnStop::PluginAbort { .. }
                | TurnStop::ProviderError(ProviderFailure::Refused) => false,
                TurnStop::Cancelled
                | TurnStop::Incomplete
                | TurnStop::ProviderError(ProviderFailure::Failed { .. })
                | TurnStop::MaxTurns(_)
                | TurnStop::ToolFailure { .. }
                | TurnStop::RuntimeError { .. }
                | TurnStop::SubmittedError { .. }
                | TurnStop::ToolError { .. } => true,
            },
        }
    }

    /// Returns the limit that was reached, with or without a terminal value.
    #[must_use]
    pub fn limit(&self) -> Option<&ReachedLimit> {
        match self {
            Self::Finished(_, limit) => limit.as_ref(),
            Self::Stopped(TurnStop::MaxTurns(limit)) => Some(limit),
            Self::FrameSwitch { .. } | Self::Stopped(_) => None,
        }
    }

    /// Adds a limit to a finished outcome without one.
    #[must_use]
    pub fn or_limit(self, limit: impl FnOnce() -> Option<ReachedLimit>) -> Self {
        match self {
            Self::Finished(finish, None) => Self::Finished(finish, limit()),
            other => other,
        }
    }
}

/// Renders a terminal value as text: null is empty, a string is unquoted, everything else is indented JSON
/// (LASH-68).
#[must_use]
pub fn render_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("{value:#}")
        }
    }
}

/// Normal end of a loop. Named as in the specification (LASH-4 to LASH-7), which calls a loop a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnFinish {
    /// Text of the model (LASH-4).
    AssistantMessage {
        /// Final text.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        text: ResponseText,
    },
    /// Value submitted by the model (LASH-6).
    FinalValue {
        /// The value.
        value: Value,
    },
    /// Value that a tool declared final (LASH-7).
    ToolValue {
        /// Tool name.
        tool_name: String,
        /// The value.
        value: Value,
    },
}

/// Reason why a loop stopped early; exactly ten (LASH-14). Named as in the specification, which calls a loop
/// a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnStop {
    /// The loop was cancelled (LASH-15).
    Cancelled,
    /// The input was rejected (LASH-16).
    InvalidInput {
        /// Reason given by the filter.
        reason: String,
    },
    /// The model reached its output limit in mid-message (LASH-17).
    Incomplete,
    /// The provider failed or refused, or the context overflowed (LASH-18 to LASH-20).
    ProviderError(ProviderFailure),
    /// A limit of the loop was reached (LASH-21).
    MaxTurns(ReachedLimit),
    /// A tool error ended the loop (LASH-22).
    ToolFailure {
        /// Message for the user.
        message: String,
    },
    /// A hook vetoed the loop (LASH-23).
    PluginAbort {
        /// Reason given by the hook.
        reason: String,
    },
    /// The engine or its host failed (LASH-24).
    RuntimeError {
        /// Message for the user.
        message: String,
    },
    /// The model submitted an error as its result (LASH-26).
    SubmittedError {
        /// Error value.
        value: Value,
    },
    /// A tool declared a final error (LASH-27).
    ToolError {
        /// Tool name.
        tool_name: String,
        /// Error value.
        value: Value,
    },
}

/// Failure of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderFailure {
    /// The model call failed.
    Failed {
        /// Kind of error.
        kind: ModelErrorKind,
        /// Message for the user.
        message: String,
    },
    /// The model refused, or a content filter intervened.
    Refused,
}

/// Limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedLimit {
    /// Limit.
    pub kind: LimitKind,
    /// Message for the user, for example `Max turns reached (50/50)`.
    pub text: String,
}

/// Class of a stop, for deciding on a retry (LASH-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopClass {
    /// Caused by the host; send the next request.
    Host,
    /// Caused by the provider; another model or a shorter context may help.
    Provider,
    /// Caused by the runtime; change the configuration.
    Runtime,
    /// Fatal; the same input is unlikely to succeed (LASH-32).
    Fatal,
    /// Ended by an error value of the model or of a tool, which is passed on to the host. Called RLM in the
    /// specification (LASH-28).
    Rlm,
}

/// Kind of limit (UP-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Number of turns.
    Turns,
    /// Input and output tokens.
    Tokens,
    /// Wall-clock time.
    Duration,
    /// Money.
    Cost,
    /// Size of one response, or number of its calls.
    Answer,
}
