//! Result: what came of a call, for the model and for the host.

use crate::{CallId, Content, Message, ToolEnvelope, ToolFailure, message::joined_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What came of one call of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct ToolResult {
    id: CallId,
    name: String,
    content: String,
    raw_result: ToolEnvelope,
}

/// A result as it is read back: what the model is told follows from the envelope.
#[derive(Deserialize)]
struct Kept {
    id: CallId,
    name: String,
    raw_result: ToolEnvelope,
}

impl From<Kept> for ToolResult {
    fn from(kept: Kept) -> Self {
        Self::new(kept.id, kept.name, kept.raw_result)
    }
}

impl ToolResult {
    /// What came of the call `id` to the tool `name`.
    #[must_use]
    pub fn new(id: CallId, name: String, raw_result: ToolEnvelope) -> Self {
        Self {
            id,
            name,
            content: raw_result.told_text(),
            raw_result,
        }
    }

    /// The call's id (JIDO-21).
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The tool's name as the model called it (JIDO-22).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the model is told, as text: a value as bare JSON, a failure as its message (JIDO-23, C-23).
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Everything that came of it, effects included (JIDO-24).
    #[must_use]
    pub fn raw_result(&self) -> &ToolEnvelope {
        &self.raw_result
    }

    /// The message for the history: role tool, with the call's id and the tool's name (JIDO-30).
    #[must_use]
    pub fn message(&self) -> Message {
        tool_message(self.id.clone(), self.name.clone(), &self.raw_result)
    }
}

/// What the model is told of a call: the one place where an envelope becomes a message.
#[must_use]
pub fn tool_message(call_id: CallId, tool_name: String, envelope: &ToolEnvelope) -> Message {
    let (content, is_error) = envelope.told();
    Message::ToolResult {
        call_id,
        tool_name,
        content,
        is_error,
    }
}

impl ToolEnvelope {
    /// A success that is a value: the model is told it as bare JSON (C-23).
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self {
            value: Some(value.clone()),
            ..Self::text(value.to_string())
        }
    }

    /// The same with these effects.
    #[must_use]
    pub fn with_effects(self, effects: Vec<Value>) -> Self {
        Self { effects, ..self }
    }

    /// What the model is told, and whether it is a failure. A success without content is told by
    /// its value.
    #[must_use]
    pub fn told(&self) -> (Vec<Content>, bool) {
        match (&self.result, &self.value) {
            (Ok(content), Some(value)) if content.is_empty() => {
                (vec![Content::text(value.to_string())], false)
            }
            (Ok(content), _) => (content.clone(), false),
            (Err(failure), _) => (vec![Content::text(&failure.message)], true),
        }
    }

    /// The text of that: a value as bare JSON, a failure as its message (C-23).
    #[must_use]
    pub fn told_text(&self) -> String {
        joined_text(&self.told().0)
    }
}

/// A result of two parts is one of three with no effects (JIDO-43).
impl From<Result<Value, ToolFailure>> for ToolEnvelope {
    fn from(result: Result<Value, ToolFailure>) -> Self {
        match result {
            Ok(value) => Self::json(value),
            Err(failure) => failure.into(),
        }
    }
}

/// A result of three parts: what it gave, and its effects (JIDO-41, JIDO-42).
impl From<(Result<Value, ToolFailure>, Vec<Value>)> for ToolEnvelope {
    fn from((result, effects): (Result<Value, ToolFailure>, Vec<Value>)) -> Self {
        Self::from(result).with_effects(effects)
    }
}

impl From<ToolFailure> for ToolEnvelope {
    fn from(failure: ToolFailure) -> Self {
        Self {
            result: Err(failure),
            ..Self::ok(Vec::new())
        }
    }
}
