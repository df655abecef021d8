//! Outcomes: why a loop ended. ACP stop reasons are derived from them elsewhere.

use crate::{LoopId, ModelErrorKind, ResponseText};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Reason why a loop ended (LASH-3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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
    Stopped(TurnStop),
}

impl Outcome {
    /// Returns the terminal value, for outcomes that have one.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Finished(finish) => match finish {
                TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. } => {
                    Some(value)
                }
                TurnFinish::AssistantMessage { .. } => None,
            },
            Self::FrameSwitch { .. } => None,
            Self::Stopped(stop) => match stop {
                TurnStop::SubmittedError { value } | TurnStop::ToolError { value, .. } => {
                    Some(value)
                }
                TurnStop::Cancelled
                | TurnStop::InvalidInput
                | TurnStop::Incomplete
                | TurnStop::ProviderError
                | TurnStop::MaxTurns
                | TurnStop::ToolFailure
                | TurnStop::PluginAbort
                | TurnStop::RuntimeError => None,
            },
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

/// How a loop finished normally.
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

/// Reason why a loop stopped early; exactly ten (LASH-14).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnStop {
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
    /// The program submitted an error (LASH-26).
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
    /// Carries a value for the host.
    Rlm,
}

impl TurnStop {
    /// Returns the class of the stop.
    #[must_use]
    pub fn class(&self) -> StopClass {
        match self {
            Self::Cancelled | Self::InvalidInput => StopClass::Host,
            Self::Incomplete | Self::ProviderError => StopClass::Provider,
            Self::MaxTurns | Self::ToolFailure | Self::PluginAbort => StopClass::Runtime,
            Self::RuntimeError => StopClass::Fatal,
            Self::SubmittedError { .. } | Self::ToolError { .. } => StopClass::Rlm,
        }
    }

    /// Describes the stop for the user: the detail's message if there is one, else a generic text. Returns a
    /// lower-case fragment, except for texts from providers, hooks and tools.
    #[must_use]
    pub fn describe<'a>(&self, detail: Option<&'a OutcomeDetail>) -> Cow<'a, str> {
        let ended = match detail.and_then(OutcomeDetail::message) {
            Some(known) => return known.into(),
            None => match self {
                Self::Cancelled => return "cancelled".into(),
                Self::Incomplete => {
                    return "the answer was cut off at the model's output limit".into();
                }
                Self::SubmittedError { value } | Self::ToolError { value, .. } => {
                    return render_value(value).into();
                }
                Self::InvalidInput => "invalid input",
                Self::ProviderError => "provider error",
                Self::MaxTurns => "limit reached",
                Self::ToolFailure => "tool failure",
                Self::PluginAbort => "plugin abort",
                Self::RuntimeError => "runtime error",
            },
        };
        format!("the prompt ended early ({ended})").into()
    }
}

/// Additional details of an outcome, separate so that there are exactly ten stops (LASH-14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeDetail {
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
    /// Internal failure.
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

impl OutcomeDetail {
    /// Returns the message for the user, if there is one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Limit { text, .. } => Some(text),
            Self::Provider { message, .. } | Self::Runtime { message } => Some(message),
            Self::Refusal => Some("the model refused to answer"),
            Self::Rejection { reason } => Some(reason),
            Self::Continued { .. } => None,
        }
    }
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
