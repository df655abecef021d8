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
    Fault::lines("unknown_error_code_hangs", unknown_error_code_hangs),
    Fault::lines("request_id_reused", request_id_reused),
    Fault::lines("ids_confused", ids_confused),
    Fault::lines("stray_answer_fatal", stray_answer_fatal),
    Fault::lines("busy_is_deaf", busy_is_deaf),
    Fault::lines("unknown_field_refused", unknown_field_refused),
    Fault::lines(
        "unknown_notification_answered",
        unknown_notification_answered,
    ),
    Fault::lines("unknown_notification_fatal", unknown_notification_fatal),
    Fault::lines("snake_case_key", snake_case_key),
    Fault::lines("login_code_for_failures", login_code_for_failures),
];

fn no_jsonrpc(m: &mut Passing<'_>) {
    if m.agent_says("session/update") {
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
    m.way == Way::ToClient && m.get("/result").as_object().is_some_and(|o| o.is_empty())
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

/// Remembers whether the client's last line was a batch, or had an id that cannot be.
fn note_last(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && !m.value.is_null() {
        let batch = m.value.is_array();
        let bad_id = m.kind == Kind::Call && m.get("/id").is_number() && !m.get("/id").is_i64();
        m.keep("batch", batch);
        m.keep("envelope", !batch && !bad_id);
    }
}

fn bad_envelope_silent(m: &mut Passing<'_>) {
    note_last(m);
    if is_unreadable(m, -32600) && m.note("envelope") == true {
        m.swallow();
    }
}

fn batch_silent(m: &mut Passing<'_>) {
    note_last(m);
    if is_unreadable(m, -32600) && m.note("batch") == true {
        m.swallow();
    }
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
    if m.fails_with(-32602) && (m.asked().is_null() || *m.asked() == json!({})) {
        m.set("/error/code", -32603);
    }
}

fn absent_params_refused(m: &mut Passing<'_>) {
    if (m.client_says("session/list") || m.client_says("logout")) && !m.has("/params") {
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

/// The codes that the two specifications define.
const KNOWN: [i64; 8] = [
    -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002,
];

fn unknown_error_code_hangs(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent
        && matches!(m.kind, Kind::Answer(_))
        && let Some(code) = m.get("/error/code").as_i64()
        && !KNOWN.contains(&code)
    {
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

/// An answer to the agent's request is lost when the client has a request of the same id open.
fn ids_confused(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent
        && let Kind::Answer(open) = &m.kind
        && m.wire.open(Way::ToAgent).any(|own| own.id == open.id)
    {
        m.swallow();
    }
}

fn stray_answer_fatal(m: &mut Passing<'_>) {
    let answer = m.value.get("result").is_some() || m.value.get("error").is_some();
    let stray = answer && m.value.get("id").is_some() && m.kind == Kind::Other;
    if m.way == Way::ToAgent && stray && m.wire.version > 0 {
        m.deed = Deed::Die;
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

fn unknown_notification_fatal(m: &mut Passing<'_>) {
    if is_unknown_notification(m) {
        m.deed = Deed::Die;
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
