//! Faults of the first exchange: versions, capabilities, and what comes before them.

use super::{
    Fault, Way,
    passing::{Passing, at},
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

fn version(m: &Passing<'_>) -> Value {
    m.get("/params/protocolVersion").clone()
}

fn version_as_string(m: &mut Passing<'_>) {
    if m.grants("initialize") {
        let version = m.get("/result/protocolVersion").to_string();
        m.set("/result/protocolVersion", version);
    }
}

fn capabilities_as_list(m: &mut Passing<'_>) {
    if m.grants("initialize") && m.has("/result/agentCapabilities/mcpCapabilities") {
        m.set("/result/agentCapabilities/mcpCapabilities", json!(["http"]));
    }
}

fn version_0_answered(m: &mut Passing<'_>) {
    if m.grants("initialize") && m.asked()["protocolVersion"] == 1 {
        m.set("/result/protocolVersion", 0);
    }
}

fn other_version_refused(m: &mut Passing<'_>) {
    if m.client_says("initialize")
        && version(m)
            .as_u64()
            .is_some_and(|v| !(1..=2).contains(&v) && v <= 65535)
    {
        m.refuse(-32602, "this agent speaks version 1");
    }
}

fn other_version_echoed(m: &mut Passing<'_>) {
    if m.grants("initialize")
        && let Some(asked) = m.asked()["protocolVersion"].as_u64()
        && asked != 2
    {
        m.set("/result/protocolVersion", asked);
    }
}

fn v2_shape_refused(m: &mut Passing<'_>) {
    let shaped = m.has("/params/info") || m.has("/params/capabilities");
    if m.client_says("initialize") && shaped {
        m.refuse(-32602, "unknown fields");
    }
}

fn bad_version_guessed(m: &mut Passing<'_>) {
    if m.client_says("initialize") && version(m).as_u64().is_none_or(|v| v > 65535) {
        m.set("/params/protocolVersion", 1);
    }
}

fn no_agent_info(m: &mut Passing<'_>) {
    if m.grants("initialize") {
        m.unset("/result/agentInfo");
    }
}

fn agent_info_without_version(m: &mut Passing<'_>) {
    if m.grants("initialize") {
        m.unset("/result/agentInfo/version");
    }
}

/// Whatever the client says, the agent believes that it can do files and terminals.
fn capabilities_assumed(m: &mut Passing<'_>) {
    if m.client_says("initialize") && m.get("/params").is_object() {
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

/// A client that can read files but not write them gets no turn.
fn needs_all_capabilities(m: &mut Passing<'_>) {
    let fs = at(&m.wire.client, "/fs");
    let half = fs["readTextFile"] == true && fs["writeTextFile"] != true;
    if m.client_says("session/new") && half {
        m.refuse(-32603, "cannot work with this client");
    }
}

/// Is some capability of the client's not of its type?
fn is_odd(m: &Passing<'_>) -> bool {
    let capabilities = m.get("/params/clientCapabilities");
    let flag = |pointer: &str| {
        let value = at(capabilities, pointer);
        value.is_null() || value.is_boolean()
    };
    let object = |pointer: &str| {
        let value = at(capabilities, pointer);
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

fn wrong_capability_type_refused(m: &mut Passing<'_>) {
    if m.client_says("initialize") && is_odd(m) {
        m.refuse(-32602, "a capability has the wrong type");
    }
}

fn session_new_missing(m: &mut Passing<'_>) {
    if m.client_says("session/new") && m.wire.version > 0 {
        m.refuse(-32601, "no such method: session/new");
    }
}

fn marker_as_boolean(m: &mut Passing<'_>) {
    if m.grants("initialize") && m.has("/result/agentCapabilities/sessionCapabilities/close") {
        m.set("/result/agentCapabilities/sessionCapabilities/close", true);
    }
}

/// It says that it can list sessions, and has no such method.
fn advertises_what_fails(m: &mut Passing<'_>) {
    if m.client_says("session/list") && m.wire.version > 0 {
        m.refuse(-32601, "no such method: session/list");
    }
}

fn served_before_initialize(m: &mut Passing<'_>) {
    if m.client_says("session/list") && m.wire.version == 0 {
        m.respond(json!({"sessions": []}));
    } else if m.client_says("session/new") && m.wire.version == 0 {
        m.respond(json!({"sessionId": "early"}));
    } else if m.client_says("session/prompt") && m.wire.version == 0 {
        m.respond(json!({"stopReason": "end_turn"}));
    }
}

fn too_early_internal_error(m: &mut Passing<'_>) {
    if m.way == Way::ToClient && m.wire.version == 0 && m.fails_with(-32600) && m.has("/id") {
        m.set("/error/code", -32603);
    }
}

fn second_initialize_refused(m: &mut Passing<'_>) {
    if m.client_says("initialize") && m.wire.version > 0 {
        m.refuse(-32600, "already initialized");
    }
}

fn news_before_initialize_answer(m: &mut Passing<'_>) {
    if m.answers("initialize") && m.count("answers") == 1 {
        m.tell_before(json!({"jsonrpc": "2.0", "method": "_broken/hello", "params": {}}));
    }
}

fn v2_update_in_v1(m: &mut Passing<'_>) {
    if m.grants("session/prompt") && m.wire.version == 1 {
        let session = m.session();
        m.tell_before(super::passing::made_up_update(
            &session,
            json!({"sessionUpdate": "state_update", "state": "idle"}),
        ));
    }
}
