//! Faults of JSON-RPC: ids, envelopes, errors, and who answers what.

use super::{
    Deed, Fault, Way,
    passing::{Passing, at},
    wire::Kind,
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

fn no_jsonrpc(m: &mut Passing<'_>) {
    if m.update() == "tool_call" {
        m.unset("/jsonrpc");
    }
}

/// Above 2^53 an id loses its last digits, as in a language that has only doubles.
fn big_id_rounded(m: &mut Passing<'_>) {
    if m.way == Way::ToClient
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

fn string_id_as_number(m: &mut Passing<'_>) {
    if m.way == Way::ToClient
        && m.kind != Kind::Call
        && let Ok(number) = m.text("/id").parse::<i64>()
    {
        m.set("/id", number);
    }
}

fn negative_id_as_string(m: &mut Passing<'_>) {
    if m.way == Way::ToClient
        && let Some(id) = m.get("/id").as_i64()
        && id < 0
    {
        m.set("/id", id.to_string());
    }
}

fn fractional_id_served(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.kind == Kind::Call && m.get("/id").is_f64() {
        m.respond(json!({}));
    }
}

fn is_empty_result(m: &Passing<'_>) -> bool {
    m.answers("authenticate") && m.get("/result").as_object().is_some_and(|o| o.is_empty())
}

fn empty_result_null(m: &mut Passing<'_>) {
    if is_empty_result(m) {
        m.set("/result", Value::Null);
    }
}

fn no_result_key(m: &mut Passing<'_>) {
    if is_empty_result(m) {
        m.unset("/result");
    }
}

fn result_and_error(m: &mut Passing<'_>) {
    if m.grants("session/list") {
        m.set("/error", json!({"code": 0, "message": "no error"}));
    }
}

fn bad_cancel_answered(m: &mut Passing<'_>) {
    if m.client_says("session/cancel") && !m.get("/params/sessionId").is_string() {
        m.tell(json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32602, "message": "sessionId is missing"}}));
    }
}

/// An answer to what could not be read at all.
fn is_unreadable(m: &Passing<'_>, code: i64) -> bool {
    m.fails_with(code) && m.value.get("id") == Some(&Value::Null)
}

fn parse_error_silent(m: &mut Passing<'_>) {
    if is_unreadable(m, -32700) {
        m.swallow();
    }
}

fn parse_error_fatal(m: &mut Passing<'_>) {
    if is_unreadable(m, -32700) {
        m.deed = Deed::Die;
    }
}

/// Why a line will be answered without an id; empty if it will not.
fn unreadable(m: &Passing<'_>) -> &'static str {
    let params = m.get("/params");
    let answer = m.value.get("result").is_some() || m.value.get("error").is_some();
    if m.value.is_array() {
        "batch"
    } else if m.value.is_null() || answer && !m.has("/method") {
        ""
    } else if m.has("/method") && m.get("/id").is_number() && !m.get("/id").is_i64() {
        "id"
    } else if m.kind != Kind::Call || answer || !(params.is_null() || params.is_object()) {
        "envelope"
    } else {
        ""
    }
}

/// Swallows the answers to lines that are wrong in this way: they come in the order of the lines.
fn silent_about(m: &mut Passing<'_>, wrong: &str) {
    if m.way == Way::ToAgent {
        let why = unreadable(m);
        if !why.is_empty() {
            m.memory.held.push(json!(why));
        }
    } else if is_unreadable(m, -32600)
        && !m.memory.held.is_empty()
        && m.memory.held.remove(0) == wrong
    {
        m.swallow();
    }
}

fn bad_envelope_silent(m: &mut Passing<'_>) {
    silent_about(m, "envelope");
}

fn batch_silent(m: &mut Passing<'_>) {
    silent_about(m, "batch");
}

fn batch_served(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent
        && let Some(parts) = m.value.as_array().cloned()
        && !parts.is_empty()
    {
        m.swallow();
        for part in parts {
            m.tell_agent(part);
        }
    }
}

fn unknown_method_internal_error(m: &mut Passing<'_>) {
    if m.fails_with(-32601) {
        m.set("/error/code", -32603);
    }
}

fn unknown_method_unanswered(m: &mut Passing<'_>) {
    if m.fails_with(-32601) {
        m.swallow();
    }
}

fn missing_params_internal_error(m: &mut Passing<'_>) {
    let without = m.asked().is_null() || *m.asked() == json!({});
    if m.fails_with(-32602) && without && !m.answers("authenticate") {
        m.set("/error/code", -32603);
    }
}

fn absent_params_refused(m: &mut Passing<'_>) {
    if m.client_says("session/list") && !m.has("/params") {
        m.refuse(-32602, "params are missing");
    }
}

fn list_answered_twice(m: &mut Passing<'_>) {
    if m.answers("session/list") {
        let again = m.value.clone();
        m.tell(again);
    }
}

fn error_code_as_string(m: &mut Passing<'_>) {
    if m.fails_with(-32601) {
        m.set("/error/code", "-32601");
    }
}

fn error_without_message(m: &mut Passing<'_>) {
    if m.fails_with(-32601) {
        m.unset("/error/message");
    }
}

/// -32010 is in the range that the specification keeps for itself.
fn own_code_in_reserved_range(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && m.fails_with(-32603) {
        m.set("/error/code", -32010);
    }
}

fn client_error_hangs(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && matches!(m.kind, Kind::Answer(_)) && m.has("/error") {
        m.swallow();
    }
}

/// All its requests have the same id. What the client answers goes to the one that waits longest.
fn request_id_reused(m: &mut Passing<'_>) {
    if m.way == Way::ToClient && m.kind == Kind::Call && m.has("/id") {
        let id = m.get("/id").clone();
        m.memory.held.push(id);
        m.set("/id", "same");
    } else if m.way == Way::ToAgent && m.text("/id") == "same" && !m.memory.held.is_empty() {
        let id = m.memory.held.remove(0);
        m.set("/id", id);
    }
}

/// A request of the client's is lost when the agent has one of the same id open.
fn ids_confused(m: &mut Passing<'_>) {
    let id = m.get("/id").clone();
    if m.way == Way::ToAgent
        && m.kind == Kind::Call
        && m.wire.open(Way::ToClient).any(|own| own.id == id)
    {
        m.swallow();
    }
}

fn stray_answer_refused(m: &mut Passing<'_>) {
    let answer = m.value.get("result").is_some() || m.value.get("error").is_some();
    let stray = answer && m.value.get("id").is_some() && m.kind == Kind::Other;
    if m.way == Way::ToAgent && stray && m.wire.version > 0 {
        let id = m.get("/id").clone();
        m.tell(json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": -32600, "message": "nobody asked this"}}));
    }
}

/// While a prompt runs, requests wait.
fn busy_is_deaf(m: &mut Passing<'_>) {
    if m.answers("session/prompt") {
        let held = std::mem::take(&mut m.memory.held);
        for message in held {
            m.tell_agent(message);
        }
    } else if m.way == Way::ToAgent
        && m.kind == Kind::Call
        && m.has("/id")
        && !m.client_says("session/prompt")
        && m.wire.any_prompt().is_some()
    {
        m.hold();
    }
}

fn unknown_field_refused(m: &mut Passing<'_>) {
    const KNOWN: [&str; 6] = [
        "cwd",
        "mcpServers",
        "additionalDirectories",
        "sessionId",
        "prompt",
        "_meta",
    ];
    if (m.client_says("session/new") || m.client_says("session/prompt"))
        && let Some(params) = m.get("/params").as_object()
        && let Some(key) = params.keys().find(|key| !KNOWN.contains(&key.as_str()))
    {
        let message = format!("unknown field {key}");
        m.refuse(-32602, &message);
    }
}

fn is_unknown_notification(m: &Passing<'_>) -> bool {
    let known = ["session/cancel", "$/cancel_request", "session/update"];
    m.way == Way::ToAgent
        && m.kind == Kind::Call
        && m.value.get("id").is_none()
        && m.value.get("jsonrpc").is_some()
        && !known.contains(&m.text("/method"))
}

fn unknown_notification_answered(m: &mut Passing<'_>) {
    if is_unknown_notification(m) {
        let method = m.text("/method").to_owned();
        m.tell(json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32601, "message": format!("no such method: {method}")}}));
    }
}

fn snake_case_key(m: &mut Passing<'_>) {
    if m.is_tool_update()
        && let Some(input) = m.unset("/params/update/rawInput")
    {
        m.set("/params/update/raw_input", input);
    }
}

fn login_code_for_failures(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && *at(&m.value, "/error/code") == -32603 {
        m.set("/error/code", -32000);
    }
}
