//! Outcome: why a loop ended. The wire's stop reasons are somebody else's words.

use crate::{AnswerText, FaultKind, LoopId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Why a loop ended (LASH-3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It came to its own end.
    Finished(TurnFinish),
    /// It goes on in a fresh frame of the same session (LASH-12).
    FrameSwitch {
        /// The new frame: `{loop_id}.f`, of the loop that opens it.
        frame_id: String,
        /// What it is to do.
        task: String,
    },
    /// It ended before a terminal value.
    Stopped(TurnStop),
}

impl Outcome {
    /// The terminal value, for ends that have one.
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

/// A terminal value as text: null is none, a string is itself, all else is indented JSON (LASH-68).
#[must_use]
pub fn render(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("{value:#}")
        }
    }
}

/// How a loop came to its own end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnFinish {
    /// The model's prose (LASH-4).
    AssistantMessage {
        /// The settled text.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        text: AnswerText,
    },
    /// A value that the model submitted (LASH-6).
    FinalValue {
        /// The value.
        value: Value,
    },
    /// A value that a tool declared final (LASH-7).
    ToolValue {
        /// The tool.
        tool_name: String,
        /// The value.
        value: Value,
    },
}

/// Why a loop was stopped: exactly ten ways (LASH-14).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnStop {
    /// The token given to it fired (LASH-15).
    Cancelled,
    /// The input was refused (LASH-16).
    InvalidInput,
    /// The model hit its output limit in mid-message (LASH-17).
    Incomplete,
    /// The provider failed, refused, or the context overflowed (LASH-18 to 20).
    ProviderError,
    /// A limit of the loop was reached (LASH-21).
    MaxTurns,
    /// A tool's failure ended it (LASH-22).
    ToolFailure,
    /// A hook said no (LASH-23).
    PluginAbort,
    /// The engine or its host broke (LASH-24).
    RuntimeError,
    /// The program submitted an error (LASH-26).
    SubmittedError {
        /// Its payload.
        value: Value,
    },
    /// A tool declared a final error (LASH-27).
    ToolError {
        /// The tool.
        tool_name: String,
        /// Its payload.
        value: Value,
    },
}

/// What a stop means for whoever may try again (LASH-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopClass {
    /// Host-driven: the next request is fine.
    Host,
    /// Provider: another model or a shorter context may help.
    Provider,
    /// Runtime: change the configuration.
    Runtime,
    /// Fatal: the identical input is unlikely to help (LASH-32).
    Fatal,
    /// A payload for the host.
    Rlm,
}

impl TurnStop {
    /// The class of the stop.
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

    /// Why, for a person: what is known beside it, else what the stop itself says. A lower-case
    /// fragment unless somebody else worded it.
    #[must_use]
    pub fn sentence<'a>(&self, detail: Option<&'a Detail>) -> Cow<'a, str> {
        let ended = match detail.and_then(Detail::sentence) {
            Some(known) => return known.into(),
            None => match self {
                Self::Cancelled => return "cancelled".into(),
                Self::Incomplete => {
                    return "the answer was cut off at the model's output limit".into();
                }
                Self::SubmittedError { value } | Self::ToolError { value, .. } => {
                    return render(value).into();
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

/// What is known beside the outcome, so that the ten stops stay ten (section 7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Which limit, and its text, for example `Max turns reached (50/50)`.
    Limit {
        /// The limit.
        kind: LimitKind,
        /// The sentence.
        text: String,
    },
    /// The provider's failure.
    Provider {
        /// The sort.
        kind: FaultKind,
        /// For a person.
        message: String,
    },
    /// The model refused or a content filter did.
    Refusal,
    /// An input filter's reason.
    Rejection {
        /// Its sentence.
        reason: String,
    },
    /// What broke inside.
    Runtime {
        /// For a person.
        message: String,
    },
    /// The loop that goes on where this one stopped.
    Continued {
        /// Its id.
        loop_id: LoopId,
    },
}

impl Detail {
    /// What it says of the end, for a person; none if nothing.
    #[must_use]
    pub fn sentence(&self) -> Option<&str> {
        match self {
            Self::Limit { text, .. } => Some(text),
            Self::Provider { message, .. } | Self::Runtime { message } => Some(message),
            Self::Refusal => Some("the model refused to answer"),
            Self::Rejection { reason } => Some(reason),
            Self::Continued { .. } => None,
        }
    }
}

/// The limits of a loop (UP-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Number of turns.
    Turns,
    /// Tokens, in and out.
    Tokens,
    /// Wall-clock time.
    Duration,
    /// Money.
    Cost,
    /// Size of one answer, or number of its calls.
    Answer,
}
