//! Messages of a conversation, as sent to models and stored in history.

use crate::{CallId, MessageId, ToolCall, TurnId, Usage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Message with its id. History shares messages instead of copying them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmMessage {
    /// Message id; replays show the same id.
    pub message_id: MessageId,
    /// Turn of the message (TURN-7); absent for notices outside any turn (UP-2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Role and content.
    pub message: Message,
}

/// Message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Message of the engine to the model, for example a limit notice.
    System {
        /// Plain text.
        text: String,
    },
    /// Message of the user.
    User {
        /// Text, images and audio, in order.
        content: Vec<Content>,
    },
    /// Response of the model.
    Assistant {
        /// Text, reasoning and tool calls, in order.
        content: Vec<Content>,
        /// Reason why the response ended.
        stop: MessageStop,
        /// Model that produced the response.
        model: String,
        /// Provider that served the model.
        provider: String,
        /// Token usage, if the provider reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Error message, if `stop` is `Error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Request that the response answers, if the adapter reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestFingerprint>,
    },
    /// Result of a tool call.
    ToolResult {
        /// Call that this is the result of.
        call_id: CallId,
        /// Tool name as the model wrote it.
        tool_name: String,
        /// Text, images and audio for the model.
        content: Vec<Content>,
        /// True if the tool failed, was denied, or was cancelled.
        is_error: bool,
    },
}

/// Role of a message, as models know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The engine.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Message {
    /// Creates a user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: vec![Content::text(text)],
        }
    }

    /// Creates an assistant message for text that the agent itself displays to the user. It is not written by
    /// a model and not sent to one.
    #[must_use]
    pub fn from_agent(text: impl Into<String>) -> Self {
        Self::Assistant {
            content: vec![Content::text(text)],
            stop: MessageStop::Stop,
            model: String::new(),
            provider: String::new(),
            usage: None,
            error: None,
            request: None,
        }
    }

    /// Returns the role (JIDO-2).
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::System { .. } => Role::System,
            Self::User { .. } => Role::User,
            Self::Assistant { .. } => Role::Assistant,
            Self::ToolResult { .. } => Role::Tool,
        }
    }

    /// Returns the usage of an assistant message, if the provider reported it.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let Self::Assistant { usage, .. } = self else {
            return None;
        };
        *usage
    }

    /// Returns the text blocks, joined by newlines (C-19).
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::System { text } => text.clone(),
            Self::User { content }
            | Self::Assistant { content, .. }
            | Self::ToolResult { content, .. } => join_text(content),
        }
    }

    /// Returns the tool calls of an assistant message, in order (TURN-38).
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let content: &[Content] = match self {
            Self::Assistant { content, .. } => content,
            Self::System { .. } | Self::User { .. } | Self::ToolResult { .. } => &[],
        };
        content.iter().filter_map(Content::as_tool_call)
    }
}

/// Joins the text blocks with newlines (C-19).
pub(crate) fn join_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

/// Reason why a model message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageStop {
    /// The model finished.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model requested tool calls.
    ToolUse,
    /// The provider failed.
    Error,
    /// The response was cancelled.
    Aborted,
    /// The model refused, or a content filter intervened.
    GuardRail,
}

/// Content block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Image.
    Image(ImageData),
    /// Audio.
    Audio(AudioData),
    /// Document.
    Document(DocumentData),
    /// Reasoning with the provider's signature, returned to the provider byte for byte.
    Thinking {
        /// Readable reasoning; may be empty.
        text: String,
        /// Signature of the provider over the reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Tool call.
    ToolCall(ToolCall),
    /// Provider-specific block, stored unparsed so that it can be sent back.
    Opaque {
        /// Provider that produced the block.
        provider: String,
        /// Raw block.
        value: serde_json::Value,
    },
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the tool call, if the block is one.
    #[must_use]
    pub(crate) fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

/// Image, shared by the messages and events that contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImageData {
    /// MIME type, for example `image/png`.
    pub mime_type: String,
    /// Base64-encoded bytes, as model APIs take them.
    pub base64: Arc<str>,
}

impl ImageData {
    /// MIME types of images that model APIs accept.
    pub const SUPPORTED_MIME_TYPES: [&str; 4] =
        ["image/png", "image/jpeg", "image/gif", "image/webp"];
}

/// Audio, shared by the messages and events that contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AudioData {
    /// MIME type, for example `audio/wav`.
    pub mime_type: String,
    /// Base64-encoded bytes, as model APIs take them.
    pub base64: Arc<str>,
}

/// Document with pages, shared by the messages and events that contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentData {
    /// File name for the model, for example `report.pdf`.
    pub name: String,
    /// MIME type: [`PDF_MIME_TYPE`](Self::PDF_MIME_TYPE).
    pub mime_type: String,
    /// Base64-encoded bytes, as model APIs take them.
    pub base64: Arc<str>,
}

impl DocumentData {
    /// MIME type of the documents that model APIs accept.
    pub const PDF_MIME_TYPE: &str = "application/pdf";
}

/// Identifies the request that a response answers. Reasoning is sent back only to the same model, and signed reasoning
/// only after the same messages, because providers reject it elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestFingerprint {
    /// Model as it was requested; a provider often reports a longer name.
    pub model: String,
    /// Hash of the system prompt, the tools and the messages; `None` if the model's reasoning is not bound to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// Audio format; model APIs accept these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// WAV.
    Wav,
    /// MP3.
    Mp3,
}

impl AudioFormat {
    /// Returns the format for a MIME type; `None` if model APIs do not accept it.
    #[must_use]
    pub fn from_mime_type(mime_type: &str) -> Option<Self> {
        match mime_type {
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some(Self::Wav),
            "audio/mpeg" | "audio/mp3" => Some(Self::Mp3),
            _ => None,
        }
    }
}
