//! Parses messages of OpenAI chat completions and Anthropic messages, which differ in their envelopes.

use super::{
    fields::{JsonObject, first_text},
    piece::ResponsePiece,
    tool_call::RawCall,
};
use crate::ResponseError;
use serde_json::Value;

/// Returns the first choice, or the map itself if it holds a single `message`.
fn first_choice(map: &JsonObject) -> Option<&JsonObject> {
    match map.get("choices") {
        Some(Value::Array(choices)) => choices.first().and_then(Value::as_object),
        Some(_) | None => Some(map),
    }
}

/// Returns the path of the message, for errors.
fn message_path(map: &JsonObject) -> &'static str {
    match map.contains_key("choices") {
        true => "choices[0].message",
        false => "message",
    }
}

pub(super) fn check_choice(map: &JsonObject) -> Result<(), ResponseError> {
    let message = first_choice(map).and_then(|choice| choice.get("message").or(choice.get("text")));
    match message.unwrap_or(&Value::Null) {
        Value::Object(_) | Value::String(_) => Ok(()),
        found => Err(ResponseError::malformed(
            message_path(map),
            "a message",
            found,
        )),
    }
}

pub(super) fn collect_choice_pieces<'a>(map: &'a JsonObject, out: &mut Vec<ResponsePiece<'a>>) {
    let Some(choice) = first_choice(map) else {
        return;
    };
    match choice.get("message").or(choice.get("text")) {
        Some(Value::Object(inner)) => collect_message_pieces(inner, message_path(map), out),
        Some(Value::String(text)) => out.push(ResponsePiece::Text(text)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {}
    }
}

pub(super) fn choice_stop_reason(map: &JsonObject) -> Option<&str> {
    first_choice(map).and_then(|choice| first_text(choice, &["finish_reason", "done_reason"]))
}

/// Collects reasoning, content, refusal and calls, in the order in which models produce them.
pub(super) fn collect_message_pieces<'a>(
    map: &'a JsonObject,
    at: &str,
    out: &mut Vec<ResponsePiece<'a>>,
) {
    let at = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    if let Some(text) = first_text(map, &["reasoning_content", "reasoning"]) {
        let signature = None;
        out.push(ResponsePiece::Thinking { text, signature });
    }
    match map.get("content") {
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => out.push(ResponsePiece::Text(text)),
        Some(Value::Array(blocks)) => {
            let blocks = blocks.iter().enumerate();
            out.extend(
                blocks.map(|(n, value)| parse_block(value, || format!("{}[{n}]", at("content")))),
            );
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
    }
    if let Some(text) = first_text(map, &["refusal"]) {
        out.push(ResponsePiece::Refusal(text));
    }
    if let Some(calls) = map.get("tool_calls") {
        let calls = RawCall::list_from(&at("tool_calls"), calls);
        out.extend(calls.into_iter().map(ResponsePiece::Call));
    }
    if let Some(call @ Value::Object(_)) = map.get("function_call") {
        out.push(ResponsePiece::Call(RawCall::new(at("function_call"), call)));
    }
}

/// Parses one block of a content list.
pub(super) fn parse_block<'a>(value: &'a Value, at: impl FnOnce() -> String) -> ResponsePiece<'a> {
    if let Value::String(text) = value {
        return ResponsePiece::Text(text);
    }
    let Some(map) = value.as_object() else {
        return ResponsePiece::Opaque(value);
    };
    match map.get("type").and_then(Value::as_str) {
        Some("text" | "output_text") | None => match first_text(map, &["text"]) {
            Some(text) => ResponsePiece::Text(text),
            None => ResponsePiece::Opaque(value),
        },
        Some("refusal") => match first_text(map, &["refusal"]) {
            Some(text) => ResponsePiece::Refusal(text),
            None => ResponsePiece::Opaque(value),
        },
        Some("thinking" | "reasoning") => match first_text(map, &["thinking", "text"]) {
            Some(text) => ResponsePiece::Thinking {
                text,
                signature: first_text(map, &["signature"]),
            },
            None => ResponsePiece::Opaque(value),
        },
        Some("tool_use" | "tool_call" | "function_call") => {
            ResponsePiece::Call(RawCall::new(at(), value))
        }
        Some(_) => ResponsePiece::Opaque(value),
    }
}

/// Returns the texts of a list of blocks.
fn block_texts(blocks: &[Value]) -> impl Iterator<Item = &str> {
    let pieces = blocks.iter().map(|value| parse_block(value, String::new));
    pieces.filter_map(|piece| piece.text())
}

/// Returns the plain text of a content value without envelope: a string, or blocks whose texts are joined by
/// newlines (JIDO-53, JIDO-54).
#[must_use]
pub fn extract_from_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => block_texts(blocks).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => block_texts(std::slice::from_ref(content)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
