//! Results of tool calls, for the model and for the host.

use crate::{CallId, Content, Message, ToolEnvelope, ToolError, message::join_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Result of one tool call of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredToolResult")]
pub struct ToolResult {
    id: CallId,
    name: String,
    content: String,
    raw_result: ToolEnvelope,
}

/// Stored form of a result; the content for the model is derived from the envelope.
#[derive(Deserialize)]
struct StoredToolResult {
    id: CallId,
    name: String,
    raw_result: ToolEnvelope,
}

impl From<StoredToolResult> for ToolResult {
    fn from(stored: StoredToolResult) -> Self {
        Self::new(stored.id, stored.name, stored.raw_result)
    }
}

impl ToolResult {
    /// Creates the result of the call `id` to the tool `name`.
    #[must_use]
    pub fn new(id: CallId, name: String, raw_result: ToolEnvelope) -> Self {
        Self {
            id,
            name,
            content: raw_result.to_model_text(),
            raw_result,
        }
    }

    /// Returns the call id (JIDO-21).
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// Returns the tool name as the model wrote it (JIDO-22).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text for the model: a value as bare JSON, an error as its message (JIDO-23, C-23).
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Returns the complete envelope, including effects (JIDO-24).
    #[must_use]
    pub fn raw_result(&self) -> &ToolEnvelope {
        &self.raw_result
    }

    /// Returns the result as a message with role tool, call id and tool name (JIDO-30).
    #[must_use]
    pub fn message(&self) -> Message {
        tool_message(self.id.clone(), self.name.clone(), &self.raw_result)
    }
}

/// Builds the tool message of a call. All envelopes become messages here.
#[must_use]
pub fn tool_message(call_id: CallId, tool_name: String, envelope: &ToolEnvelope) -> Message {
    let (content, is_error) = envelope.to_model_content();
    Message::ToolResult {
        call_id,
        tool_name,
        content,
        is_error,
    }
}

impl ToolEnvelope {
    /// Creates a successful result from a value, which the model receives as bare JSON (C-23).
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self {
            value: Some(value.clone()),
            ..Self::text(value.to_string())
        }
    }

    /// Returns the envelope with these effects.
    #[must_use]
    pub fn with_effects(self, effects: Vec<Value>) -> Self {
        Self { effects, ..self }
    }

    /// Returns the content for the model, and true if it is an error. A success without content is
    /// represented by its value.
    #[must_use]
    pub fn to_model_content(&self) -> (Vec<Content>, bool) {
        match (&self.result, &self.value) {
            (Ok(content), Some(value)) if content.is_empty() => {
                (vec![Content::text(value.to_string())], false)
            }
            (Ok(content), _) => (content.clone(), false),
            (Err(failure), _) => (vec![Content::text(&failure.message)], true),
        }
    }

    /// Returns the text for the model: a value as bare JSON, an error as its message (C-23).
    #[must_use]
    pub fn to_model_text(&self) -> String {
        join_text(&self.to_model_content().0)
    }
}

/// Converts a result without effects (JIDO-43).
impl From<Result<Value, ToolError>> for ToolEnvelope {
    fn from(result: Result<Value, ToolError>) -> Self {
        match result {
            Ok(value) => Self::json(value),
            Err(failure) => failure.into(),
        }
    }
}

/// Converts a result with effects (JIDO-41, JIDO-42).
impl From<(Result<Value, ToolError>, Vec<Value>)> for ToolEnvelope {
    fn from((result, effects): (Result<Value, ToolError>, Vec<Value>)) -> Self {
        Self::from(result).with_effects(effects)
    }
}

impl From<ToolError> for ToolEnvelope {
    fn from(failure: ToolError) -> Self {
        Self {
            result: Err(failure),
            ..Self::ok(Vec::new())
        }
    }
}
