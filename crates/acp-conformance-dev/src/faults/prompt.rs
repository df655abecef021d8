//! Faults of the prompt turn: accepted content, stop reasons, and order.

use super::{
    Direction, Fault, SideEffect,
    intercepted_line::{InterceptedLine, value_at},
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

fn prompt_blocks(m: &InterceptedLine<'_>) -> Vec<Value> {
    m.get(PROMPT).as_array().cloned().unwrap_or_default()
}

fn has_block(m: &InterceptedLine<'_>, kind: &str) -> bool {
    m.is_client_call("session/prompt") && prompt_blocks(m).iter().any(|block| block["type"] == kind)
}

fn link_refused(m: &mut InterceptedLine<'_>) {
    if has_block(m, "resource_link") {
        m.respond_error(-32602, "links are not supported");
    }
}

fn unadvertised_content_dropped(m: &mut InterceptedLine<'_>) {
    let can = m.connection.agent_capabilities["promptCapabilities"].clone();
    let taken = |block: &Value| match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) => can[kind] == true,
        Some("resource") => can["embeddedContext"] == true,
        _ => true,
    };
    let all = prompt_blocks(m);
    let kept: Vec<_> = all.iter().filter(|block| taken(block)).cloned().collect();
    if m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && kept.len() < all.len()
    {
        let kept = if kept.is_empty() {
            vec![json!({"type": "text", "text": "nothing"})]
        } else {
            kept
        };
        m.set(PROMPT, kept);
    }
}

fn no_stop_reason(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/prompt") {
        m.remove("/result/stopReason");
    }
}

/// Uses the stop reason `error`, which version 1 does not have.
fn stop_reason_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && m.is_agent_error(-32603) {
        m.turn_into_result(json!({"stopReason": "error"}));
    }
}

fn prompt_unanswered_on_failure(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && m.is_agent_error(-32603) {
        m.swallow();
    }
}

fn prompt_answered_twice(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/prompt") {
        let again = m.message.clone();
        m.send_to_client(again);
    }
}

fn failure_is_end_turn(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && m.is_agent_error(-32603) {
        m.turn_into_result(json!({"stopReason": "end_turn"}));
    }
}

fn model_failure_kills(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("session/prompt") && m.is_agent_error(-32603) {
        m.swallow();
        m.side_effect = SideEffect::Die;
    }
}

fn always_end_turn(m: &mut InterceptedLine<'_>) {
    let reason = m.get_str("/result/stopReason");
    if m.is_agent_response("session/prompt") && !reason.is_empty() && reason != "cancelled" {
        m.set("/result/stopReason", "end_turn");
    }
}

/// Sends the last text chunk of a turn after the prompt response, unless it was cancelled.
fn late_update(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "agent_message_chunk" && m.connection.any_running_prompt().is_some() {
        m.release_before();
        m.hold();
    } else if m.is_agent_result("session/prompt") && m.get_str("/result/stopReason") != "cancelled"
    {
        m.release();
    } else if m.direction == Direction::ToClient {
        m.release_before();
    }
}

/// Sends each prompt after the first to a new session, presented under the old id.
fn amnesia(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/new") {
        let params = m.get("/params").clone();
        m.remember("params", params);
    } else if m.is_client_call("session/prompt")
        && m.connection.open_sessions.contains(&m.session_id())
    {
        let session = m.session_id();
        if m.increment(&format!("prompts of {session}")) > 1
            && m.connection
                .any_running_prompt()
                .is_none_or(|open| open.id == m.message["id"])
        {
            m.remember("old", session);
            m.remember("new", Value::Null);
            m.send_request_to_agent("session/new", m.recall("params"));
            m.hold();
        }
    } else if m.is_response_to_injected("session/new") {
        let new = m.get("/result/sessionId").clone();
        m.remember("new", new.clone());
        for mut message in std::mem::take(&mut m.memory.held) {
            message["params"]["sessionId"] = new.clone();
            m.send_to_agent(message);
        }
    } else if !m.recall("old").is_null() {
        let (from, to) = match m.direction {
            Direction::ToAgent => (m.recall("old"), m.recall("new")),
            Direction::ToClient => (m.recall("new"), m.recall("old")),
        };
        if !from.is_null() && !to.is_null() && m.get("/params/sessionId") == &from {
            m.set("/params/sessionId", to);
        }
    }
}

/// Prepends a refused prompt to each following prompt.
fn refused_prompt_comes_back(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/prompt") && m.get_str("/result/stopReason") == "refusal" {
        let refused = m.request_params()["prompt"].clone();
        m.remember("refused", refused);
    } else if m.is_client_call("session/prompt")
        && let Some(mut blocks_before) = m.recall("refused").as_array().cloned()
    {
        blocks_before.extend(prompt_blocks(m));
        m.set(PROMPT, blocks_before);
    }
}

fn is_valid_block(block: &Value) -> bool {
    let text = |key: &str| block[key].is_string();
    match block["type"].as_str() {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data") && text("mimeType"),
        Some("resource_link") => text("uri") && text("name"),
        Some("resource") => block["resource"].is_object(),
        _ => false,
    }
}

fn bad_block_skipped(m: &mut InterceptedLine<'_>) {
    let all = prompt_blocks(m);
    let kept: Vec<_> = all.iter().filter(|b| is_valid_block(b)).cloned().collect();
    if m.is_client_call("session/prompt") && kept.len() < all.len() {
        m.set(PROMPT, kept);
    }
}

fn prompt_as_text_taken(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/prompt")
        && let Some(text) = m.get(PROMPT).as_str()
    {
        let text = text.to_owned();
        m.set(PROMPT, json!([{"type": "text", "text": text}]));
    }
}

/// Returns true for a prompt to a session in which another prompt runs.
fn has_other_prompt(m: &InterceptedLine<'_>) -> bool {
    let session = m.session_id();
    m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && m.connection
            .pending_requests(Direction::ToAgent)
            .any(|open| {
                open.method == "session/prompt"
                    && open.params["sessionId"] == session
                    && open.id != m.message["id"]
            })
}

fn second_prompt_swallowed(m: &mut InterceptedLine<'_>) {
    if has_other_prompt(m) {
        m.swallow();
    }
}

fn empty_prompt_hangs(m: &mut InterceptedLine<'_>) {
    let empty = value_at(&m.message, PROMPT)
        .as_array()
        .is_some_and(Vec::is_empty);
    if m.is_client_call("session/prompt") && empty {
        m.swallow();
    }
}
