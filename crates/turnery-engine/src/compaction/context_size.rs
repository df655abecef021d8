//! Estimates how much of the model's context window messages take.

use crate::{Content, LlmMessage, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{iter::Sum, ops::AddAssign, sync::Arc};

/// Estimated bytes of text per token. Bytes, not characters: a non-ASCII character is about one token.
const BYTES_PER_TOKEN: usize = 4;
/// Estimated size of an image. Unit: tokens.
const IMAGE_TOKENS: u64 = 1_500;
/// Estimated base64 bytes of audio per token: ten to twenty tokens a second.
const AUDIO_BYTES_PER_TOKEN: u64 = 1_024;
/// Estimated base64 bytes of a document per token: a page has about 50 kB and 2,000 tokens.
const DOCUMENT_BYTES_PER_TOKEN: u64 = 32;
/// Overhead of a message, such as its role. Unit: tokens.
const MESSAGE_OVERHEAD_TOKENS: u64 = 4;
/// Overhead of a call in addition to its name and arguments. Unit: bytes.
const CALL_OVERHEAD_BYTES: usize = 40;

/// Size of the model's context or of a part of it, such as one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextSize {
    /// Estimated tokens.
    pub tokens: u64,
    /// Number of messages.
    pub messages: u64,
}

impl ContextSize {
    /// Returns the size of one message.
    #[must_use]
    pub fn of_message(message: &Message) -> Self {
        let tokens = match message {
            Message::System { text } => estimate_text_tokens(text),
            Message::User { content }
            | Message::Assistant { content, .. }
            | Message::ToolResult { content, .. } => estimate_content_tokens(content),
        };
        Self {
            tokens: tokens + MESSAGE_OVERHEAD_TOKENS,
            messages: 1,
        }
    }
}

/// Estimates the size of a text, such as a system prompt or a tool schema. Unit: tokens.
#[must_use]
pub fn estimate_text_tokens(text: &str) -> u64 {
    bytes_to_tokens(text.len())
}

/// Estimates the size of content blocks. Unit: tokens.
#[must_use]
pub fn estimate_content_tokens(content: &[Content]) -> u64 {
    let mut bytes = 0;
    let mut others = 0;
    for item in content {
        match item {
            Content::Text { text } | Content::Thinking { text, .. } => bytes += text.len(),
            Content::Image(_) => others += IMAGE_TOKENS,
            Content::Audio(audio) => {
                others += (audio.base64.len() as u64).div_ceil(AUDIO_BYTES_PER_TOKEN)
            }
            Content::Document(document) => {
                others += (document.base64.len() as u64).div_ceil(DOCUMENT_BYTES_PER_TOKEN)
            }
            Content::ToolCall(call) => {
                bytes += CALL_OVERHEAD_BYTES + call.name.len() + estimate_json_bytes(&call.args)
            }
            Content::Opaque { value, .. } => bytes += estimate_json_bytes(value),
        }
    }
    bytes_to_tokens(bytes) + others
}

fn bytes_to_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// Estimates the serialized size of a value without serializing it. Unit: bytes.
fn estimate_json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => {
            2 + items
                .iter()
                .map(|item| estimate_json_bytes(item) + 1)
                .sum::<usize>()
        }
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| key.len() + 4 + estimate_json_bytes(value);
            2 + fields.iter().map(field).sum::<usize>()
        }
    }
}

impl AddAssign for ContextSize {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.messages += other.messages;
    }
}

impl<'a> Sum<&'a Arc<LlmMessage>> for ContextSize {
    fn sum<I: Iterator<Item = &'a Arc<LlmMessage>>>(messages: I) -> Self {
        let mut size = Self::default();
        messages.for_each(|message| size += Self::of_message(&message.message));
        size
    }
}
