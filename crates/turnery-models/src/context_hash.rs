//! Identifies what a response was produced from, so that reasoning goes back only to where it is valid.

use crate::{
    history::ReasoningScope,
    model::{ModelInfo, ModelRequest},
};
use sha2::{Digest, Sha256};
use turnery_engine::{Content, LlmMessage, Message, RequestFingerprint};

/// Bytes of a hash that are kept.
const HASH_BYTES: usize = 12;

/// Hash of the system prompt, the tools and the messages so far. A message counts by its id and its size: compaction
/// shortens results and keeps their ids, and nothing else changes a message.
#[derive(Clone)]
pub(crate) struct ContextHash(Sha256);

impl ContextHash {
    /// Creates the hash of a request without messages.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let mut hash = Self(Sha256::new());
        hash.add(&request.system);
        for tool in request.tools.iter() {
            hash.add(&tool.name);
            hash.add(&tool.description);
            hash.add(tool.schema.as_json());
        }
        hash
    }

    /// Adds the next message.
    pub(crate) fn push(&mut self, message: &LlmMessage) {
        self.add(message.message_id.as_str());
        let size = match &message.message {
            Message::System { text } => text.len(),
            Message::User { content }
            | Message::Assistant { content, .. }
            | Message::ToolResult { content, .. } => content.iter().map(content_bytes).sum(),
        };
        self.0.update(size.to_le_bytes());
    }

    fn add(&mut self, text: &str) {
        self.0.update(text.len().to_le_bytes());
        self.0.update(text);
    }

    /// Returns the hash in hexadecimal digits.
    pub(crate) fn to_hex(&self) -> String {
        let hash = self.0.clone().finalize();
        hash.iter()
            .take(HASH_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text { text } => text.len(),
        Content::Image(image) => image.base64.len(),
        Content::Audio(audio) => audio.base64.len(),
        Content::Document(document) => document.base64.len(),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => 0,
    }
}

/// Returns the fingerprint of a request to the model `info`.
pub(crate) fn fingerprint(
    info: &ModelInfo,
    request: &ModelRequest,
    scope: ReasoningScope,
) -> RequestFingerprint {
    let context = || {
        let mut hash = ContextHash::new(request);
        for message in request.messages.iter() {
            hash.push(message);
        }
        hash.to_hex()
    };
    RequestFingerprint {
        model: info.name.model.clone(),
        context: (scope == ReasoningScope::SameContext).then(context),
    }
}
