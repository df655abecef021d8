//! Responses: the OpenAI responses API. Its answer is a list of items, each of its own type.

use super::{super::ResponseError, Piece, RawCall, message::block, text_at};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

fn items(map: &Object) -> &[Value] {
    match map.get("output") {
        Some(Value::Array(items)) => items,
        Some(_) | None => &[],
    }
}

pub(super) fn check(map: &Object) -> Result<(), ResponseError> {
    match text_at(map, &["status"]) {
        Some("failed" | "cancelled") => Err(ResponseError::Failed),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn output<'a>(map: &'a Object, out: &mut Vec<Piece<'a>>) {
    for (n, item) in items(map).iter().enumerate() {
        let at = format!("output[{n}]");
        match item.get("type").and_then(Value::as_str) {
            Some("message") => match item.get("content") {
                Some(Value::Array(blocks)) => out.extend(
                    blocks
                        .iter()
                        .enumerate()
                        .map(|(n, value)| block(value, || format!("{at}.content[{n}]"))),
                ),
                Some(Value::String(text)) => out.push(Piece::Text(text)),
                Some(_) | None => {}
            },
            Some("reasoning") => out.extend(thoughts(item)),
            Some("function_call") => out.push(Piece::Call(RawCall::new(at, item))),
            Some(_) | None => out.push(Piece::Opaque(item)),
        }
    }
}

/// Reasoning as the API shows it: summaries, or the whole of it. What shows nothing is kept raw, to
/// be sent back.
fn thoughts(item: &Value) -> Vec<Piece<'_>> {
    let lists = ["content", "summary"]
        .iter()
        .filter_map(|key| item.get(*key)?.as_array());
    let texts: Vec<Piece<'_>> = lists
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .map(|text| Piece::Thinking {
            text,
            signature: None,
        })
        .collect();
    match texts.is_empty() {
        true => vec![Piece::Opaque(item)],
        false => texts,
    }
}

pub(super) fn stop(map: &Object) -> Option<&str> {
    map.get("incomplete_details")
        .and_then(|details| details.get("reason")?.as_str())
        .or_else(|| text_at(map, &["status"]))
}
