//! Message: OpenAI chat completions and Anthropic messages, which differ in what lies around them.

use super::{super::ResponseError, Piece, RawCall, text_at};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// The first choice, or the map itself where one `message` is all there is.
fn chosen(map: &Object) -> Option<&Object> {
    match map.get("choices") {
        Some(Value::Array(choices)) => choices.first().and_then(Value::as_object),
        Some(_) | None => Some(map),
    }
}

/// Where a message stands, for errors.
fn place(map: &Object) -> &'static str {
    match map.contains_key("choices") {
        true => "choices[0].message",
        false => "message",
    }
}

pub(super) fn check_choice(map: &Object) -> Result<(), ResponseError> {
    let message = chosen(map).and_then(|choice| choice.get("message").or(choice.get("text")));
    match message.unwrap_or(&Value::Null) {
        Value::Object(_) | Value::String(_) => Ok(()),
        found => Err(ResponseError::malformed(place(map), "a message", found)),
    }
}

pub(super) fn choice<'a>(map: &'a Object, out: &mut Vec<Piece<'a>>) {
    let Some(choice) = chosen(map) else { return };
    match choice.get("message").or(choice.get("text")) {
        Some(Value::Object(inner)) => message(inner, place(map), out),
        Some(Value::String(text)) => out.push(Piece::Text(text)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {}
    }
}

pub(super) fn choice_stop(map: &Object) -> Option<&str> {
    chosen(map).and_then(|choice| text_at(choice, &["finish_reason", "done_reason"]))
}

/// Reasoning, content, refusal and calls, in the order in which models give them.
pub(super) fn message<'a>(map: &'a Object, at: &str, out: &mut Vec<Piece<'a>>) {
    let at = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    if let Some(text) = text_at(map, &["reasoning_content", "reasoning"]) {
        let signature = None;
        out.push(Piece::Thinking { text, signature });
    }
    match map.get("content") {
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => out.push(Piece::Text(text)),
        Some(Value::Array(blocks)) => {
            let blocks = blocks.iter().enumerate();
            out.extend(blocks.map(|(n, value)| block(value, || format!("{}[{n}]", at("content")))));
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
    }
    if let Some(text) = text_at(map, &["refusal"]) {
        out.push(Piece::Refusal(text));
    }
    if let Some(calls) = map.get("tool_calls") {
        let calls = RawCall::all(&at("tool_calls"), calls);
        out.extend(calls.into_iter().map(Piece::Call));
    }
    if let Some(call @ Value::Object(_)) = map.get("function_call") {
        out.push(Piece::Call(RawCall::new(at("function_call"), call)));
    }
}

/// One block of a content list.
pub(super) fn block<'a>(value: &'a Value, at: impl FnOnce() -> String) -> Piece<'a> {
    if let Value::String(text) = value {
        return Piece::Text(text);
    }
    let Some(map) = value.as_object() else {
        return Piece::Opaque(value);
    };
    match map.get("type").and_then(Value::as_str) {
        Some("text" | "output_text") | None => match text_at(map, &["text"]) {
            Some(text) => Piece::Text(text),
            None => Piece::Opaque(value),
        },
        Some("refusal") => match text_at(map, &["refusal"]) {
            Some(text) => Piece::Refusal(text),
            None => Piece::Opaque(value),
        },
        Some("thinking" | "reasoning") => match text_at(map, &["thinking", "text"]) {
            Some(text) => Piece::Thinking {
                text,
                signature: text_at(map, &["signature"]),
            },
            None => Piece::Opaque(value),
        },
        Some("tool_use" | "tool_call" | "function_call") => Piece::Call(RawCall::new(at(), value)),
        Some(_) => Piece::Opaque(value),
    }
}

/// The texts of a list of blocks.
pub(in super::super) fn texts(blocks: &[Value]) -> impl Iterator<Item = &str> {
    blocks
        .iter()
        .filter_map(|value| match block(value, String::new) {
            Piece::Text(text) | Piece::Refusal(text) => Some(text),
            Piece::Thinking { .. } | Piece::Image { .. } | Piece::Call(_) | Piece::Opaque(_) => {
                None
            }
        })
}
