//! Faults of the client's terminals: their creation, use and release. As an agent may never use terminals,
//! the faults create their own at the start of a prompt.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::json;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("terminal_unasked", terminal_unasked),
    Fault::lines("terminal_leaked", terminal_leaked),
    Fault::lines("terminal_used_after_release", terminal_used_after_release),
    Fault::lines("terminal_cwd_relative", terminal_cwd_relative),
];

const CREATE: &str = "terminal/create";
const RELEASE: &str = "terminal/release";

/// Returns true for a prompt that the agent will accept, from a client with (or without) terminals.
fn is_prompt_start(m: &InterceptedLine<'_>, has_terminals: bool) -> bool {
    m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && (m.connection.client_capabilities["terminal"] == true) == has_terminals
        && m.connection.open_sessions.contains(&m.session_id())
        && m.get("/params/prompt/0").is_object()
}

fn create_terminal(m: &mut InterceptedLine<'_>, cwd: &str) {
    let session = m.session_id();
    m.send_request_to_client(
        CREATE,
        json!({"sessionId": session, "command": "true", "cwd": cwd}),
    );
}

fn terminal_unasked(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m, false) {
        create_terminal(m, "/");
    }
}

fn terminal_leaked(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m, true) {
        create_terminal(m, "/");
    }
}

/// Sends a request about a terminal to the client.
fn send_terminal_request(m: &mut InterceptedLine<'_>, method: &str, terminal: &serde_json::Value) {
    let session = m.session_id();
    m.send_request_to_client(
        method,
        json!({"sessionId": session, "terminalId": terminal}),
    );
}

fn release_created_terminal(m: &mut InterceptedLine<'_>) {
    if m.is_response_to_injected(CREATE) {
        let terminal = m.get("/result/terminalId").clone();
        send_terminal_request(m, RELEASE, &terminal);
    }
}

fn terminal_used_after_release(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m, true) {
        create_terminal(m, "/");
    } else if m.is_response_to_injected(RELEASE) {
        let terminal = m.request_params()["terminalId"].clone();
        send_terminal_request(m, "terminal/output", &terminal);
    }
    release_created_terminal(m);
}

fn terminal_cwd_relative(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m, true) {
        create_terminal(m, ".");
    }
    release_created_terminal(m);
}
