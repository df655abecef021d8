//! Faults of updates: messages, usage, titles, notices and compactions.

use super::{
    fault::Fault,
    intercepted_line::{InterceptedLine, injected_update},
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

fn send_update_before(m: &mut InterceptedLine<'_>, update: Value) {
    let session = m.session_id();
    m.send_to_client_before(injected_update(&session, update));
}

/// Returns true for the result of a version 1 prompt.
fn is_turn_end(m: &InterceptedLine<'_>) -> bool {
    m.is_agent_result("session/prompt")
        && m.connection.protocol_version == 1
        && m.has("/result/stopReason")
}

fn two_blocks_in_a_chunk(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "agent_message_chunk" {
        let block = m.get("/params/update/content").clone();
        m.set("/params/update/content", json!([block, block]));
    }
}

fn user_echo(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && m.connection.open_sessions.contains(&m.session_id())
        && m.get("/params/prompt/0/text").is_string()
    {
        let session = m.session_id();
        let content = m.get("/params/prompt/0").clone();
        m.send_update(
            &session,
            json!({"sessionUpdate": "user_message_chunk", "content": content}),
        );
    }
}

fn idle_chatter(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_agent_result("session/set_mode") && m.connection.running_prompt(&session).is_none() {
        let content = json!({"type": "text", "text": "By the way, I am in another mode now."});
        m.send_update(
            &session,
            json!({"sessionUpdate": "agent_message_chunk", "content": content}),
        );
    }
}

fn unknown_update(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) {
        send_update_before(m, json!({"sessionUpdate": "mood_update", "mood": "good"}));
    }
}

fn update_for_nobody(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) {
        m.send_to_client_before(injected_update(
            "nobody-has-this-one",
            json!({"sessionUpdate": "session_info_update", "title": "Whose?"}),
        ));
    }
}

fn used_null(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) {
        send_update_before(
            m,
            json!({"sessionUpdate": "usage_update", "used": null, "size": 1000}),
        );
    }
}

fn title_as_number(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) {
        send_update_before(
            m,
            json!({"sessionUpdate": "session_info_update", "title": 7}),
        );
    }
}

fn notice_unasked(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) && !m.connection.client_capabilities["session"]["notices"].is_object() {
        send_update_before(
            m,
            json!({"sessionUpdate": "notice", "severity": "info", "title": "News"}),
        );
    }
}

fn compaction_update(status: &str) -> Value {
    json!({"sessionUpdate": "compaction_update", "compactionId": "c1", "status": status})
}

fn compaction_unasked(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) && !m.connection.client_capabilities["session"]["compaction"].is_object() {
        send_update_before(m, compaction_update("in_progress"));
        send_update_before(m, compaction_update("completed"));
    }
}

fn compaction_ends_twice(m: &mut InterceptedLine<'_>) {
    if is_turn_end(m) {
        send_update_before(m, compaction_update("in_progress"));
        send_update_before(m, compaction_update("completed"));
        send_update_before(m, compaction_update("failed"));
    }
}
