//! Faults of JSON-RPC: ids, envelopes, errors and responses.

use super::{
    Direction, Fault, SideEffect,
    connection_state::MessageKind,
    intercepted_line::{InterceptedLine, value_at},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("no_jsonrpc", no_jsonrpc),
    Fault::lines("big_id_rounded", big_id_rounded),
    Fault::lines("string_id_as_number", string_id_as_number),
    Fault::lines("negative_id_as_string", negative_id_as_string),
    Fault::lines("fractional_id_served", fractional_id_served),
    Fault::lines("empty_result_null", empty_result_null),
    Fault::lines("no_result_key", no_result_key),
    Fault::lines("result_and_error", result_and_error),
    Fault::lines("bad_cancel_answered", bad_cancel_answered),
    Fault::lines("parse_error_silent", parse_error_silent),
    Fault::lines("parse_error_fatal", parse_error_fatal),
    Fault::lines("bad_envelope_silent", bad_envelope_silent),
    Fault::lines("batch_silent", batch_silent),
    Fault::lines("batch_served", batch_served),
    Fault::lines(
        "unknown_method_internal_error",
        unknown_method_internal_error,
    ),
    Fault::lines("unknown_method_unanswered", unknown_method_unanswered),
    Fault::lines(
        "missing_params_internal_error",
        missing_params_internal_error,
    ),
    Fault::lines("absent_params_refused", absent_params_refused),
    Fault::lines("list_answered_twice", list_answered_twice),
    Fault::lines("error_code_as_string", error_code_as_string),
    Fault::lines("error_without_message", error_without_message),
    Fault::lines("own_code_in_reserved_range", own_code_in_reserved_range),
    Fault::lines("client_error_hangs", client_error_hangs),
    Fault::lines("request_id_reused", request_id_reused),
    Fault::lines("ids_confused", ids_confused),
    Fault::lines("stray_answer_refused", stray_answer_refused),
    Fault::lines("busy_is_deaf", busy_is_deaf),
    Fault::lines("unknown_field_refused", unknown_field_refused),
    Fault::lines(
        "unknown_notification_answered",
        unknown_notification_answered,
    ),
    Fault::lines("snake_case_key", snake_case_key),
    Fault::lines("login_code_for_failures", login_code_for_failures),
];

fn no_jsonrpc(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "tool_call" {
        m.remove("/jsonrpc");
    }
}

/// Rounds ids above 2^53, as languages that have only doubles do.
fn big_id_rounded(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToClient
        && let Some(id) = m.get("/id").as_i64()
        && id.unsigned_abs() > 1 << 53
    {
        let rounded = if id > i64::MAX - 1024 {
            json!(9_223_372_036_854_775_808_u64)
        } else {
            json!((id / 1024) * 1024)
        };
        m.set("/id", rounded);
    }
}

fn string_id_as_number(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToClient
        && m.kind != MessageKind::Call
        && let Ok(number) = m.get_str("/id").parse::<i64>()
    {
        m.set("/id", number);
    }
}

fn negative_id_as_string(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToClient
        && let Some(id) = m.get("/id").as_i64()
        && id < 0
    {
        m.set("/id", id.to_string());
    }
}

fn fractional_id_served(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.kind == MessageKind::Call && m.get("/id").is_f64() {
        m.respond(json!({}));
    }
}

fn is_empty_result(m: &InterceptedLine<'_>) -> bool {
    m.is_agent_response("authenticate")
        && m.get("/result").as_object().is_some_and(|o| o.is_empty())
}

fn empty_result_null(m: &mut InterceptedLine<'_>) {
    if is_empty_result(m) {
        m.set("/result", Value::Null);
    }
}

fn no_result_key(m: &mut InterceptedLine<'_>) {
    if is_empty_result(m) {
        m.remove("/result");
    }
}

fn result_and_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") {
        m.set("/error", json!({"code": 0, "message": "no error"}));
    }
}

fn bad_cancel_answered(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/cancel") && !m.get("/params/sessionId").is_string() {
        m.send_to_client(json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32602, "message": "sessionId is missing"}}));
    }
}

/// Returns true for an error with this code and a null id.
fn is_null_id_error(m: &InterceptedLine<'_>, code: i64) -> bool {
    m.is_agent_error(code) && m.message.get("id") == Some(&Value::Null)
}

fn parse_error_silent(m: &mut InterceptedLine<'_>) {
    if is_null_id_error(m, -32700) {
        m.swallow();
    }
}

fn parse_error_fatal(m: &mut InterceptedLine<'_>) {
    if is_null_id_error(m, -32700) {
        m.side_effect = SideEffect::Die;
    }
}

/// Returns the reason why a line will be answered with a null id; empty if it will not.
fn null_id_error_reason(m: &InterceptedLine<'_>) -> &'static str {
    let params = m.get("/params");
    let answer = m.message.get("result").is_some() || m.message.get("error").is_some();
    if m.message.is_array() {
        "batch"
    } else if m.message.is_null() || answer && !m.has("/method") {
        ""
    } else if m.has("/method") && m.get("/id").is_number() && !m.get("/id").is_i64() {
        "id"
    } else if m.kind != MessageKind::Call || answer || !(params.is_null() || params.is_object()) {
        "envelope"
    } else {
        ""
    }
}

/// Drops the errors about lines that are wrong in this way; errors come in the order of the lines.
fn swallow_errors_about(m: &mut InterceptedLine<'_>, wrong: &str) {
    if m.direction == Direction::ToAgent {
        let why = null_id_error_reason(m);
        if !why.is_empty() {
            m.memory.held.push(json!(why));
        }
    } else if is_null_id_error(m, -32600)
        && !m.memory.held.is_empty()
        && m.memory.held.remove(0) == wrong
    {
        m.swallow();
    }
}

fn bad_envelope_silent(m: &mut InterceptedLine<'_>) {
    swallow_errors_about(m, "envelope");
}

fn batch_silent(m: &mut InterceptedLine<'_>) {
    swallow_errors_about(m, "batch");
}

fn batch_served(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent
        && let Some(parts) = m.message.as_array().cloned()
        && !parts.is_empty()
    {
        m.swallow();
        for part in parts {
            m.send_to_agent(part);
        }
    }
}

fn unknown_method_internal_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) {
        m.set("/error/code", -32603);
    }
}

fn unknown_method_unanswered(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) {
        m.swallow();
    }
}

fn missing_params_internal_error(m: &mut InterceptedLine<'_>) {
    let without = m.request_params().is_null() || *m.request_params() == json!({});
    if m.is_agent_error(-32602) && without && !m.is_agent_response("authenticate") {
        m.set("/error/code", -32603);
    }
}

fn absent_params_refused(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/list") && !m.has("/params") {
        m.respond_error(-32602, "params are missing");
    }
}

fn list_answered_twice(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/list") {
        let again = m.message.clone();
        m.send_to_client(again);
    }
}

fn error_code_as_string(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) {
        m.set("/error/code", "-32601");
    }
}

fn error_without_message(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) {
        m.remove("/error/message");
    }
}

/// Uses -32010, which is in the range reserved by JSON-RPC.
fn own_code_in_reserved_range(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && m.is_agent_error(-32603) {
        m.set("/error/code", -32010);
    }
}

fn client_error_hangs(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent
        && matches!(m.kind, MessageKind::Response(_))
        && m.has("/error")
    {
        m.swallow();
    }
}

/// Gives all requests of the agent the same id, and routes each response to the oldest open request.
fn request_id_reused(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToClient && m.kind == MessageKind::Call && m.has("/id") {
        let id = m.get("/id").clone();
        m.memory.held.push(id);
        m.set("/id", "same");
    } else if m.direction == Direction::ToAgent
        && m.get_str("/id") == "same"
        && !m.memory.held.is_empty()
    {
        let id = m.memory.held.remove(0);
        m.set("/id", id);
    }
}

/// Drops a client request whose id equals that of an open agent request.
fn ids_confused(m: &mut InterceptedLine<'_>) {
    let id = m.get("/id").clone();
    if m.direction == Direction::ToAgent
        && m.kind == MessageKind::Call
        && m.connection
            .pending_requests(Direction::ToClient)
            .any(|own| own.id == id)
    {
        m.swallow();
    }
}

fn stray_answer_refused(m: &mut InterceptedLine<'_>) {
    let answer = m.message.get("result").is_some() || m.message.get("error").is_some();
    let stray = answer && m.message.get("id").is_some() && m.kind == MessageKind::Other;
    if m.direction == Direction::ToAgent && stray && m.connection.protocol_version > 0 {
        let id = m.get("/id").clone();
        m.send_to_client(json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": -32600, "message": "nobody asked this"}}));
    }
}

/// Holds requests back while a prompt runs.
fn busy_is_deaf(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") {
        let held = std::mem::take(&mut m.memory.held);
        for message in held {
            m.send_to_agent(message);
        }
    } else if m.direction == Direction::ToAgent
        && m.kind == MessageKind::Call
        && m.has("/id")
        && !m.is_client_call("session/prompt")
        && m.connection.any_running_prompt().is_some()
    {
        m.hold();
    }
}

fn unknown_field_refused(m: &mut InterceptedLine<'_>) {
    const KNOWN: [&str; 6] = [
        "cwd",
        "mcpServers",
        "additionalDirectories",
        "sessionId",
        "prompt",
        "_meta",
    ];
    if (m.is_client_call("session/new") || m.is_client_call("session/prompt"))
        && let Some(params) = m.get("/params").as_object()
        && let Some(key) = params.keys().find(|key| !KNOWN.contains(&key.as_str()))
    {
        let message = format!("unknown field {key}");
        m.respond_error(-32602, &message);
    }
}

fn is_unknown_notification(m: &InterceptedLine<'_>) -> bool {
    let known = ["session/cancel", "$/cancel_request", "session/update"];
    m.direction == Direction::ToAgent
        && m.kind == MessageKind::Call
        && m.message.get("id").is_none()
        && m.message.get("jsonrpc").is_some()
        && !known.contains(&m.get_str("/method"))
}

fn unknown_notification_answered(m: &mut InterceptedLine<'_>) {
    if is_unknown_notification(m) {
        let method = m.get_str("/method").to_owned();
        m.send_to_client(json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32601, "message": format!("no such method: {method}")}}));
    }
}

fn snake_case_key(m: &mut InterceptedLine<'_>) {
    if m.is_tool_update()
        && let Some(input) = m.remove("/params/update/rawInput")
    {
        m.set("/params/update/raw_input", input);
    }
}

fn login_code_for_failures(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && *value_at(&m.message, "/error/code") == -32603 {
        m.set("/error/code", -32000);
    }
}
