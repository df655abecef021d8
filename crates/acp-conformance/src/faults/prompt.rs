//! Faults of the prompt turn: what is taken, how it ends, and in which order.

use super::{
    Deed, Fault, Way,
    passing::{Passing, at},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("link_refused", link_refused),
    Fault::lines("unadvertised_content_dropped", unadvertised_content_dropped),
    Fault::lines("no_stop_reason", no_stop_reason),
    Fault::lines("stop_reason_error", stop_reason_error),
    Fault::lines("prompt_unanswered_on_failure", prompt_unanswered_on_failure),
    Fault::lines("prompt_answered_twice", prompt_answered_twice),
    Fault::lines("failure_is_end_turn", failure_is_end_turn),
    Fault::lines("model_failure_kills", model_failure_kills),
    Fault::lines("always_end_turn", always_end_turn),
    Fault::lines("late_update", late_update),
    Fault::lines("amnesia", amnesia),
    Fault::lines("refused_prompt_comes_back", refused_prompt_comes_back),
    Fault::lines("bad_block_skipped", bad_block_skipped),
    Fault::lines("prompt_as_text_taken", prompt_as_text_taken),
    Fault::lines("second_prompt_swallowed", second_prompt_swallowed),
    Fault::lines("empty_prompt_hangs", empty_prompt_hangs),
];

const PROMPT: &str = "/params/prompt";

fn blocks(m: &Passing<'_>) -> Vec<Value> {
    m.get(PROMPT).as_array().cloned().unwrap_or_default()
}

fn has_block(m: &Passing<'_>, kind: &str) -> bool {
    m.client_says("session/prompt") && blocks(m).iter().any(|block| block["type"] == kind)
}

fn link_refused(m: &mut Passing<'_>) {
    if has_block(m, "resource_link") {
        m.refuse(-32602, "links are not supported");
    }
}

fn unadvertised_content_dropped(m: &mut Passing<'_>) {
    let can = m.wire.agent["promptCapabilities"].clone();
    let taken = |block: &Value| match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) => can[kind] == true,
        Some("resource") => can["embeddedContext"] == true,
        _ => true,
    };
    let all = blocks(m);
    let kept: Vec<_> = all.iter().filter(|block| taken(block)).cloned().collect();
    if m.client_says("session/prompt") && m.wire.version == 1 && kept.len() < all.len() {
        let kept = if kept.is_empty() {
            vec![json!({"type": "text", "text": "nothing"})]
        } else {
            kept
        };
        m.set(PROMPT, kept);
    }
}

fn no_stop_reason(m: &mut Passing<'_>) {
    if m.grants("session/prompt") {
        m.unset("/result/stopReason");
    }
}

/// The word that version 1 does not have.
fn stop_reason_error(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && m.fails_with(-32603) {
        m.turn_into_result(json!({"stopReason": "error"}));
    }
}

fn prompt_unanswered_on_failure(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && m.fails_with(-32603) {
        m.swallow();
    }
}

fn prompt_answered_twice(m: &mut Passing<'_>) {
    if m.grants("session/prompt") {
        let again = m.value.clone();
        m.tell(again);
    }
}

fn failure_is_end_turn(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && m.fails_with(-32603) {
        m.turn_into_result(json!({"stopReason": "end_turn"}));
    }
}

fn model_failure_kills(m: &mut Passing<'_>) {
    if m.answers("session/prompt") && m.fails_with(-32603) {
        m.swallow();
        m.deed = Deed::Die;
    }
}

fn always_end_turn(m: &mut Passing<'_>) {
    let reason = m.text("/result/stopReason");
    if m.answers("session/prompt") && !reason.is_empty() && reason != "cancelled" {
        m.set("/result/stopReason", "end_turn");
    }
}

/// The last piece of text of a turn that ended well comes after its answer.
fn late_update(m: &mut Passing<'_>) {
    if m.update() == "agent_message_chunk" && m.wire.any_prompt().is_some() {
        m.release_before();
        m.hold();
    } else if m.grants("session/prompt") && m.text("/result/stopReason") != "cancelled" {
        m.release();
    } else if m.way == Way::ToClient {
        m.release_before();
    }
}

/// Each prompt after the first goes to a new session behind the old name.
fn amnesia(m: &mut Passing<'_>) {
    if m.client_says("session/new") {
        let params = m.get("/params").clone();
        m.keep("params", params);
    } else if m.client_says("session/prompt") && m.wire.sessions.contains(&m.session()) {
        let session = m.session();
        if m.count(&format!("prompts of {session}")) > 1
            && m.wire
                .any_prompt()
                .is_none_or(|open| open.id == m.value["id"])
        {
            m.keep("old", session);
            m.keep("new", Value::Null);
            m.ask_agent("session/new", m.note("params"));
            m.hold();
        }
    } else if m.answers_ours("session/new") {
        let new = m.get("/result/sessionId").clone();
        m.keep("new", new.clone());
        for mut message in std::mem::take(&mut m.memory.held) {
            message["params"]["sessionId"] = new.clone();
            m.tell_agent(message);
        }
    } else if !m.note("old").is_null() {
        let (from, to) = match m.way {
            Way::ToAgent => (m.note("old"), m.note("new")),
            Way::ToClient => (m.note("new"), m.note("old")),
        };
        if !from.is_null() && !to.is_null() && m.get("/params/sessionId") == &from {
            m.set("/params/sessionId", to);
        }
    }
}

/// What was refused is put before the next prompt.
fn refused_prompt_comes_back(m: &mut Passing<'_>) {
    if m.grants("session/prompt") && m.text("/result/stopReason") == "refusal" {
        let refused = m.asked()["prompt"].clone();
        m.keep("refused", refused);
    } else if m.client_says("session/prompt")
        && let Some(mut blocks_before) = m.note("refused").as_array().cloned()
    {
        blocks_before.extend(blocks(m));
        m.set(PROMPT, blocks_before);
    }
}

fn is_right_block(block: &Value) -> bool {
    let text = |key: &str| block[key].is_string();
    match block["type"].as_str() {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data") && text("mimeType"),
        Some("resource_link") => text("uri") && text("name"),
        Some("resource") => block["resource"].is_object(),
        _ => false,
    }
}

fn bad_block_skipped(m: &mut Passing<'_>) {
    let all = blocks(m);
    let kept: Vec<_> = all.iter().filter(|b| is_right_block(b)).cloned().collect();
    if m.client_says("session/prompt") && kept.len() < all.len() {
        m.set(PROMPT, kept);
    }
}

fn prompt_as_text_taken(m: &mut Passing<'_>) {
    if m.client_says("session/prompt")
        && let Some(text) = m.get(PROMPT).as_str()
    {
        let text = text.to_owned();
        m.set(PROMPT, json!([{"type": "text", "text": text}]));
    }
}

/// Another prompt runs in the session of this one.
fn is_busy(m: &Passing<'_>) -> bool {
    let session = m.session();
    m.client_says("session/prompt")
        && m.wire.version == 1
        && m.wire.open(Way::ToAgent).any(|open| {
            open.method == "session/prompt"
                && open.params["sessionId"] == session
                && open.id != m.value["id"]
        })
}

fn second_prompt_swallowed(m: &mut Passing<'_>) {
    if is_busy(m) {
        m.swallow();
    }
}

fn empty_prompt_hangs(m: &mut Passing<'_>) {
    let empty = at(&m.value, PROMPT).as_array().is_some_and(Vec::is_empty);
    if m.client_says("session/prompt") && empty {
        m.swallow();
    }
}
