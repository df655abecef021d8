//! Response: a model's answer, normalised, whatever API it came by; and how a model call fails.

use crate::{Content, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A live fragment of an answer. Never history: the settled answer is the [`Response`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelDelta {
    /// A fragment of prose. `block` counts content blocks of the answer from 0.
    Text {
        /// Content block that this belongs to.
        block: u32,
        /// The fragment, never empty.
        text: String,
    },
    /// A fragment of reasoning.
    Thinking {
        /// Content block that this belongs to.
        block: u32,
        /// The fragment, never empty.
        text: String,
    },
    /// A fragment of a call's arguments: for display, never parsed (TURN-55).
    ToolCallArgs {
        /// Content block that this belongs to.
        block: u32,
        /// The tool's name.
        name: String,
        /// The fragment of JSON text.
        fragment: String,
    },
}

/// The normalised answer of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Text, reasoning and calls in the order the model gave them.
    pub content: Vec<Content>,
    /// Why it stopped.
    pub stop: ModelStop,
    /// The vendor's own word for that, kept as evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop: Option<String>,
    /// What it cost, if the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider that served it.
    pub provider: String,
}

impl Response {
    /// The calls that it asks for, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|item| match item {
            Content::ToolCall(call) => Some(call),
            Content::Text { .. }
            | Content::Image(_)
            | Content::Thinking { .. }
            | Content::Opaque { .. } => None,
        })
    }
}

/// Why a model's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStop {
    /// It had said all.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// The output limit.
    Length,
    /// It refuses, or a content filter does.
    Refusal,
}

/// How a model call failed. No secret, no header, no request body is ever part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelFault {
    /// The sort of failure.
    pub kind: FaultKind,
    /// What happened and what to do, for a person.
    pub message: String,
    /// The HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// The sort of a model call's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No connection, or it broke off.
    Network,
    /// The stream ended without its terminal event, or was not what the API promises (C-31).
    Protocol,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded or broken (5xx, 529).
    Overloaded,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// The request does not fit the model's context window.
    ContextOverflow,
    /// The provider refuses the request as it is (4xx).
    BadRequest,
    /// The provider fell silent.
    Timeout,
}

impl FaultKind {
    /// Whether the same request may succeed later (UP-8).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Network | Self::Protocol | Self::RateLimit | Self::Overloaded | Self::Timeout => {
                true
            }
            Self::Auth | Self::ContextOverflow | Self::BadRequest => false,
        }
    }
}
