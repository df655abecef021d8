//! Faults of `initialize`: versions, capabilities, and messages before it.

use super::{
    Direction, Fault,
    intercepted_line::{InterceptedLine, value_at},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("version_as_string", version_as_string),
    Fault::lines("capabilities_as_list", capabilities_as_list),
    Fault::lines("version_0_answered", version_0_answered),
    Fault::lines("other_version_refused", other_version_refused),
    Fault::lines("other_version_echoed", other_version_echoed),
    Fault::lines("v2_shape_refused", v2_shape_refused),
    Fault::lines("bad_version_guessed", bad_version_guessed),
    Fault::lines("no_agent_info", no_agent_info),
    Fault::lines("agent_info_without_version", agent_info_without_version),
    Fault::lines("capabilities_assumed", capabilities_assumed),
    Fault::lines("needs_all_capabilities", needs_all_capabilities),
    Fault::lines(
        "wrong_capability_type_refused",
        wrong_capability_type_refused,
    ),
    Fault::lines("session_new_missing", session_new_missing),
    Fault::lines("marker_as_boolean", marker_as_boolean),
    Fault::lines("advertises_what_fails", advertises_what_fails),
    Fault::lines("served_before_initialize", served_before_initialize),
    Fault::lines("too_early_internal_error", too_early_internal_error),
    Fault::lines("second_initialize_refused", second_initialize_refused),
    Fault::lines(
        "news_before_initialize_answer",
        news_before_initialize_answer,
    ),
    Fault::lines("v2_update_in_v1", v2_update_in_v1),
];

fn requested_version(m: &InterceptedLine<'_>) -> Value {
    m.get("/params/protocolVersion").clone()
}

fn version_as_string(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        let version = m.get("/result/protocolVersion").to_string();
        m.set("/result/protocolVersion", version);
    }
}

fn capabilities_as_list(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") && m.has("/result/agentCapabilities/mcpCapabilities") {
        m.set("/result/agentCapabilities/mcpCapabilities", json!(["http"]));
    }
}

fn version_0_answered(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") && m.request_params()["protocolVersion"] == 1 {
        m.set("/result/protocolVersion", 0);
    }
}

fn other_version_refused(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize")
        && requested_version(m)
            .as_u64()
            .is_some_and(|v| !(1..=2).contains(&v) && v <= 65535)
    {
        m.respond_error(-32602, "this agent speaks version 1");
    }
}

fn other_version_echoed(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize")
        && let Some(asked) = m.request_params()["protocolVersion"].as_u64()
        && asked != 2
    {
        m.set("/result/protocolVersion", asked);
    }
}

fn v2_shape_refused(m: &mut InterceptedLine<'_>) {
    let shaped = m.has("/params/info") || m.has("/params/capabilities");
    if m.is_client_call("initialize") && shaped {
        m.respond_error(-32602, "unknown fields");
    }
}

fn bad_version_guessed(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize") && requested_version(m).as_u64().is_none_or(|v| v > 65535) {
        m.set("/params/protocolVersion", 1);
    }
}

fn no_agent_info(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        m.remove("/result/agentInfo");
    }
}

fn agent_info_without_version(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        m.remove("/result/agentInfo/version");
    }
}

/// Assumes that the client supports files and terminals, whatever its capabilities.
fn capabilities_assumed(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize") && m.get("/params").is_object() {
        if !m.get("/params/clientCapabilities").is_object() {
            m.set("/params/clientCapabilities", json!({}));
        }
        m.set(
            "/params/clientCapabilities/fs",
            json!({"readTextFile": true, "writeTextFile": true}),
        );
        m.set("/params/clientCapabilities/terminal", true);
    }
}

/// Refuses sessions of a client that can read files but not write them.
fn needs_all_capabilities(m: &mut InterceptedLine<'_>) {
    let fs = value_at(&m.connection.client_capabilities, "/fs");
    let half = fs["readTextFile"] == true && fs["writeTextFile"] != true;
    if m.is_client_call("session/new") && half {
        m.respond_error(-32603, "cannot work with this client");
    }
}

/// Returns true if a client capability has the wrong type.
fn has_mistyped_capability(m: &InterceptedLine<'_>) -> bool {
    let capabilities = m.get("/params/clientCapabilities");
    let flag = |pointer: &str| {
        let value = value_at(capabilities, pointer);
        value.is_null() || value.is_boolean()
    };
    let object = |pointer: &str| {
        let value = value_at(capabilities, pointer);
        value.is_null() || value.is_object()
    };
    let right = object("")
        && object("/fs")
        && flag("/fs/readTextFile")
        && flag("/fs/writeTextFile")
        && flag("/terminal")
        && object("/session/notices")
        && object("/session/compaction")
        && object("/elicitation");
    !right
}

fn wrong_capability_type_refused(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize") && has_mistyped_capability(m) {
        m.respond_error(-32602, "a capability has the wrong type");
    }
}

fn session_new_missing(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/new") && m.connection.protocol_version > 0 {
        m.respond_error(-32601, "no such method: session/new");
    }
}

fn marker_as_boolean(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize")
        && m.has("/result/agentCapabilities/sessionCapabilities/close")
    {
        m.set("/result/agentCapabilities/sessionCapabilities/close", true);
    }
}

/// Answers `session/list` with "no such method" although it is advertised.
fn advertises_what_fails(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/list") && m.connection.protocol_version > 0 {
        m.respond_error(-32601, "no such method: session/list");
    }
}

fn served_before_initialize(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/list") && m.connection.protocol_version == 0 {
        m.respond(json!({"sessions": []}));
    } else if m.is_client_call("session/new") && m.connection.protocol_version == 0 {
        m.respond(json!({"sessionId": "early"}));
    } else if m.is_client_call("session/prompt") && m.connection.protocol_version == 0 {
        m.respond(json!({"stopReason": "end_turn"}));
    }
}

fn too_early_internal_error(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToClient
        && m.connection.protocol_version == 0
        && m.is_agent_error(-32600)
        && m.has("/id")
    {
        m.set("/error/code", -32603);
    }
}

fn second_initialize_refused(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize") && m.connection.protocol_version > 0 {
        m.respond_error(-32600, "already initialized");
    }
}

fn news_before_initialize_answer(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("initialize") && m.increment("answers") == 1 {
        m.send_to_client_before(json!({"jsonrpc": "2.0", "method": "_broken/hello", "params": {}}));
    }
}

fn v2_update_in_v1(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/prompt") && m.connection.protocol_version == 1 {
        let session = m.session_id();
        m.send_to_client_before(super::intercepted_line::injected_update(
            &session,
            json!({"sessionUpdate": "state_update", "state": "idle"}),
        ));
    }
}
