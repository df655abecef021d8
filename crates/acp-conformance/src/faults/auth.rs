//! Faults of logins: what is offered, and when one is asked for.

use super::{Fault, passing::Passing};
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

fn push(m: &mut Passing<'_>, method: Value) {
    if !m.has(METHODS) {
        m.set(METHODS, json!([]));
    }
    if let Some(methods) = m.edit().pointer_mut(METHODS).and_then(Value::as_array_mut) {
        methods.push(method);
    }
}

fn login_without_name(m: &mut Passing<'_>) {
    if m.grants("initialize") {
        m.unset("/result/authMethods/0/name");
    }
}

fn terminal_login_unasked(m: &mut Passing<'_>) {
    let asked = m.asked()["clientCapabilities"]["auth"]["terminal"] == true;
    if m.grants("initialize") && !asked {
        push(
            m,
            json!({"type": "terminal", "id": "terminal", "name": "In a terminal", "args": ["login"]}),
        );
    }
}

fn no_login_offered(m: &mut Passing<'_>) {
    if m.grants("initialize") {
        m.set(METHODS, json!([]));
    }
}

fn terminal_login_only(m: &mut Passing<'_>) {
    if m.grants("initialize") && m.asked()["clientCapabilities"]["auth"]["terminal"] == true {
        m.set(
            METHODS,
            json!([{"type": "terminal", "id": "terminal", "name": "In a terminal", "args": ["login"]}]),
        );
    }
}

fn terminal_login_numbers(m: &mut Passing<'_>) {
    if m.grants("initialize") && m.asked()["clientCapabilities"]["auth"]["terminal"] == true {
        push(
            m,
            json!({"type": "terminal", "id": "numbers", "name": "In a terminal", "args": [1],
                "env": {"A": 2}}),
        );
    }
}

fn login_does_not_help(m: &mut Passing<'_>) {
    if m.grants("authenticate") {
        m.keep("logged in", true);
    } else if m.client_says("session/new") && m.note("logged in") == true {
        m.refuse(-32000, "Authentication required");
    }
}

fn unknown_login_taken(m: &mut Passing<'_>) {
    if m.answers("authenticate") && m.fails_with(-32602) {
        m.turn_into_result(json!({}));
    }
}

fn unknown_login_internal_error(m: &mut Passing<'_>) {
    if m.answers("authenticate") && m.fails_with(-32602) {
        m.set("/error/code", -32603);
    }
}

fn login_needed_internal_error(m: &mut Passing<'_>) {
    if m.fails_with(-32000) {
        m.set("/error/code", -32603);
    }
}
