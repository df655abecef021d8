//! Faults of the client's terminals: when they are asked for, and whether they are given back.

use super::{Fault, passing::Passing};
use serde_json::json;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("terminal_unasked", terminal_unasked),
    Fault::lines("terminal_leaked", terminal_leaked),
    Fault::lines("terminal_leaked_on_cancel", terminal_leaked_on_cancel),
    Fault::lines("terminal_used_after_release", terminal_used_after_release),
    Fault::lines("terminal_cwd_relative", terminal_cwd_relative),
    Fault::lines(
        "terminal_without_exit_code_hangs",
        terminal_without_exit_code_hangs,
    ),
];

fn terminal_unasked(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says("session/prompt")
        && m.wire.version == 1
        && m.wire.client["terminal"] != true
        && m.wire.sessions.contains(&session)
        && m.get("/params/prompt/0").is_object()
    {
        m.ask_client(
            "terminal/create",
            json!({"sessionId": session, "command": "true"}),
        );
    }
}

fn terminal_leaked(m: &mut Passing<'_>) {
    if m.agent_says("terminal/release") && m.note(&m.session()) != true {
        m.respond(json!({}));
    }
    note_cancel(m);
}

fn terminal_leaked_on_cancel(m: &mut Passing<'_>) {
    if m.agent_says("terminal/release") && m.note(&m.session()) == true {
        m.respond(json!({}));
    }
    note_cancel(m);
}

/// Remembers whether the prompt that runs in a session was cancelled.
fn note_cancel(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says("session/cancel") {
        m.keep(&session, true);
    } else if m.client_says("session/prompt") {
        m.keep(&session, false);
    }
}

fn terminal_used_after_release(m: &mut Passing<'_>) {
    if m.replies("terminal/release") {
        let params = m.asked().clone();
        m.ask_client("terminal/output", params);
    }
}

fn terminal_cwd_relative(m: &mut Passing<'_>) {
    if m.agent_says("terminal/create") {
        m.set("/params/cwd", ".");
    }
}

fn terminal_without_exit_code_hangs(m: &mut Passing<'_>) {
    if m.replies("terminal/wait_for_exit")
        && m.get("/result").is_object()
        && !m.has("/result/exitCode")
    {
        m.swallow();
    }
}
