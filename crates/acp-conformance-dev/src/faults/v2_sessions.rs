//! Faults of the draft of version 2: prompts, states, resume, cancel and close.

use super::{
    fault::Fault,
    intercepted_line::{InterceptedLine, injected_update},
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

fn is_v2(m: &InterceptedLine<'_>) -> bool {
    m.connection.protocol_version == 2
}

/// Returns the session state of a state update; empty for other messages.
fn session_state<'m>(m: &'m InterceptedLine<'_>) -> &'m str {
    if is_v2(m) && m.update_kind() == "state_update" {
        m.get_str("/params/update/state")
    } else {
        ""
    }
}

fn pending_params(m: &InterceptedLine<'_>, method: &str) -> Option<Value> {
    let session = m.session_id();
    m.connection
        .pending_requests(super::Direction::ToAgent)
        .find(|open| open.method == method && open.params["sessionId"] == session)
        .map(|open| open.params.clone())
}

fn v2_prompt_without_message_id(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_result("session/prompt") {
        m.remove("/result/messageId");
    }
}

/// Answers a prompt only when the session is idle, as in version 1.
fn v2_prompt_answered_when_idle(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_result("session/prompt") {
        m.hold();
    } else if session_state(m) == "idle" {
        m.release();
    }
}

fn v2_failure_as_end_turn(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "idle" && m.get_str("/params/update/stopReason") == "error" {
        m.set("/params/update/stopReason", "end_turn");
        m.remove("/params/update/error");
    }
}

fn is_prompt_echo(m: &InterceptedLine<'_>) -> bool {
    is_v2(m)
        && matches!(m.update_kind(), "user_message" | "user_message_chunk")
        && pending_params(m, "session/resume").is_none()
}

fn v2_no_echo(m: &mut InterceptedLine<'_>) {
    if is_prompt_echo(m) {
        m.swallow();
    }
}

fn v2_echo_of_another_id(m: &mut InterceptedLine<'_>) {
    if is_prompt_echo(m) {
        m.set("/params/update/messageId", "another");
    }
}

fn v2_busy_refused(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if is_v2(m) && m.is_client_call("session/prompt") && m.recall(&session) == true {
        m.respond_error(-32603, "a prompt runs");
    }
    remember_busy_sessions(m);
}

/// Remembers which sessions are busy.
fn remember_busy_sessions(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    match session_state(m) {
        "running" | "requires_action" => m.remember(&session, true),
        "idle" => m.remember(&session, false),
        _ => {}
    }
}

fn v2_held_prompt_internal_error(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_response("session/prompt") && m.is_agent_error(-32800) {
        m.set("/error/code", -32603);
    }
}

fn v2_never_running(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "running" {
        m.swallow();
    }
}

fn v2_never_idle(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "idle"
        && pending_params(m, "session/resume").is_none()
        && pending_params(m, "session/close").is_none()
    {
        m.swallow();
    }
}

fn v2_idle_without_reason(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "idle" {
        m.remove("/params/update/stopReason");
    }
}

fn v2_never_requires_action(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "requires_action" {
        m.swallow();
    }
}

/// Reports background work once and then omits it.
fn v2_background_comes_and_goes(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "running" && m.increment("states") == 1 {
        m.set(
            "/params/update/background",
            json!([{"type": "_broken/work", "name": "an index"}]),
        );
    }
}

fn v2_resume_without_replay(m: &mut InterceptedLine<'_>) {
    let told = matches!(
        m.update_kind(),
        "user_message" | "user_message_chunk" | "agent_message" | "agent_message_chunk"
    );
    let asked =
        pending_params(m, "session/resume").is_some_and(|params| !params["replayFrom"].is_null());
    if is_v2(m) && told && asked {
        m.swallow();
    }
}

fn v2_resume_without_state(m: &mut InterceptedLine<'_>) {
    if !session_state(m).is_empty() && pending_params(m, "session/resume").is_some() {
        m.swallow();
    }
}

fn v2_unknown_cursor_taken(m: &mut InterceptedLine<'_>) {
    let kind = m.get_str("/params/replayFrom/type");
    if is_v2(m) && m.is_client_call("session/resume") && !kind.is_empty() && kind != "start" {
        m.set("/params/replayFrom", json!({"type": "start"}));
    }
}

fn v2_chunk_without_message_id(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && matches!(m.update_kind(), "agent_message" | "agent_message_chunk") {
        m.remove("/params/update/messageId");
    }
}

fn v2_cancel_lost(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_client_call("session/cancel") {
        m.swallow();
    }
}

fn v2_cancelled_as_end_turn(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "idle" && m.get_str("/params/update/stopReason") == "cancelled" {
        m.set("/params/update/stopReason", "end_turn");
    }
}

fn v2_message_after_close(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_result("session/close") {
        let session = m.session_id();
        m.send_to_client(injected_update(
            &session,
            json!({"sessionUpdate": "session_info_update", "title": "Closed"}),
        ));
    }
}

fn v2_close_without_idle(m: &mut InterceptedLine<'_>) {
    if session_state(m) == "idle" && pending_params(m, "session/close").is_some() {
        m.swallow();
    }
}
