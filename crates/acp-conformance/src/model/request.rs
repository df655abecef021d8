//! Represents model requests independently of the API.

use serde_json::Value;

/// API of a model request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini `generateContent`.
    Gemini,
}

/// Request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// API of the request.
    pub api: Api,
    /// Name of the requested model.
    pub model: String,
    /// True if the response is to be streamed.
    pub streaming: bool,
    /// System prompt, its parts joined by newlines.
    pub system_prompt: String,
    /// Messages of the conversation.
    pub messages: Vec<ConversationMessage>,
    /// Offered tools.
    pub tools: Vec<OfferedTool>,
    /// JSON schema requested for the response.
    pub schema: Option<Value>,
}

/// Message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationMessage {
    /// Author of the message.
    pub role: MessageRole,
    /// Text; of a tool call, the name and arguments.
    pub text: String,
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// User, or the agent on the user's behalf.
    User,
    /// Model.
    Model,
    /// Tool, with its result.
    Tool,
}

/// Tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Name of the tool.
    pub name: String,
    /// Namespace of the tool, in APIs that have namespaces.
    pub namespace: Option<String>,
    /// Schema of the arguments; `None` if the tool takes free text.
    pub schema: Option<Value>,
}

impl ModelRequest {
    /// Creates a request without messages and tools.
    pub(super) fn new(api: Api, model: &str, streaming: bool, schema: Option<&Value>) -> Self {
        Self {
            api,
            model: model.to_owned(),
            streaming,
            system_prompt: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            schema: schema.cloned(),
        }
    }

    pub(super) fn push_tool(&mut self, name: &str, schema: &Value) {
        self.tools.push(OfferedTool {
            name: name.to_owned(),
            namespace: None,
            schema: Some(schema.clone()),
        });
    }

    /// Returns the texts of the user, in order.
    pub fn user_texts(&self) -> impl Iterator<Item = &str> {
        let users = self
            .messages
            .iter()
            .filter(|message| message.role == MessageRole::User);
        users.map(|message| message.text.as_str())
    }

    pub(super) fn push_message(&mut self, by: MessageRole, text: String) {
        self.messages.push(ConversationMessage { role: by, text });
    }
}

/// Returns the text of a content: a string, a part with a `text`, or a list of these.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(content_text).collect();
            texts.join("\n")
        }
        Value::Object(part) => part.get("text").map(content_text).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Returns the items of an array; empty for other values.
pub(super) fn array_items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a string field, or an empty string.
pub(super) fn str_field<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Renders a tool call as the text of a message.
pub(super) fn render_call(name: &str, arguments: &Value) -> String {
    match arguments {
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    }
}
