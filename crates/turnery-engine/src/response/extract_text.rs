//! Extracts the plain text from responses of any shape.

pub use super::json::extract_from_content;
use super::json::{ResponseShape, has_result_type};
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
