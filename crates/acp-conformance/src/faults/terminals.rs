//! Faults of the client's terminals: when they are asked for, and whether they are given back. An agent may have
//! no use for them, so the fault makes some at the beginning of a prompt.

use super::{Fault, passing::Passing};
use serde_json::json;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("terminal_unasked", terminal_unasked),
    Fault::lines("terminal_leaked", terminal_leaked),
    Fault::lines("terminal_used_after_release", terminal_used_after_release),
    Fault::lines("terminal_cwd_relative", terminal_cwd_relative),
];

const CREATE: &str = "terminal/create";
const RELEASE: &str = "terminal/release";

/// A prompt that the agent will take, from a client that has terminals, or has none.
fn prompt_begins(m: &Passing<'_>, terminals: bool) -> bool {
    m.client_says("session/prompt")
        && m.wire.version == 1
        && (m.wire.client["terminal"] == true) == terminals
        && m.wire.sessions.contains(&m.session())
        && m.get("/params/prompt/0").is_object()
}

fn create(m: &mut Passing<'_>, cwd: &str) {
    let session = m.session();
    m.ask_client(
        CREATE,
        json!({"sessionId": session, "command": "true", "cwd": cwd}),
    );
}

fn terminal_unasked(m: &mut Passing<'_>) {
    if prompt_begins(m, false) {
        create(m, "/");
    }
}

fn terminal_leaked(m: &mut Passing<'_>) {
    if prompt_begins(m, true) {
        create(m, "/");
    }
}

/// What is asked about the terminal that this answer is about.
fn ask_about(m: &mut Passing<'_>, method: &str, terminal: &serde_json::Value) {
    let session = m.session();
    m.ask_client(
        method,
        json!({"sessionId": session, "terminalId": terminal}),
    );
}

fn release_made(m: &mut Passing<'_>) {
    if m.answers_ours(CREATE) {
        let terminal = m.get("/result/terminalId").clone();
        ask_about(m, RELEASE, &terminal);
    }
}

fn terminal_used_after_release(m: &mut Passing<'_>) {
    if prompt_begins(m, true) {
        create(m, "/");
    } else if m.answers_ours(RELEASE) {
        let terminal = m.asked()["terminalId"].clone();
        ask_about(m, "terminal/output", &terminal);
    }
    release_made(m);
}

fn terminal_cwd_relative(m: &mut Passing<'_>) {
    if prompt_begins(m, true) {
        create(m, ".");
    }
    release_made(m);
}
