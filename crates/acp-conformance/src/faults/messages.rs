//! Faults of updates: messages, usage, titles, notices, compactions.

use super::{
    Fault,
    passing::{Passing, made_up_update},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("two_blocks_in_a_chunk", two_blocks_in_a_chunk),
    Fault::lines("user_echo", user_echo),
    Fault::lines("idle_chatter", idle_chatter),
    Fault::lines("unknown_update", unknown_update),
    Fault::lines("update_for_nobody", update_for_nobody),
    Fault::lines("used_null", used_null),
    Fault::lines("title_as_number", title_as_number),
    Fault::lines("notice_unasked", notice_unasked),
    Fault::lines("compaction_unasked", compaction_unasked),
    Fault::lines("compaction_ends_twice", compaction_ends_twice),
];

fn tell_before(m: &mut Passing<'_>, update: Value) {
    let session = m.session();
    m.tell_before(made_up_update(&session, update));
}

/// The turn of a v1 session ends well.
fn turn_ends(m: &Passing<'_>) -> bool {
    m.grants("session/prompt") && m.wire.version == 1 && m.has("/result/stopReason")
}

fn two_blocks_in_a_chunk(m: &mut Passing<'_>) {
    if m.update() == "agent_message_chunk" {
        let block = m.get("/params/update/content").clone();
        m.set("/params/update/content", json!([block, block]));
    }
}

fn user_echo(m: &mut Passing<'_>) {
    if m.client_says("session/prompt")
        && m.wire.version == 1
        && m.wire.sessions.contains(&m.session())
        && m.get("/params/prompt/0/text").is_string()
    {
        let session = m.session();
        let content = m.get("/params/prompt/0").clone();
        m.tell_update(
            &session,
            json!({"sessionUpdate": "user_message_chunk", "content": content}),
        );
    }
}

fn idle_chatter(m: &mut Passing<'_>) {
    let session = m.session();
    if m.grants("session/set_mode") && m.wire.prompt_in(&session).is_none() {
        let content = json!({"type": "text", "text": "By the way, I am in another mode now."});
        m.tell_update(
            &session,
            json!({"sessionUpdate": "agent_message_chunk", "content": content}),
        );
    }
}

fn unknown_update(m: &mut Passing<'_>) {
    if turn_ends(m) {
        tell_before(m, json!({"sessionUpdate": "mood_update", "mood": "good"}));
    }
}

fn update_for_nobody(m: &mut Passing<'_>) {
    if turn_ends(m) {
        m.tell_before(made_up_update(
            "nobody-has-this-one",
            json!({"sessionUpdate": "session_info_update", "title": "Whose?"}),
        ));
    }
}

fn used_null(m: &mut Passing<'_>) {
    if turn_ends(m) {
        tell_before(
            m,
            json!({"sessionUpdate": "usage_update", "used": null, "size": 1000}),
        );
    }
}

fn title_as_number(m: &mut Passing<'_>) {
    if turn_ends(m) {
        tell_before(
            m,
            json!({"sessionUpdate": "session_info_update", "title": 7}),
        );
    }
}

fn notice_unasked(m: &mut Passing<'_>) {
    if turn_ends(m) && !m.wire.client["session"]["notices"].is_object() {
        tell_before(
            m,
            json!({"sessionUpdate": "notice", "severity": "info", "title": "News"}),
        );
    }
}

fn compaction(status: &str) -> Value {
    json!({"sessionUpdate": "compaction_update", "compactionId": "c1", "status": status})
}

fn compaction_unasked(m: &mut Passing<'_>) {
    if turn_ends(m) && !m.wire.client["session"]["compaction"].is_object() {
        tell_before(m, compaction("in_progress"));
        tell_before(m, compaction("completed"));
    }
}

fn compaction_ends_twice(m: &mut Passing<'_>) {
    if turn_ends(m) {
        tell_before(m, compaction("in_progress"));
        tell_before(m, compaction("completed"));
        tell_before(m, compaction("failed"));
    }
}
