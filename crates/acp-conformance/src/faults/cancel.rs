//! Faults of cancelling: what is stopped, and what is said of it.

use super::{Deed, Fault, Way, passing::Passing};
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

fn cancel_of(session: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": CANCEL, "params": {"sessionId": session}})
}

/// A prompt of version 1 was answered with `cancelled`.
fn was_cancelled(m: &Passing<'_>) -> bool {
    m.answers("session/prompt") && m.text("/result/stopReason") == "cancelled"
}

fn cancel_answered(m: &mut Passing<'_>) {
    if m.client_says(CANCEL) && m.wire.prompt_in(&m.session()).is_some() {
        m.tell(json!({"jsonrpc": "2.0", "id": null, "result": {}}));
    }
}

fn cancel_slow(m: &mut Passing<'_>) {
    if m.client_says(CANCEL) && m.wire.prompt_in(&m.session()).is_some() {
        m.deed = Deed::Sleep;
    }
}

fn cancel_lost(m: &mut Passing<'_>) {
    if m.client_says(CANCEL) && m.wire.version == 1 {
        m.swallow();
    }
}

fn cancelled_as_end_turn(m: &mut Passing<'_>) {
    if was_cancelled(m) {
        m.set("/result/stopReason", "end_turn");
    }
}

fn cancelled_as_error(m: &mut Passing<'_>) {
    if was_cancelled(m) {
        m.turn_into_error(-32603, "This operation was aborted");
    }
}

fn update_after_cancelled(m: &mut Passing<'_>) {
    if was_cancelled(m) {
        let session = m.session();
        let content = json!({"type": "text", "text": "one more thing"});
        m.tell_update(
            &session,
            json!({"sessionUpdate": "agent_message_chunk", "content": content}),
        );
    }
}

/// The turn hangs when an open question is answered with -32800.
fn cancelled_reply_hangs(m: &mut Passing<'_>) {
    if m.replies("session/request_permission") && m.get("/error/code") == -32800 {
        let session = m.session();
        m.keep(&session, true);
    } else if m.answers("session/prompt") && m.note(&m.session()) == true {
        m.swallow();
    }
}

fn question_not_withdrawn(m: &mut Passing<'_>) {
    if m.agent_says("$/cancel_request") {
        m.swallow();
    }
}

/// A cancel while nothing runs hits the next prompt.
fn idle_cancel_poisons(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says(CANCEL) && m.wire.prompt_in(&session).is_none() {
        m.keep(&session, true);
    } else if m.client_says("session/prompt") && m.note(&session) == true {
        m.keep(&session, false);
        m.tell_agent(cancel_of(&session));
    }
}

/// The second cancel of a prompt hits the next one, whether the first has ended it by then or not.
fn second_cancel_poisons(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says(CANCEL) {
        m.count(&session);
    } else if m.client_says("session/prompt") {
        if m.note(&session).as_u64().unwrap_or_default() > 1 {
            m.tell_agent(cancel_of(&session));
        }
        m.keep(&session, 0);
    }
}

/// A cancel that the agent reads before it has said anything about the prompt is lost, but for the first.
fn cancel_with_prompt_lost(m: &mut Passing<'_>) {
    if m.client_says("session/prompt") {
        m.keep("silent", true);
    } else if m.way == Way::ToClient {
        m.keep("silent", false);
    } else if m.client_says(CANCEL) && m.count("cancels") > 1 && m.note("silent") == true {
        m.swallow();
    }
}

fn cancelled_call_left_open(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says(CANCEL) {
        m.keep(&session, true);
    } else if m.client_says("session/prompt") {
        m.keep(&session, false);
    } else if m.update() == "tool_call_update"
        && m.note(&session) == true
        && m.text("/params/update/status") == "failed"
    {
        m.swallow();
    }
}

/// A turn that ended by itself is called cancelled.
fn finished_as_cancelled(m: &mut Passing<'_>) {
    if m.grants("session/prompt") && m.text("/result/stopReason") == "end_turn" {
        m.set("/result/stopReason", "cancelled");
    }
}

fn cancel_request_unanswered(m: &mut Passing<'_>) {
    if m.client_says("$/cancel_request") {
        let id = m.get("/params/requestId").to_string();
        m.keep(&id, true);
    } else if m.way == Way::ToClient && m.answers("session/prompt") {
        let id = m.get("/id").to_string();
        if m.note(&id) == true {
            m.swallow();
        }
    }
}

/// `$/cancel_request` for an id that nobody used stops whatever runs.
fn foreign_cancel_request_hits(m: &mut Passing<'_>) {
    let id = m.get("/params/requestId").clone();
    if m.client_says("$/cancel_request")
        && m.wire.open(Way::ToAgent).all(|open| open.id != id)
        && let Some(open) = m.wire.any_prompt()
    {
        let session = open.params["sessionId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        m.tell_agent(cancel_of(&session));
    }
}
