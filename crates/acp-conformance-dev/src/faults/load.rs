//! Faults of loading and resuming sessions: the replay, its order, and the restored context.

use super::{
    Direction, Fault,
    intercepted_line::{InterceptedLine, injected_update},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("replay_missing", replay_missing),
    Fault::lines("replay_half", replay_half),
    Fault::lines("replay_without_user", replay_without_user),
    Fault::lines("replay_after_answer", replay_after_answer),
    Fault::lines("loaded_without_context", loaded_without_context),
    Fault::lines("load_answers_null", load_answers_null),
    Fault::lines("replay_same_message_id", replay_same_message_id),
    Fault::lines("notice_replayed", notice_replayed),
    Fault::lines("replayed_call_runs", replayed_call_runs),
    Fault::lines("resume_replays", resume_replays),
    Fault::lines("resumed_without_context", resumed_without_context),
];

const HISTORY_UPDATES: [&str; 5] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
];

fn has_pending_request(m: &InterceptedLine<'_>, method: &str) -> bool {
    let session = m.session_id();
    m.connection
        .pending_requests(Direction::ToAgent)
        .any(|open| open.method == method && open.params["sessionId"] == session)
}

/// Returns true for an update that replays the history.
fn is_replay(m: &InterceptedLine<'_>) -> bool {
    HISTORY_UPDATES.contains(&m.update_kind())
        && m.connection.protocol_version == 1
        && has_pending_request(m, "session/load")
}

fn replay_missing(m: &mut InterceptedLine<'_>) {
    if is_replay(m) {
        m.swallow();
    }
}

/// Drops the replay after the agent's first text.
fn replay_half(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/load") {
        m.remember("said", false);
    } else if is_replay(m) {
        if m.recall("said") == true {
            m.swallow();
        } else if m.update_kind() == "agent_message_chunk" {
            m.remember("said", true);
        }
    }
}

fn replay_without_user(m: &mut InterceptedLine<'_>) {
    if is_replay(m) && m.update_kind() == "user_message_chunk" {
        m.swallow();
    }
}

fn replay_after_answer(m: &mut InterceptedLine<'_>) {
    if is_replay(m) {
        m.hold();
    } else if m.is_agent_response("session/load") {
        m.release();
    }
}

/// Replaces the session by a new one with the old id after `method`.
fn lose_context_after(m: &mut InterceptedLine<'_>, method: &str) {
    if m.is_agent_result(method) {
        let asked = m.request_params().clone();
        m.remember("old", asked["sessionId"].clone());
        m.remember("new", Value::Null);
        m.send_request_to_agent(
            "session/new",
            json!({"cwd": asked["cwd"], "mcpServers": asked["mcpServers"]}),
        );
    } else if m.is_response_to_injected("session/new") {
        let new = m.get("/result/sessionId").clone();
        m.remember("new", new);
        for message in std::mem::take(&mut m.memory.held) {
            m.send_to_agent(replace_session_id(
                message,
                &m.recall("old"),
                &m.recall("new"),
            ));
        }
    } else if m.direction == Direction::ToAgent && !m.recall("old").is_null() {
        if m.get("/params/sessionId") != &m.recall("old") {
            return;
        }
        if m.recall("new").is_null() {
            m.hold();
        } else {
            let new = m.recall("new");
            m.set("/params/sessionId", new);
        }
    } else if m.direction == Direction::ToClient
        && !m.recall("new").is_null()
        && m.get("/params/sessionId") == &m.recall("new")
    {
        let old = m.recall("old");
        m.set("/params/sessionId", old);
    }
}

fn replace_session_id(mut message: Value, from: &Value, to: &Value) -> Value {
    if let Some(session) = message.pointer_mut("/params/sessionId")
        && session == from
    {
        *session = to.clone();
    }
    message
}

fn loaded_without_context(m: &mut InterceptedLine<'_>) {
    lose_context_after(m, "session/load");
}

fn resumed_without_context(m: &mut InterceptedLine<'_>) {
    lose_context_after(m, "session/resume");
}

fn load_answers_null(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/load") {
        m.set("/result", Value::Null);
    }
}

fn replay_same_message_id(m: &mut InterceptedLine<'_>) {
    if is_replay(m) && m.has("/params/update/messageId") {
        m.set("/params/update/messageId", "same");
    }
}

fn notice_replayed(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/load") {
        let session = m.session_id();
        m.send_to_client_before(injected_update(
            &session,
            json!({"sessionUpdate": "notice", "severity": "info", "title": "From before"}),
        ));
    }
}

fn replayed_call_runs(m: &mut InterceptedLine<'_>) {
    if is_replay(m) && matches!(m.get_str("/params/update/status"), "completed" | "failed") {
        m.set("/params/update/status", "in_progress");
    }
}

fn resume_replays(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/resume") && m.connection.protocol_version == 1 {
        let session = m.session_id();
        let content = json!({"type": "text", "text": "what was said before"});
        m.send_to_client_before(injected_update(
            &session,
            json!({"sessionUpdate": "user_message_chunk", "content": content}),
        ));
    }
}
