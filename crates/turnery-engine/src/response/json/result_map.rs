//! Parses result maps, which hosts use to pass a response in the fields `type`, `text`, `tool_calls` and
//! `tool_results`, and stored responses.

use super::{
    chat_message::extract_from_content,
    fields::{JsonObject, first_text, get_or_null},
    piece::UNKNOWN_PROVIDER,
    tool_call::RawCall,
    usage,
};
use crate::{CallIds, Content, ModelStop, Response, ResponseError, ToolEnvelope, ToolResult};
use serde::Deserialize as _;
use serde_json::Value;

/// Returns true if a map is a result map or a stored response, not a vendor's.
pub(super) fn is_result_map(map: &JsonObject) -> bool {
    is_stored_response(map) || has_result_type(map)
}

/// Returns true if the `type` of a map is `tool_calls` or `final_answer`, and the map is not a stored
/// response.
pub(in super::super) fn has_result_type(map: &JsonObject) -> bool {
    !is_stored_response(map)
        && matches!(
            first_text(map, &["type"]),
            Some("tool_calls" | "final_answer")
        )
}

fn is_stored_response(map: &JsonObject) -> bool {
    map.contains_key("stop") && map.contains_key("content")
}

pub(in super::super) fn parse_result_map(
    map: &Value,
    provider: Option<&str>,
) -> Result<Response, ResponseError> {
    let Value::Object(map) = map else {
        return Err(ResponseError::not_an_object(map));
    };
    if is_stored_response(map) {
        return Response::deserialize(map).map_err(|_| ResponseError::Malformed {
            at: "a part".to_owned(),
            wanted: "that of a stored response",
            found: "something else",
        });
    }
    let mut content = Vec::new();
    if let Some(text) = first_text(map, &["thinking_content"]) {
        content.push(Content::Thinking {
            text: text.to_owned(),
            signature: None,
        });
    }
    let text = map.get("text").map(extract_from_content);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        content.push(Content::Text { text });
    }
    let mut ids = CallIds::default();
    for call in RawCall::list_from("tool_calls", get_or_null(map, "tool_calls")) {
        content.push(Content::ToolCall(call.parse(&mut ids)?));
    }
    let stop = match get_or_null(map, "type") {
        Value::Null => ModelStop::from_response(None, !ids.is_empty(), false),
        Value::String(kind) if kind == "tool_calls" => ModelStop::ToolUse,
        Value::String(kind) if kind == "final_answer" => ModelStop::EndTurn,
        found => {
            let wanted = "tool_calls or final_answer";
            return Err(ResponseError::malformed("type", wanted, found));
        }
    };
    Ok(Response {
        content,
        stop,
        raw_stop: first_text(map, &["finish", "finish_reason"]).map(str::to_owned),
        usage: get_or_null(map, "usage")
            .as_object()
            .and_then(usage::parse_usage),
        model: first_text(map, &["model"]).unwrap_or_default().to_owned(),
        provider: provider
            .or_else(|| first_text(map, &["provider"]))
            .unwrap_or(UNKNOWN_PROVIDER)
            .to_owned(),
        tool_results: parse_results(get_or_null(map, "tool_results"))?,
        request: None,
    })
}

fn parse_results(list: &Value) -> Result<Vec<ToolResult>, ResponseError> {
    match list {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(n, result)| parse_result(n, result))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            let wanted = "a list of results";
            Err(ResponseError::malformed("tool_results", wanted, list))
        }
    }
}

/// Parses a tool result, with its envelope or with only the text for the model.
fn parse_result(n: usize, value: &Value) -> Result<ToolResult, ResponseError> {
    let malformed =
        || ResponseError::malformed(format!("tool_results[{n}]"), "the result of a call", value);
    let map = value.as_object().ok_or_else(malformed)?;
    let id = first_text(map, &["id", "tool_call_id"]).ok_or_else(malformed)?;
    let name = first_text(map, &["name"]).ok_or_else(malformed)?;
    let envelope = match get_or_null(map, "raw_result") {
        Value::Null => ToolEnvelope::text(extract_from_content(get_or_null(map, "content"))),
        raw => ToolEnvelope::deserialize(raw).map_err(|_| malformed())?,
    };
    Ok(ToolResult::new(id.into(), name.to_owned(), envelope))
}
