//! Parses responses of Gemini generateContent, of which only the first candidate is used.

use super::{
    fields::{JsonObject, first_text},
    piece::ResponsePiece,
    tool_call::RawCall,
};
use crate::ResponseError;
use serde_json::Value;

fn first_candidate(map: &JsonObject) -> Option<&Value> {
    map.get("candidates")?.as_array()?.first()
}

/// Returns the reason why Gemini blocked the prompt.
fn block_reason(map: &JsonObject) -> Option<&str> {
    map.get("promptFeedback")?.get("blockReason")?.as_str()
}

pub(super) fn check(map: &JsonObject) -> Result<(), ResponseError> {
    match first_candidate(map).unwrap_or(&Value::Null) {
        Value::Object(_) => Ok(()),
        Value::Null if block_reason(map).is_some() => Ok(()),
        found => Err(ResponseError::malformed(
            "candidates[0]",
            "an object",
            found,
        )),
    }
}

pub(super) fn collect_pieces<'a>(map: &'a JsonObject, out: &mut Vec<ResponsePiece<'a>>) {
    let parts = first_candidate(map).and_then(|candidate| candidate.get("content")?.get("parts"));
    let Some(Value::Array(parts)) = parts else {
        return;
    };
    for (n, part) in parts.iter().enumerate() {
        out.push(parse_part(part, n));
    }
}

fn parse_part(part: &Value, n: usize) -> ResponsePiece<'_> {
    let Some(map) = part.as_object() else {
        return ResponsePiece::Opaque(part);
    };
    if let Some(call) = map.get("functionCall") {
        let at = format!("candidates[0].content.parts[{n}].functionCall");
        return ResponsePiece::Call(RawCall::new(at, call));
    }
    if let Some(image) = map.get("inlineData").and_then(Value::as_object)
        && let (Some(mime_type), Some(base64)) = (
            first_text(image, &["mimeType"]),
            first_text(image, &["data"]),
        )
    {
        return ResponsePiece::Image { mime_type, base64 };
    }
    let is_thought = map.get("thought").and_then(Value::as_bool) == Some(true);
    match first_text(map, &["text"]) {
        Some(text) if is_thought => ResponsePiece::Thinking {
            text,
            signature: first_text(map, &["thoughtSignature"]),
        },
        Some(text) => ResponsePiece::Text(text),
        None => ResponsePiece::Opaque(part),
    }
}

pub(super) fn stop_reason(map: &JsonObject) -> Option<&str> {
    match first_candidate(map) {
        Some(candidate) => candidate.get("finishReason")?.as_str(),
        None => block_reason(map).map(|_| "SAFETY"),
    }
}
