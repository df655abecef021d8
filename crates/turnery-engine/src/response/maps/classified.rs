//! Classified: a map that says what it is, as a host keeps it, or a response as it was stored.

use super::{
    super::{Response, ResponseError, ToolResult, extract_from_content, source::kind_of, stop_of},
    Calls, RawCall, UNKNOWN, text_at, usage,
};
use crate::{Content, ModelStop, ToolEnvelope};
use serde::Deserialize as _;
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Whether a map is one of these, and not a vendor's.
pub(super) fn is_classified(map: &Object) -> bool {
    is_stored(map) || is_said(map)
}

/// Whether a map says what it is.
pub(in super::super) fn is_said(map: &Object) -> bool {
    !is_stored(map) && matches!(text_at(map, &["type"]), Some("tool_calls" | "final_answer"))
}

fn is_stored(map: &Object) -> bool {
    map.contains_key("stop") && map.contains_key("content")
}

pub(in super::super) fn read(
    map: &Value,
    provider: Option<&str>,
) -> Result<Response, ResponseError> {
    let Value::Object(map) = map else {
        let found = kind_of(map);
        return Err(ResponseError::NotAnObject { found });
    };
    if is_stored(map) {
        return Response::deserialize(map).map_err(|_| ResponseError::Malformed {
            at: "a part".to_owned(),
            wanted: "that of a stored response",
            found: "something else",
        });
    }
    let mut content = Vec::new();
    if let Some(text) = text_at(map, &["thinking_content"]) {
        content.push(Content::Thinking {
            text: text.to_owned(),
            signature: None,
        });
    }
    let text = map.get("text").map(extract_from_content);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        content.push(Content::Text { text });
    }
    let mut calls = Calls::default();
    for call in RawCall::all("tool_calls", get(map, "tool_calls")) {
        content.push(Content::ToolCall(calls.settle(call)?));
    }
    let stop = match get(map, "type") {
        Value::Null => stop_of(!calls.is_empty()),
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
        raw_stop: text_at(map, &["finish", "finish_reason"]).map(str::to_owned),
        usage: get(map, "usage").as_object().and_then(usage::read),
        model: text_at(map, &["model"]).unwrap_or_default().to_owned(),
        provider: provider
            .or_else(|| text_at(map, &["provider"]))
            .unwrap_or(UNKNOWN)
            .to_owned(),
        tool_results: results(get(map, "tool_results"))?,
    })
}

fn results(list: &Value) -> Result<Vec<ToolResult>, ResponseError> {
    match list {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(n, result)| self::result(n, result))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            let wanted = "a list of results";
            Err(ResponseError::malformed("tool_results", wanted, list))
        }
    }
}

/// A result with its envelope, or with nothing but what the model was told.
fn result(n: usize, value: &Value) -> Result<ToolResult, ResponseError> {
    let malformed =
        || ResponseError::malformed(format!("tool_results[{n}]"), "the result of a call", value);
    let map = value.as_object().ok_or_else(malformed)?;
    let id = text_at(map, &["id", "tool_call_id"]).ok_or_else(malformed)?;
    let name = text_at(map, &["name"]).ok_or_else(malformed)?;
    let envelope = match get(map, "raw_result") {
        Value::Null => ToolEnvelope::text(extract_from_content(get(map, "content"))),
        raw => ToolEnvelope::deserialize(raw).map_err(|_| malformed())?,
    };
    Ok(ToolResult::new(id.into(), name.to_owned(), envelope))
}

fn get<'a>(map: &'a Object, key: &str) -> &'a Value {
    map.get(key).unwrap_or(&Value::Null)
}
