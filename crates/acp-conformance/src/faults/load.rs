//! Faults of coming back: what is replayed, when, and what the session still knows.

use super::{
    Fault, Way,
    passing::{Passing, made_up_update},
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

const HISTORY: [&str; 5] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
];

fn is_open(m: &Passing<'_>, method: &str) -> bool {
    let session = m.session();
    m.wire
        .open(Way::ToAgent)
        .any(|open| open.method == method && open.params["sessionId"] == session)
}

/// An update of what was said before.
fn is_replay(m: &Passing<'_>) -> bool {
    HISTORY.contains(&m.update()) && m.wire.version == 1 && is_open(m, "session/load")
}

fn replay_missing(m: &mut Passing<'_>) {
    if is_replay(m) {
        m.swallow();
    }
}

/// All after the agent's first text is lost.
fn replay_half(m: &mut Passing<'_>) {
    if m.grants("session/load") {
        m.keep("said", false);
    } else if is_replay(m) {
        if m.note("said") == true {
            m.swallow();
        } else if m.update() == "agent_message_chunk" {
            m.keep("said", true);
        }
    }
}

fn replay_without_user(m: &mut Passing<'_>) {
    if is_replay(m) && m.update() == "user_message_chunk" {
        m.swallow();
    }
}

fn replay_after_answer(m: &mut Passing<'_>) {
    if is_replay(m) {
        m.hold();
    } else if m.answers("session/load") {
        m.release();
    }
}

/// After `method` the session is a new one behind its old name.
fn forget_after(m: &mut Passing<'_>, method: &str) {
    if m.grants(method) {
        let asked = m.asked().clone();
        m.keep("old", asked["sessionId"].clone());
        m.keep("new", Value::Null);
        m.ask_agent(
            "session/new",
            json!({"cwd": asked["cwd"], "mcpServers": asked["mcpServers"]}),
        );
    } else if m.answers_ours("session/new") {
        let new = m.get("/result/sessionId").clone();
        m.keep("new", new);
        for message in std::mem::take(&mut m.memory.held) {
            m.tell_agent(renamed(message, &m.note("old"), &m.note("new")));
        }
    } else if m.way == Way::ToAgent && !m.note("old").is_null() {
        if m.get("/params/sessionId") != &m.note("old") {
            return;
        }
        if m.note("new").is_null() {
            m.hold();
        } else {
            let new = m.note("new");
            m.set("/params/sessionId", new);
        }
    } else if m.way == Way::ToClient
        && !m.note("new").is_null()
        && m.get("/params/sessionId") == &m.note("new")
    {
        let old = m.note("old");
        m.set("/params/sessionId", old);
    }
}

fn renamed(mut message: Value, from: &Value, to: &Value) -> Value {
    if let Some(session) = message.pointer_mut("/params/sessionId")
        && session == from
    {
        *session = to.clone();
    }
    message
}

fn loaded_without_context(m: &mut Passing<'_>) {
    forget_after(m, "session/load");
}

fn resumed_without_context(m: &mut Passing<'_>) {
    forget_after(m, "session/resume");
}

fn load_answers_null(m: &mut Passing<'_>) {
    if m.grants("session/load") {
        m.set("/result", Value::Null);
    }
}

fn replay_same_message_id(m: &mut Passing<'_>) {
    if is_replay(m) && m.has("/params/update/messageId") {
        m.set("/params/update/messageId", "same");
    }
}

fn notice_replayed(m: &mut Passing<'_>) {
    if m.grants("session/load") {
        let session = m.session();
        m.tell_before(made_up_update(
            &session,
            json!({"sessionUpdate": "notice", "severity": "info", "title": "From before"}),
        ));
    }
}

fn replayed_call_runs(m: &mut Passing<'_>) {
    if is_replay(m) && matches!(m.text("/params/update/status"), "completed" | "failed") {
        m.set("/params/update/status", "in_progress");
    }
}

fn resume_replays(m: &mut Passing<'_>) {
    if m.grants("session/resume") && m.wire.version == 1 {
        let session = m.session();
        let content = json!({"type": "text", "text": "what was said before"});
        m.tell_before(made_up_update(
            &session,
            json!({"sessionUpdate": "user_message_chunk", "content": content}),
        ));
    }
}
