//! Extracts the plain text from responses of any shape.

use super::json::{ResponseShape, block_texts, has_result_type};
use serde_json::Value;

/// Returns the plain text of a response of any shape: a string, a message, a list of choices, a vendor's map,
/// blocks, or null. Values without text give the empty string, never an error (JIDO-48 to JIDO-52).
#[must_use]
pub fn extract_text(answer: &Value) -> String {
    match answer {
        Value::Object(map) if has_result_type(map) => map
            .get("text")
            .map(extract_from_content)
            .unwrap_or_default(),
        Value::Object(map) => match ResponseShape::detect(map) {
            Some(shape) => shape.text(),
            None => extract_from_content(answer),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            extract_from_content(answer)
        }
    }
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
