//! Faults of extending the protocol: fields, methods and `_meta`.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("own_field_in_result", own_field_in_result),
    Fault::lines("former_draft_field", former_draft_field),
    Fault::lines("own_field_in_update", own_field_in_update),
    Fault::lines("strange_meta_refused", strange_meta_refused),
    Fault::lines(
        "own_method_without_underscore",
        own_method_without_underscore,
    ),
    Fault::lines(
        "unknown_custom_request_granted",
        unknown_custom_request_granted,
    ),
    Fault::lines(
        "unknown_custom_request_invalid",
        unknown_custom_request_invalid,
    ),
];

fn own_field_in_result(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") && m.connection.protocol_version == 1 {
        m.set("/result/colour", "red");
    }
}

fn former_draft_field(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") && m.connection.protocol_version == 1 {
        m.set(
            "/result/models",
            json!({"availableModels": [], "currentModelId": "x"}),
        );
    }
}

fn own_field_in_update(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "available_commands_update" {
        m.set("/params/update/colour", "red");
    }
}

fn strange_meta_refused(m: &mut InterceptedLine<'_>) {
    let meta = m.get("/params/_meta");
    let known = |meta: &serde_json::Map<String, Value>| meta.is_empty();
    let strange = !meta.is_null() && !meta.as_object().is_some_and(known);
    let ours = m.is_client_call("session/new") || m.is_client_call("session/prompt");
    if ours && strange {
        m.respond_error(-32602, "unknown _meta");
    }
}

fn own_method_without_underscore(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") {
        m.send_to_client(json!({"jsonrpc": "2.0", "method": "broken/hello", "params": {}}));
    }
}

fn unknown_custom_request_granted(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) && is_custom_method_response(m) {
        m.turn_into_result(json!({}));
    }
}

fn unknown_custom_request_invalid(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32601) && is_custom_method_response(m) {
        m.set("/error/code", -32602);
    }
}

/// Returns true for a response to a request whose method begins with an underscore.
fn is_custom_method_response(m: &InterceptedLine<'_>) -> bool {
    matches!(&m.kind, super::connection_state::MessageKind::Response(open) if open.method.starts_with('_'))
}
