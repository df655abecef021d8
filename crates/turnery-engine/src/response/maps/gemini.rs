//! Gemini: generateContent. Its answer is the first of its candidates.

use super::{super::ResponseError, Piece, RawCall, text_at};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

fn candidate(map: &Object) -> Option<&Value> {
    map.get("candidates")?.as_array()?.first()
}

/// The reason why the prompt was not even tried.
fn blocked(map: &Object) -> Option<&str> {
    map.get("promptFeedback")?.get("blockReason")?.as_str()
}

pub(super) fn check(map: &Object) -> Result<(), ResponseError> {
    match candidate(map).unwrap_or(&Value::Null) {
        Value::Object(_) => Ok(()),
        Value::Null if blocked(map).is_some() => Ok(()),
        found => Err(ResponseError::malformed(
            "candidates[0]",
            "an object",
            found,
        )),
    }
}

pub(super) fn parts<'a>(map: &'a Object, out: &mut Vec<Piece<'a>>) {
    let parts = candidate(map).and_then(|candidate| candidate.get("content")?.get("parts"));
    let Some(Value::Array(parts)) = parts else {
        return;
    };
    for (n, part) in parts.iter().enumerate() {
        out.push(piece(part, n));
    }
}

fn piece(part: &Value, n: usize) -> Piece<'_> {
    let Some(map) = part.as_object() else {
        return Piece::Opaque(part);
    };
    if let Some(call) = map.get("functionCall") {
        let at = format!("candidates[0].content.parts[{n}].functionCall");
        return Piece::Call(RawCall::new(at, call));
    }
    if let Some(image) = map.get("inlineData").and_then(Value::as_object)
        && let (Some(mime_type), Some(base64)) =
            (text_at(image, &["mimeType"]), text_at(image, &["data"]))
    {
        return Piece::Image { mime_type, base64 };
    }
    let is_thought = map.get("thought").and_then(Value::as_bool) == Some(true);
    match text_at(map, &["text"]) {
        Some(text) if is_thought => Piece::Thinking {
            text,
            signature: text_at(map, &["thoughtSignature"]),
        },
        Some(text) => Piece::Text(text),
        None => Piece::Opaque(part),
    }
}

pub(super) fn stop(map: &Object) -> Option<&str> {
    match candidate(map) {
        Some(candidate) => candidate.get("finishReason")?.as_str(),
        None => blocked(map).map(|_| "SAFETY"),
    }
}
