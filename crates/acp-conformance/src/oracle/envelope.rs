//! Checks the JSON-RPC 2.0 envelope of every message (RPC-1, RPC-4, RPC-13, RPC-14, TR-3).

use super::recorder::RuleRecorder;
use crate::official_schema::MessageKind;
use serde_json::Value;

/// Defined error codes of the reserved ranges, in either protocol version.
const RESERVED_CODES: [i64; 9] = [
    -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32022,
];

/// Checks the envelope and returns the kind of the message, if it has one.
pub(super) fn check(message: &Value, recorder: &mut RuleRecorder) -> Option<MessageKind> {
    recorder.record_check("RPC-1", message["jsonrpc"] == "2.0", || {
        "it has no \"jsonrpc\": \"2.0\"".to_owned()
    });
    let has = |key: &str| message.get(key).is_some();
    let Some(kind) = MessageKind::of(message) else {
        if has("id") && !has("method") {
            recorder.record_violation("RPC-4", "it has neither a result nor an error");
        } else {
            recorder.record_violation("TR-3", "it is no request, no notification and no response");
        }
        return None;
    };
    match kind {
        MessageKind::Request | MessageKind::Notification => {
            if has("result") || has("error") {
                recorder.record_violation("RPC-4", "it is a request and a response in one");
                return None;
            }
            let is_structured = match message.get("params") {
                None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => true,
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
            };
            if !is_structured {
                recorder.record_violation("TR-3", "params are neither an object nor an array");
            }
        }
        MessageKind::Response => {
            if !has("id") {
                recorder.record_violation("TR-3", "a response has an id, null if there is none");
            }
            let both = has("result") && has("error");
            recorder.record_check("RPC-4", !both, || "it has a result and an error".to_owned());
            if let Some(error) = message.get("error") {
                check_error(error, recorder);
            }
        }
    }
    Some(kind)
}

fn check_error(error: &Value, recorder: &mut RuleRecorder) {
    let code = error["code"].as_i64();
    let is_right = code.is_some() && error["message"].is_string();
    recorder.record_check("RPC-13", is_right, || {
        "an error has a whole number as code and a text as message".to_owned()
    });
    if let Some(code) = code {
        let is_reserved = (-32768..=-32000).contains(&code) || (-32899..=-32800).contains(&code);
        recorder.record_check(
            "RPC-14",
            !is_reserved || RESERVED_CODES.contains(&code),
            || format!("the code {code} is in a reserved range and means nothing"),
        );
    }
}
