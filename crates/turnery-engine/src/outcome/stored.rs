//! Stored form of outcomes: what the loop ended with, and its details beside it. Records may hold pairs of
//! the two that an [`Outcome`] cannot; they are read as the outcome with the nearest meaning.

use super::{
    LimitKind, Outcome, ProviderFailure, ReachedLimit, TurnFinish, TurnStop, report::REFUSED,
};
use crate::{LoopId, ModelErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Outcome of an ended loop, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StoredOutcome {
    /// Outcome of the loop.
    outcome: StoredEnd,
    /// Additional details of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<OutcomeDetail>,
}

/// Outcome of a loop that may still be running, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StoredOptionalOutcome {
    /// Outcome; absent while the loop runs and after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<StoredEnd>,
    /// Additional details of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<OutcomeDetail>,
}

/// Reason why a loop ended (LASH-3).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename = "Outcome", rename_all = "snake_case")]
enum StoredEnd {
    /// The loop finished normally.
    Finished(TurnFinish),
    /// The session continues in a new frame (LASH-12).
    FrameSwitch {
        /// Id of the new frame: `{loop_id}.f`, derived from the loop that opens it.
        frame_id: String,
        /// Task of the new frame.
        task: String,
    },
    /// The loop stopped before producing a terminal value.
    Stopped(StoredStop),
}

/// Reason why a loop stopped early; exactly ten (LASH-14).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename = "TurnStop", rename_all = "snake_case")]
enum StoredStop {
    /// The loop was cancelled (LASH-15).
    Cancelled,
    /// The input was rejected (LASH-16).
    InvalidInput,
    /// The model reached its output limit in mid-message (LASH-17).
    Incomplete,
    /// The provider failed or refused, or the context overflowed (LASH-18 to LASH-20).
    ProviderError,
    /// A limit of the loop was reached (LASH-21).
    MaxTurns,
    /// A tool error ended the loop (LASH-22).
    ToolFailure,
    /// A hook vetoed the loop (LASH-23).
    PluginAbort,
    /// The engine or its host failed (LASH-24).
    RuntimeError,
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

/// Additional details of an outcome, separate so that there are exactly ten stops (LASH-14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OutcomeDetail {
    /// A limit was reached, with its text, for example `Max turns reached (50/50)`.
    Limit {
        /// Limit.
        kind: LimitKind,
        /// Message for the user.
        text: String,
    },
    /// The provider failed.
    Provider {
        /// Kind of error.
        kind: ModelErrorKind,
        /// Message for the user.
        message: String,
    },
    /// The model refused, or a content filter intervened.
    Refusal,
    /// An input filter rejected the input.
    Rejection {
        /// Reason given by the filter.
        reason: String,
    },
    /// Message of a tool failure, a veto by a hook, or a failure of the engine or its host.
    Runtime {
        /// Message for the user.
        message: String,
    },
    /// Another loop continues where this one stopped.
    Continued {
        /// Id of that loop.
        loop_id: LoopId,
    },
}

impl From<Outcome> for StoredOutcome {
    fn from(outcome: Outcome) -> Self {
        let (outcome, detail) = match outcome {
            Outcome::Finished(finish, limit) => {
                (StoredEnd::Finished(finish), limit.map(OutcomeDetail::from))
            }
            Outcome::FrameSwitch { frame_id, task } => {
                (StoredEnd::FrameSwitch { frame_id, task }, None)
            }
            Outcome::Stopped(stop) => {
                let (stop, detail) = split_stop(stop);
                (StoredEnd::Stopped(stop), detail)
            }
        };
        Self { outcome, detail }
    }
}

impl From<ReachedLimit> for OutcomeDetail {
    fn from(ReachedLimit { kind, text }: ReachedLimit) -> Self {
        Self::Limit { kind, text }
    }
}

fn split_stop(stop: TurnStop) -> (StoredStop, Option<OutcomeDetail>) {
    match stop {
        TurnStop::Cancelled => (StoredStop::Cancelled, None),
        TurnStop::InvalidInput { reason } => (
            StoredStop::InvalidInput,
            Some(OutcomeDetail::Rejection { reason }),
        ),
        TurnStop::Incomplete => (StoredStop::Incomplete, None),
        TurnStop::ProviderError(ProviderFailure::Failed { kind, message }) => (
            StoredStop::ProviderError,
            Some(OutcomeDetail::Provider { kind, message }),
        ),
        TurnStop::ProviderError(ProviderFailure::Refused) => {
            (StoredStop::ProviderError, Some(OutcomeDetail::Refusal))
        }
        TurnStop::MaxTurns(limit) => (StoredStop::MaxTurns, Some(limit.into())),
        TurnStop::ToolFailure { message } => (
            StoredStop::ToolFailure,
            Some(OutcomeDetail::Runtime { message }),
        ),
        TurnStop::PluginAbort { reason } => (
            StoredStop::PluginAbort,
            Some(OutcomeDetail::Runtime { message: reason }),
        ),
        TurnStop::RuntimeError { message } => (
            StoredStop::RuntimeError,
            Some(OutcomeDetail::Runtime { message }),
        ),
        TurnStop::SubmittedError { value } => (StoredStop::SubmittedError { value }, None),
        TurnStop::ToolError { tool_name, value } => {
            (StoredStop::ToolError { tool_name, value }, None)
        }
    }
}

impl From<StoredOutcome> for Outcome {
    fn from(StoredOutcome { outcome, detail }: StoredOutcome) -> Self {
        match outcome {
            StoredEnd::Finished(finish) => {
                let limit = match detail {
                    Some(OutcomeDetail::Limit { kind, text }) => Some(ReachedLimit { kind, text }),
                    _ => None,
                };
                Self::Finished(finish, limit)
            }
            StoredEnd::FrameSwitch { frame_id, task } => Self::FrameSwitch { frame_id, task },
            StoredEnd::Stopped(stop) => Self::Stopped(join_stop(stop, detail)),
        }
    }
}

/// Joins a stop and its detail. A detail of another stop keeps its message; without a detail there is a
/// generic message.
fn join_stop(stop: StoredStop, detail: Option<OutcomeDetail>) -> TurnStop {
    let message_or = |detail: Option<OutcomeDetail>, generic: &str| {
        let message = detail.and_then(OutcomeDetail::into_message);
        message.unwrap_or_else(|| format!("the prompt ended early ({generic})"))
    };
    match stop {
        StoredStop::Cancelled => TurnStop::Cancelled,
        StoredStop::InvalidInput => TurnStop::InvalidInput {
            reason: message_or(detail, "invalid input"),
        },
        StoredStop::Incomplete => TurnStop::Incomplete,
        StoredStop::ProviderError => TurnStop::ProviderError(match detail {
            Some(OutcomeDetail::Refusal) => ProviderFailure::Refused,
            Some(OutcomeDetail::Provider { kind, message }) => {
                ProviderFailure::Failed { kind, message }
            }
            other => ProviderFailure::Failed {
                kind: ModelErrorKind::Protocol,
                message: message_or(other, "provider error"),
            },
        }),
        StoredStop::MaxTurns => TurnStop::MaxTurns(match detail {
            Some(OutcomeDetail::Limit { kind, text }) => ReachedLimit { kind, text },
            other => ReachedLimit {
                kind: LimitKind::Turns,
                text: message_or(other, "limit reached"),
            },
        }),
        StoredStop::ToolFailure => TurnStop::ToolFailure {
            message: message_or(detail, "tool failure"),
        },
        StoredStop::PluginAbort => TurnStop::PluginAbort {
            reason: message_or(detail, "plugin abort"),
        },
        StoredStop::RuntimeError => TurnStop::RuntimeError {
            message: message_or(detail, "runtime error"),
        },
        StoredStop::SubmittedError { value } => TurnStop::SubmittedError { value },
        StoredStop::ToolError { tool_name, value } => TurnStop::ToolError { tool_name, value },
    }
}

impl OutcomeDetail {
    fn into_message(self) -> Option<String> {
        match self {
            Self::Limit { text, .. } => Some(text),
            Self::Provider { message, .. } | Self::Runtime { message } => Some(message),
            Self::Refusal => Some(REFUSED.to_owned()),
            Self::Rejection { reason } => Some(reason),
            Self::Continued { .. } => None,
        }
    }
}

impl Outcome {
    /// Returns the details of the outcome in their stored form.
    #[must_use]
    pub fn stored_detail(&self) -> Option<Value> {
        let detail = match self {
            Self::Finished(_, limit) => limit.clone().map(OutcomeDetail::from),
            Self::FrameSwitch { .. } => None,
            Self::Stopped(stop) => split_stop(stop.clone()).1,
        };
        detail.and_then(|detail| serde_json::to_value(detail).ok())
    }
}

#[cfg(test)]
impl Outcome {
    /// Describes the outcome without its details.
    pub(crate) fn brief(&self) -> String {
        format!("{:?}", StoredOutcome::from(self.clone()).outcome)
    }
}

/// Serialises an optional outcome as flattened members.
pub(crate) mod optional {
    use super::{Outcome, StoredOptionalOutcome, StoredOutcome};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        outcome: &Option<Outcome>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = outcome.clone().map(StoredOutcome::from);
        let (outcome, detail) = match stored {
            Some(StoredOutcome { outcome, detail }) => (Some(outcome), detail),
            None => (None, None),
        };
        StoredOptionalOutcome { outcome, detail }.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Outcome>, D::Error> {
        let StoredOptionalOutcome { outcome, detail } = StoredOptionalOutcome::deserialize(from)?;
        Ok(outcome.map(|outcome| StoredOutcome { outcome, detail }.into()))
    }
}

#[cfg(test)]
mod tests;
