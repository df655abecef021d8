//! Title and raw values of a tool call.

use crate::limits::RAW_VALUE_LIMIT;
use serde_json::Value;
use turnery_tools::visible_line;

/// Returns the title of a call, or its tool's name if the title is empty. Hidden characters are made visible.
pub(crate) fn display_title(title: &str, tool: &str) -> String {
    let title = if title.is_empty() { tool } else { title };
    visible_line(title).into_owned()
}

/// Returns the raw arguments or result, unless the line would become huge (TR-9).
pub(crate) fn raw_value(value: &Value) -> Option<Value> {
    (json_size(value) <= RAW_VALUE_LIMIT).then(|| value.clone())
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
