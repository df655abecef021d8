//! Messages: what the model reads and writes, and what is kept as history.

use crate::{CallId, MessageId, ToolCall, TurnId, Usage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A message with its identity. History is a list of shared ones, so a turn never copies it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmMessage {
    /// Minted once, kept for ever: replay shows the same id.
    pub message_id: MessageId,
    /// The turn it belongs to (TURN-7); absent for notices outside any turn (UP-2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// What it says.
    pub message: Message,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From the engine: a limit notice, a correction. Reaches the model.
    System {
        /// Plain text.
        text: String,
    },
    /// From the person.
    User {
        /// Text, images and audio, in order.
        content: Vec<Content>,
    },
    /// From the model.
    Assistant {
        /// Text, reasoning and tool calls, in order.
        content: Vec<Content>,
        /// Why the model stopped.
        stop: MessageStop,
        /// The model that answered.
        model: String,
        /// The provider that served it.
        provider: String,
        /// What it cost, if the provider said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// The failure, when `stop` is `Error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// What a tool gave back.
    ToolResult {
        /// The call that this answers.
        call_id: CallId,
        /// The tool's name as the model called it.
        tool_name: String,
        /// Text, images and audio for the model.
        content: Vec<Content>,
        /// True when the tool failed, was refused, or was cut short.
        is_error: bool,
    },
}

/// Who a message is from, as models know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The engine.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Message {
    /// Text that the agent itself shows to the user: no model wrote it, and none is sent it.
    #[must_use]
    pub fn of_agent(text: impl Into<String>) -> Self {
        Self::Assistant {
            content: vec![Content::text(text)],
            stop: MessageStop::Stop,
            model: String::new(),
            provider: String::new(),
            usage: None,
            error: None,
        }
    }

    /// Who it is from (JIDO-2).
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::System { .. } => Role::System,
            Self::User { .. } => Role::User,
            Self::Assistant { .. } => Role::Assistant,
            Self::ToolResult { .. } => Role::Tool,
        }
    }

    /// What it cost, if it is a model's and the provider said so.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Assistant { usage, .. } => *usage,
            Self::System { .. } | Self::User { .. } | Self::ToolResult { .. } => None,
        }
    }

    /// The text blocks, joined by newlines (C-19).
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::System { text } => text.clone(),
            Self::User { content }
            | Self::Assistant { content, .. }
            | Self::ToolResult { content, .. } => joined_text(content),
        }
    }

    /// The tool calls of an assistant message, in order (TURN-38).
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let content: &[Content] = match self {
            Self::Assistant { content, .. } => content,
            Self::System { .. } | Self::User { .. } | Self::ToolResult { .. } => &[],
        };
        content.iter().filter_map(|item| match item {
            Content::ToolCall(call) => Some(call),
            Content::Text { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::Thinking { .. }
            | Content::Opaque { .. } => None,
        })
    }
}

/// The text blocks, joined by newlines (C-19).
pub(crate) fn joined_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

/// Why one model message stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageStop {
    /// The model had said all.
    Stop,
    /// The output limit.
    Length,
    /// It wants tools.
    ToolUse,
    /// The provider failed.
    Error,
    /// Cut short by a cancel.
    Aborted,
    /// A content filter or a refusal.
    GuardRail,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(ImageData),
    /// A recording.
    Audio(AudioData),
    /// Reasoning, with the provider's proof of it, to be sent back byte for byte.
    Thinking {
        /// Readable reasoning; may be empty.
        text: String,
        /// The provider's signature over it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A request to use a tool.
    ToolCall(ToolCall),
    /// A block that only its provider understands, kept raw so that it can be sent back.
    Opaque {
        /// The provider that made it.
        provider: String,
        /// The block as it came.
        value: serde_json::Value,
    },
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image(_)
            | Self::Audio(_)
            | Self::Thinking { .. }
            | Self::ToolCall(_)
            | Self::Opaque { .. } => None,
        }
    }
}

/// A picture, held once and shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImageData {
    /// For example `image/png`.
    pub mime_type: String,
    /// The bytes in base64, as every model API takes them.
    pub base64: Arc<str>,
}

impl ImageData {
    /// The types of pictures that model APIs take.
    pub const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
}

/// A recording, held once and shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AudioData {
    /// For example `audio/wav`.
    pub mime_type: String,
    /// The bytes in base64, as every model API takes them.
    pub base64: Arc<str>,
}

/// What a recording is written in; model APIs take these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// Waves as they are.
    Wav,
    /// MPEG layer III.
    Mp3,
}

impl AudioFormat {
    /// The format of that type; `None` for one that no model API takes.
    #[must_use]
    pub fn of(mime_type: &str) -> Option<Self> {
        match mime_type {
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some(Self::Wav),
            "audio/mpeg" | "audio/mp3" => Some(Self::Mp3),
            _ => None,
        }
    }
}
