//! Finds messages and calls.

use crate::{
    json::{list, text},
    request::ApiRequest,
};
use serde_json::Value;

pub(super) fn messages<'a>(request: &ApiRequest<'a>) -> &'a [Value] {
    list(request.body, "messages")
}

/// Returns the messages of a role with their places.
pub(super) fn of_role<'a>(request: &ApiRequest<'a>, role: &str) -> Vec<(usize, &'a Value)> {
    let all = messages(request).iter().enumerate();
    all.filter(|(_, message)| text(message, "role") == role)
        .collect()
}

/// Returns each call with its place.
pub(super) fn calls<'a>(request: &ApiRequest<'a>) -> Vec<(String, &'a Value)> {
    let of_message = |(i, message): (usize, &'a Value)| {
        let calls = list(message, "tool_calls").iter().enumerate();
        calls.map(move |(j, call)| (format!("messages[{i}].tool_calls[{j}]"), call))
    };
    of_role(request, "assistant")
        .into_iter()
        .flat_map(of_message)
        .collect()
}

/// Returns the function of a call or a tool.
pub(super) fn function(value: &Value) -> &Value {
    value.get("function").unwrap_or(&Value::Null)
}
