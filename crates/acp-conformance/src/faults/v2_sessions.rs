//! Faults of the draft of version 2: prompts, states, resume, cancel and close.

use super::{
    Fault,
    passing::{Passing, made_up_update},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("v2_prompt_without_message_id", v2_prompt_without_message_id),
    Fault::lines("v2_prompt_answered_when_idle", v2_prompt_answered_when_idle),
    Fault::lines("v2_failure_as_end_turn", v2_failure_as_end_turn),
    Fault::lines("v2_no_echo", v2_no_echo),
    Fault::lines("v2_echo_of_another_id", v2_echo_of_another_id),
    Fault::lines("v2_busy_refused", v2_busy_refused),
    Fault::lines(
        "v2_held_prompt_internal_error",
        v2_held_prompt_internal_error,
    ),
    Fault::lines("v2_never_running", v2_never_running),
    Fault::lines("v2_never_idle", v2_never_idle),
    Fault::lines("v2_idle_without_reason", v2_idle_without_reason),
    Fault::lines("v2_never_requires_action", v2_never_requires_action),
    Fault::lines("v2_background_comes_and_goes", v2_background_comes_and_goes),
    Fault::lines("v2_resume_without_replay", v2_resume_without_replay),
    Fault::lines("v2_resume_without_state", v2_resume_without_state),
    Fault::lines("v2_unknown_cursor_taken", v2_unknown_cursor_taken),
    Fault::lines("v2_chunk_without_message_id", v2_chunk_without_message_id),
    Fault::lines("v2_cancel_lost", v2_cancel_lost),
    Fault::lines("v2_cancelled_as_end_turn", v2_cancelled_as_end_turn),
    Fault::lines("v2_message_after_close", v2_message_after_close),
    Fault::lines("v2_close_without_idle", v2_close_without_idle),
];

fn v2(m: &Passing<'_>) -> bool {
    m.wire.version == 2
}

/// The state that this update tells; empty if it tells none.
fn state<'m>(m: &'m Passing<'_>) -> &'m str {
    if v2(m) && m.update() == "state_update" {
        m.text("/params/update/state")
    } else {
        ""
    }
}

fn open(m: &Passing<'_>, method: &str) -> Option<Value> {
    let session = m.session();
    m.wire
        .open(super::Way::ToAgent)
        .find(|open| open.method == method && open.params["sessionId"] == session)
        .map(|open| open.params.clone())
}

fn v2_prompt_without_message_id(m: &mut Passing<'_>) {
    if v2(m) && m.grants("session/prompt") {
        m.unset("/result/messageId");
    }
}

/// As in version 1: the answer comes when all is done.
fn v2_prompt_answered_when_idle(m: &mut Passing<'_>) {
    if v2(m) && m.grants("session/prompt") {
        m.hold();
    } else if state(m) == "idle" {
        m.release();
    }
}

fn v2_failure_as_end_turn(m: &mut Passing<'_>) {
    if state(m) == "idle" && m.text("/params/update/stopReason") == "error" {
        m.set("/params/update/stopReason", "end_turn");
        m.unset("/params/update/error");
    }
}

fn is_echo(m: &Passing<'_>) -> bool {
    v2(m)
        && matches!(m.update(), "user_message" | "user_message_chunk")
        && open(m, "session/resume").is_none()
}

fn v2_no_echo(m: &mut Passing<'_>) {
    if is_echo(m) {
        m.swallow();
    }
}

fn v2_echo_of_another_id(m: &mut Passing<'_>) {
    if is_echo(m) {
        m.set("/params/update/messageId", "another");
    }
}

fn v2_busy_refused(m: &mut Passing<'_>) {
    let session = m.session();
    if v2(m) && m.client_says("session/prompt") && m.note(&session) == true {
        m.refuse(-32603, "a prompt runs");
    }
    note_busy(m);
}

/// Remembers which sessions are at work.
fn note_busy(m: &mut Passing<'_>) {
    let session = m.session();
    match state(m) {
        "running" | "requires_action" => m.keep(&session, true),
        "idle" => m.keep(&session, false),
        _ => {}
    }
}

fn v2_held_prompt_internal_error(m: &mut Passing<'_>) {
    if v2(m) && m.answers("session/prompt") && m.fails_with(-32800) {
        m.set("/error/code", -32603);
    }
}

fn v2_never_running(m: &mut Passing<'_>) {
    if state(m) == "running" {
        m.swallow();
    }
}

fn v2_never_idle(m: &mut Passing<'_>) {
    if state(m) == "idle"
        && open(m, "session/resume").is_none()
        && open(m, "session/close").is_none()
    {
        m.swallow();
    }
}

fn v2_idle_without_reason(m: &mut Passing<'_>) {
    if state(m) == "idle" {
        m.unset("/params/update/stopReason");
    }
}

fn v2_never_requires_action(m: &mut Passing<'_>) {
    if state(m) == "requires_action" {
        m.swallow();
    }
}

/// It tells of background work once, and then no more.
fn v2_background_comes_and_goes(m: &mut Passing<'_>) {
    if state(m) == "running" && m.count("states") == 1 {
        m.set(
            "/params/update/background",
            json!([{"type": "_broken/work", "name": "an index"}]),
        );
    }
}

fn v2_resume_without_replay(m: &mut Passing<'_>) {
    let told = matches!(
        m.update(),
        "user_message" | "user_message_chunk" | "agent_message" | "agent_message_chunk"
    );
    let asked = open(m, "session/resume").is_some_and(|params| !params["replayFrom"].is_null());
    if v2(m) && told && asked {
        m.swallow();
    }
}

fn v2_resume_without_state(m: &mut Passing<'_>) {
    if !state(m).is_empty() && open(m, "session/resume").is_some() {
        m.swallow();
    }
}

fn v2_unknown_cursor_taken(m: &mut Passing<'_>) {
    let kind = m.text("/params/replayFrom/type");
    if v2(m) && m.client_says("session/resume") && !kind.is_empty() && kind != "start" {
        m.set("/params/replayFrom", json!({"type": "start"}));
    }
}

fn v2_chunk_without_message_id(m: &mut Passing<'_>) {
    if v2(m) && matches!(m.update(), "agent_message" | "agent_message_chunk") {
        m.unset("/params/update/messageId");
    }
}

fn v2_cancel_lost(m: &mut Passing<'_>) {
    if v2(m) && m.client_says("session/cancel") {
        m.swallow();
    }
}

fn v2_cancelled_as_end_turn(m: &mut Passing<'_>) {
    if state(m) == "idle" && m.text("/params/update/stopReason") == "cancelled" {
        m.set("/params/update/stopReason", "end_turn");
    }
}

fn v2_message_after_close(m: &mut Passing<'_>) {
    if v2(m) && m.grants("session/close") {
        let session = m.session();
        m.tell(made_up_update(
            &session,
            json!({"sessionUpdate": "session_info_update", "title": "Closed"}),
        ));
    }
}

fn v2_close_without_idle(m: &mut Passing<'_>) {
    if state(m) == "idle" && open(m, "session/close").is_some() {
        m.swallow();
    }
}
