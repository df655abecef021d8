//! Parses responses of the OpenAI responses API, which are lists of typed items.

use super::{
    chat_message::parse_block,
    fields::{JsonObject, first_text},
    piece::ResponsePiece,
    tool_call::RawCall,
};
use crate::ResponseError;
use serde_json::Value;

fn output_items(map: &JsonObject) -> &[Value] {
    match map.get("output") {
        Some(Value::Array(items)) => items,
        Some(_) | None => &[],
    }
}

pub(super) fn check(map: &JsonObject) -> Result<(), ResponseError> {
    match first_text(map, &["status"]) {
        Some("failed" | "cancelled") => Err(ResponseError::ProviderError),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn collect_pieces<'a>(map: &'a JsonObject, out: &mut Vec<ResponsePiece<'a>>) {
    for (n, item) in output_items(map).iter().enumerate() {
        let at = format!("output[{n}]");
        match item.get("type").and_then(Value::as_str) {
            Some("message") => match item.get("content") {
                Some(Value::Array(blocks)) => out.extend(
                    blocks
                        .iter()
                        .enumerate()
                        .map(|(n, value)| parse_block(value, || format!("{at}.content[{n}]"))),
                ),
                Some(Value::String(text)) => out.push(ResponsePiece::Text(text)),
                Some(_) | None => {}
            },
            Some("reasoning") => out.extend(parse_reasoning(item)),
            Some("function_call") => out.push(ResponsePiece::Call(RawCall::new(at, item))),
            Some(_) | None => out.push(ResponsePiece::Opaque(item)),
        }
    }
}

/// Parses reasoning: summaries or full text. Reasoning without readable text is kept raw, to be sent back.
fn parse_reasoning(item: &Value) -> Vec<ResponsePiece<'_>> {
    let lists = ["content", "summary"]
        .iter()
        .filter_map(|key| item.get(*key)?.as_array());
    let texts: Vec<ResponsePiece<'_>> = lists
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .map(|text| ResponsePiece::Thinking {
            text,
            signature: None,
        })
        .collect();
    match texts.is_empty() {
        true => vec![ResponsePiece::Opaque(item)],
        false => texts,
    }
}

pub(super) fn stop_reason(map: &JsonObject) -> Option<&str> {
    map.get("incomplete_details")
        .and_then(|details| details.get("reason")?.as_str())
        .or_else(|| first_text(map, &["status"]))
}
