//! Parts of a tool call that both protocol versions encode alike.

use crate::{limits::RAW_VALUE_LIMIT, view::meta::turnery_meta};
use agent_client_protocol_schema::v1::Meta;
use serde_json::{Map, Value, json};
use turnery_agent::view::{CallEnd, CallView};
use turnery_engine::{Disposition, LoopId, SessionId, ToolEnvelope};
use turnery_tools::escape_invisible_line;

const PARENT_CALL_ID: &str = "parentCallId";

/// Returns the title of a call, or its tool's name if the title is empty. Hidden characters are made visible.
pub(crate) fn display_title(title: &str, tool: &str) -> String {
    let title = if title.is_empty() { tool } else { title };
    escape_invisible_line(title).into_owned()
}

/// Returns the raw arguments or result, unless the line would become huge (TR-9).
pub(crate) fn raw_value(value: &Value) -> Option<Value> {
    (json_size(value) <= RAW_VALUE_LIMIT).then(|| value.clone())
}

/// Returns the raw result of a call.
pub(crate) fn raw_output(envelope: &ToolEnvelope) -> Option<Value> {
    match (&envelope.value, &envelope.result) {
        (Some(value), _) => raw_value(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

/// Returns the `_meta` of a call that another one has requested: the id of that call (LASH-71).
pub(crate) fn call_meta(call: &CallView) -> Option<Meta> {
    let parent = call.request.parent_call_id.as_ref();
    parent.map(|parent| turnery_meta(json!({ PARENT_CALL_ID: parent })))
}

/// Returns facts about the end of a call that the protocol has no field for.
pub(crate) fn call_end_meta(call: &CallView, end: &CallEnd<'_>) -> Option<Meta> {
    let mut members = Map::new();
    if let Some(parent) = &call.request.parent_call_id {
        members.insert(PARENT_CALL_ID.to_owned(), json!(parent));
    }
    if end.disposition != Disposition::Executed {
        members.insert("disposition".to_owned(), json!(end.disposition));
    }
    if let Some(child) = end.child_loop_id {
        members.insert("childLoopId".to_owned(), json!(child));
    }
    let session = end.child_loop_id.map(LoopId::session_id);
    if let Some(session) = session.as_ref().or(call.child_session.as_ref()) {
        members.insert("childSessionId".to_owned(), json!(session));
    }
    (!members.is_empty()).then(|| turnery_meta(Value::Object(members)))
}

/// Returns the `_meta` that names the child session of a call.
pub(crate) fn child_session_meta(child: &SessionId) -> Meta {
    turnery_meta(json!({ "childSessionId": child }))
}

/// Estimates the size of a value as JSON. Unit: bytes.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(json_size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(k, v)| k.len() + 4 + json_size(v))
            .sum(),
    }
}
