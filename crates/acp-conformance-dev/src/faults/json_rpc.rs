//! Faults of JSON-RPC: ids, envelopes, errors and responses.

use super::{
    Direction, connection_state::MessageKind, fault::LineFunction,
    intercepted_line::InterceptedLine,
};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("big_id_rounded", big_id_rounded),
    ("string_id_as_number", string_id_as_number),
    ("negative_id_as_string", negative_id_as_string),
    ("bad_envelope_silent", bad_envelope_silent),
    ("batch_silent", batch_silent),
    ("batch_served", batch_served),
    ("request_id_reused", request_id_reused),
    ("ids_confused", ids_confused),
    ("stray_answer_refused", stray_answer_refused),
    ("busy_is_deaf", busy_is_deaf),
    ("unknown_field_refused", unknown_field_refused),
    (
        "unknown_notification_answered",
        unknown_notification_answered,
    ),
];

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

/// Returns true for an error with this code and a null id.
fn is_null_id_error(m: &InterceptedLine<'_>, code: i64) -> bool {
    m.is_agent_error(code) && m.message.get("id") == Some(&Value::Null)
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
            m.send_after(Direction::ToAgent, part);
        }
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
        let response = m.error_response(-32600, "nobody asked this");
        m.send_after(Direction::ToClient, response);
    }
}

/// Holds requests back while a prompt runs.
fn busy_is_deaf(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") {
        for message in std::mem::take(&mut m.memory.held) {
            m.send_after(Direction::ToAgent, message);
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
        let message = format!("no such method: {}", m.get_str("/method"));
        let response = m.error_response(-32601, &message);
        m.send_after(Direction::ToClient, response);
    }
}
