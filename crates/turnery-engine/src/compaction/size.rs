//! Size: how much of the model's context window a message takes. An estimate, the same wherever one is needed.

use crate::{Content, LlmMessage, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{iter::Sum, ops::AddAssign, sync::Arc};

/// Text of this many bytes is taken for one token. Bytes, not characters: a character outside of
/// ASCII is about a token of its own.
const BYTES_PER_TOKEN: usize = 4;
/// What a picture takes. Unit: tokens.
const IMAGE: u64 = 1_500;
/// A recording of this many bytes of base64 is taken for one token: ten to twenty a second.
const AUDIO_PER_TOKEN: u64 = 1_024;
/// What a message takes besides what it says: its role, its marks. Unit: tokens.
const MESSAGE: u64 = 4;
/// What a call takes besides its name and arguments: its id, its marks. Unit: bytes.
const CALL: usize = 40;

/// How much a request holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextSize {
    /// Tokens, estimated.
    pub tokens: u64,
    /// Messages.
    pub messages: u64,
}

impl ContextSize {
    /// Of one message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let tokens = match message {
            Message::System { text } => text_tokens(text),
            Message::User { content }
            | Message::Assistant { content, .. }
            | Message::ToolResult { content, .. } => content_tokens(content),
        };
        Self {
            tokens: tokens + MESSAGE,
            messages: 1,
        }
    }
}

/// What a text takes: a system prompt, the schema of a tool. Unit: tokens.
#[must_use]
pub fn text_tokens(text: &str) -> u64 {
    tokens(text.len())
}

/// What the pieces of a message take. Unit: tokens.
#[must_use]
pub fn content_tokens(content: &[Content]) -> u64 {
    let mut bytes = 0;
    let mut others = 0;
    for item in content {
        match item {
            Content::Text { text } | Content::Thinking { text, .. } => bytes += text.len(),
            Content::Image(_) => others += IMAGE,
            Content::Audio(audio) => {
                others += (audio.base64.len() as u64).div_ceil(AUDIO_PER_TOKEN)
            }
            Content::ToolCall(call) => bytes += CALL + call.name.len() + json_bytes(&call.args),
            Content::Opaque { value, .. } => bytes += json_bytes(value),
        }
    }
    tokens(bytes) + others
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// About as many bytes as the value takes when it is written down, without writing it.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| key.len() + 4 + json_bytes(value);
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
        messages.for_each(|message| size += Self::of(&message.message));
        size
    }
}
