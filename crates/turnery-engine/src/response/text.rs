//! Text: the plain text of whatever shape an answer has.

use super::maps::{Shape, is_said, texts};
use serde_json::Value;

/// The plain text of an answer in any shape: text itself, a message, a list of choices, a vendor's
/// map, blocks, or nothing. What has no text gives the empty string, never an error
/// (JIDO-48 to JIDO-52).
#[must_use]
pub fn extract_text(answer: &Value) -> String {
    match answer {
        Value::Object(map) if is_said(map) => map
            .get("text")
            .map(extract_from_content)
            .unwrap_or_default(),
        Value::Object(map) => match Shape::of(map) {
            Some(shape) => shape.text(),
            None => extract_from_content(answer),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            extract_from_content(answer)
        }
    }
}

/// The plain text of a content value with no envelope around it: text, or blocks, whose texts are
/// joined by newlines (JIDO-53, JIDO-54).
#[must_use]
pub fn extract_from_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => texts(blocks).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => texts(std::slice::from_ref(content)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
