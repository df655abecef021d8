//! Defines the parts of a response, and how an API encodes them as a stream.

use super::script::{FinishReason, TokenUsage};
use bytes::Bytes;
use serde_json::Value;
use std::mem::discriminant;

/// Call of a tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) arguments: ToolArguments,
}

/// Arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolArguments {
    Object(Value),
    Text(String),
}

impl ToolCall {
    /// Returns the arguments as text, for the OpenAI APIs.
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            ToolArguments::Object(fields) => fields.to_string(),
            ToolArguments::Text(text) => text.clone(),
        }
    }

    /// Returns the arguments as an object, for the other APIs.
    pub(super) fn arguments_object(&self) -> Value {
        match &self.arguments {
            ToolArguments::Object(fields) => fields.clone(),
            ToolArguments::Text(text) => serde_json::json!({ "input": text }),
        }
    }
}

/// Part of the content of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ResponsePart {
    Text(String),
    Think(String),
    Refusal(String),
    Call(ToolCall),
}

impl ResponsePart {
    /// Returns the text; `None` for a call.
    pub(super) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Text(text) | Self::Think(text) | Self::Refusal(text) => Some(text),
            Self::Call(_) => None,
        }
    }
}

/// Finish reason and usage of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseEnd {
    pub(super) finish_reason: FinishReason,
    pub(super) usage: TokenUsage,
}

/// Metadata of a response that every event may repeat.
#[derive(Clone, Debug)]
pub(super) struct ResponseHead {
    /// Number of the request, from which all ids are derived.
    pub(super) number: usize,
    pub(super) model: String,
}

/// Encoder of a response as the stream events of one API.
pub(super) trait StreamEncoder: Send {
    /// Returns the events that begin the response.
    fn encode_start(&mut self) -> Vec<Bytes>;
    /// Returns the events of one more part.
    fn encode_part(&mut self, part: &ResponsePart) -> Vec<Bytes>;
    /// Returns the events that end the response.
    fn encode_end(&mut self, end: ResponseEnd) -> Vec<Bytes>;
    /// Returns the events of an error within the stream.
    fn encode_error(&mut self, status: u16, message: &str) -> Vec<Bytes>;
}

/// Encodes a server-sent event.
pub(super) fn sse_event(name: Option<&str>, data: &Value) -> Bytes {
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    Bytes::from(format!("{name}data: {data}\n\n"))
}

/// Joins adjacent parts of the same kind.
pub(super) fn merge_parts(parts: &[ResponsePart]) -> Vec<ResponsePart> {
    let mut joined: Vec<ResponsePart> = Vec::new();
    for part in parts {
        let last = joined.last_mut();
        let same = last.filter(|last| discriminant(*last) == discriminant(part));
        match (
            same.and_then(ResponsePart::text_mut),
            part.clone().text_mut(),
        ) {
            (Some(all), Some(text)) => all.push_str(text),
            _ => joined.push(part.clone()),
        }
    }
    joined
}
