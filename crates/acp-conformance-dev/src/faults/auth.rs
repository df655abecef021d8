//! Faults of logins: the methods offered, and when a login is required.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("login_without_name", login_without_name),
    Fault::lines("terminal_login_unasked", terminal_login_unasked),
    Fault::lines("no_login_offered", no_login_offered),
    Fault::lines("terminal_login_only", terminal_login_only),
    Fault::lines("terminal_login_numbers", terminal_login_numbers),
    Fault::lines("login_does_not_help", login_does_not_help),
    Fault::lines("unknown_login_taken", unknown_login_taken),
    Fault::lines("unknown_login_internal_error", unknown_login_internal_error),
    Fault::lines("login_needed_internal_error", login_needed_internal_error),
];

const METHODS: &str = "/result/authMethods";

fn push_auth_method(m: &mut InterceptedLine<'_>, method: Value) {
    if !m.has(METHODS) {
        m.set(METHODS, json!([]));
    }
    if let Some(methods) = m
        .message_mut()
        .pointer_mut(METHODS)
        .and_then(Value::as_array_mut)
    {
        methods.push(method);
    }
}

fn login_without_name(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        m.remove("/result/authMethods/0/name");
    }
}

fn terminal_login_unasked(m: &mut InterceptedLine<'_>) {
    let asked = m.request_params()["clientCapabilities"]["auth"]["terminal"] == true;
    if m.is_agent_result("initialize") && !asked {
        push_auth_method(
            m,
            json!({"type": "terminal", "id": "terminal", "name": "In a terminal", "args": ["login"]}),
        );
    }
}

fn no_login_offered(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        m.set(METHODS, json!([]));
    }
}

fn terminal_login_only(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize")
        && m.request_params()["clientCapabilities"]["auth"]["terminal"] == true
    {
        m.set(
            METHODS,
            json!([{"type": "terminal", "id": "terminal", "name": "In a terminal", "args": ["login"]}]),
        );
    }
}

fn terminal_login_numbers(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize")
        && m.request_params()["clientCapabilities"]["auth"]["terminal"] == true
    {
        push_auth_method(
            m,
            json!({"type": "terminal", "id": "numbers", "name": "In a terminal", "args": [1],
                "env": {"A": 2}}),
        );
    }
}

fn login_does_not_help(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("authenticate") {
        m.remember("logged in", true);
    } else if m.is_client_call("session/new") && m.recall("logged in") == true {
        m.respond_error(-32000, "Authentication required");
    }
}

fn unknown_login_taken(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("authenticate") && m.is_agent_error(-32602) {
        m.turn_into_result(json!({}));
    }
}

fn unknown_login_internal_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("authenticate") && m.is_agent_error(-32602) {
        m.set("/error/code", -32603);
    }
}

fn login_needed_internal_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32000) {
        m.set("/error/code", -32603);
    }
}
