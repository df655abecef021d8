//! Faults of cancelling: the work stopped, and the responses.

use super::{Direction, Fault, SideEffect, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("cancel_answered", cancel_answered),
    Fault::lines("cancel_slow", cancel_slow),
    Fault::lines("cancel_lost", cancel_lost),
    Fault::lines("cancelled_as_end_turn", cancelled_as_end_turn),
    Fault::lines("cancelled_as_error", cancelled_as_error),
    Fault::lines("update_after_cancelled", update_after_cancelled),
    Fault::lines("cancelled_reply_hangs", cancelled_reply_hangs),
    Fault::lines("question_not_withdrawn", question_not_withdrawn),
    Fault::lines("idle_cancel_poisons", idle_cancel_poisons),
    Fault::lines("second_cancel_poisons", second_cancel_poisons),
    Fault::lines("cancel_with_prompt_lost", cancel_with_prompt_lost),
    Fault::lines("cancelled_call_left_open", cancelled_call_left_open),
    Fault::lines("finished_as_cancelled", finished_as_cancelled),
    Fault::lines("cancel_request_unanswered", cancel_request_unanswered),
    Fault::lines("foreign_cancel_request_hits", foreign_cancel_request_hits),
];

const CANCEL: &str = "session/cancel";

fn cancel_notification(session: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": CANCEL, "params": {"sessionId": session}})
}

/// Returns true for a version 1 prompt response with `cancelled`.
fn is_cancelled_prompt(m: &InterceptedLine<'_>) -> bool {
    m.is_agent_response("session/prompt") && m.get_str("/result/stopReason") == "cancelled"
}

fn cancel_answered(m: &mut InterceptedLine<'_>) {
    if m.is_client_call(CANCEL) && m.connection.running_prompt(&m.session_id()).is_some() {
        m.send_to_client(json!({"jsonrpc": "2.0", "id": null, "result": {}}));
    }
}

fn cancel_slow(m: &mut InterceptedLine<'_>) {
    if m.is_client_call(CANCEL) && m.connection.running_prompt(&m.session_id()).is_some() {
        m.side_effect = SideEffect::Sleep;
    }
}

fn cancel_lost(m: &mut InterceptedLine<'_>) {
    if m.is_client_call(CANCEL) && m.connection.protocol_version == 1 {
        m.swallow();
    }
}

fn cancelled_as_end_turn(m: &mut InterceptedLine<'_>) {
    if is_cancelled_prompt(m) {
        m.set("/result/stopReason", "end_turn");
    }
}

fn cancelled_as_error(m: &mut InterceptedLine<'_>) {
    if is_cancelled_prompt(m) {
        m.turn_into_error(-32603, "This operation was aborted");
    }
}

fn update_after_cancelled(m: &mut InterceptedLine<'_>) {
    if is_cancelled_prompt(m) {
        let session = m.session_id();
        let content = json!({"type": "text", "text": "one more thing"});
        m.send_update(
            &session,
            json!({"sessionUpdate": "agent_message_chunk", "content": content}),
        );
    }
}

/// Hangs the turn when an open permission request is answered with -32800.
fn cancelled_reply_hangs(m: &mut InterceptedLine<'_>) {
    if m.is_client_response("session/request_permission") && m.get("/error/code") == -32800 {
        let session = m.session_id();
        m.remember(&session, true);
    } else if m.is_agent_response("session/prompt") && m.recall(&m.session_id()) == true {
        m.swallow();
    }
}

fn question_not_withdrawn(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call("$/cancel_request") {
        m.swallow();
    }
}

/// Applies a cancel of an idle session to the next prompt.
fn idle_cancel_poisons(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call(CANCEL) && m.connection.running_prompt(&session).is_none() {
        m.remember(&session, true);
    } else if m.is_client_call("session/prompt") && m.recall(&session) == true {
        m.remember(&session, false);
        m.send_to_agent(cancel_notification(&session));
    }
}

/// Applies the second cancel of a prompt to the next prompt, even if the first cancel has not ended the
/// prompt yet.
fn second_cancel_poisons(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call(CANCEL) {
        m.increment(&session);
    } else if m.is_client_call("session/prompt") {
        if m.recall(&session).as_u64().unwrap_or_default() > 1 {
            m.send_to_agent(cancel_notification(&session));
        }
        m.remember(&session, 0);
    }
}

/// Drops all cancels but the first that arrive before the agent's first message about the prompt.
fn cancel_with_prompt_lost(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/prompt") {
        m.remember("silent", true);
    } else if m.direction == Direction::ToClient {
        m.remember("silent", false);
    } else if m.is_client_call(CANCEL) && m.increment("cancels") > 1 && m.recall("silent") == true {
        m.swallow();
    }
}

fn cancelled_call_left_open(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call(CANCEL) {
        m.remember(&session, true);
    } else if m.is_client_call("session/prompt") {
        m.remember(&session, false);
    } else if m.update_kind() == "tool_call_update"
        && m.recall(&session) == true
        && m.get_str("/params/update/status") == "failed"
    {
        m.swallow();
    }
}

/// Reports a turn that ended by itself as cancelled.
fn finished_as_cancelled(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/prompt") && m.get_str("/result/stopReason") == "end_turn" {
        m.set("/result/stopReason", "cancelled");
    }
}

fn cancel_request_unanswered(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("$/cancel_request") {
        let id = m.get("/params/requestId").to_string();
        m.remember(&id, true);
    } else if m.direction == Direction::ToClient && m.is_agent_response("session/prompt") {
        let id = m.get("/id").to_string();
        if m.recall(&id) == true {
            m.swallow();
        }
    }
}

/// Cancels the running prompt on a `$/cancel_request` for an unknown id.
fn foreign_cancel_request_hits(m: &mut InterceptedLine<'_>) {
    let id = m.get("/params/requestId").clone();
    if m.is_client_call("$/cancel_request")
        && m.connection
            .pending_requests(Direction::ToAgent)
            .all(|open| open.id != id)
        && let Some(open) = m.connection.any_running_prompt()
    {
        let session = open.params["sessionId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        m.send_to_agent(cancel_notification(&session));
    }
}
