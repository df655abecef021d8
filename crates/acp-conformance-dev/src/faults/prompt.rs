//! Faults of the prompt turn and of cancelling.

use super::{
    Direction, fault::LineFunction, intercepted_line::InterceptedLine,
    sessions::forward_to_new_session,
};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("link_refused", link_refused),
    ("unadvertised_content_dropped", unadvertised_content_dropped),
    ("amnesia", amnesia),
    ("refused_prompt_comes_back", refused_prompt_comes_back),
    ("bad_block_skipped", bad_block_skipped),
    ("second_prompt_swallowed", second_prompt_swallowed),
    ("second_cancel_poisons", second_cancel_poisons),
    ("foreign_cancel_request_hits", foreign_cancel_request_hits),
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
    if m.is_client_call("session/prompt") && m.connection.protocol_version == 1 {
        m.retain_prompt_blocks(taken);
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
            m.inject_request(Direction::ToAgent, "session/new", m.recall("params"));
            m.hold();
        }
    } else {
        forward_to_new_session(m);
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
    if m.is_client_call("session/prompt") {
        m.edit_array(PROMPT, |blocks| blocks.retain(is_valid_block));
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

const CANCEL: &str = "session/cancel";

fn cancel_notification(session: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": CANCEL, "params": {"sessionId": session}})
}

/// Applies the second cancel of a prompt to the next prompt, even if the first cancel has not ended the
/// prompt yet.
fn second_cancel_poisons(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call(CANCEL) {
        m.increment(&session);
    } else if m.is_client_call("session/prompt") {
        if m.recall(&session).as_u64().unwrap_or_default() > 1 {
            m.send_after(Direction::ToAgent, cancel_notification(&session));
        }
        m.remember(&session, 0);
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
        m.send_after(Direction::ToAgent, cancel_notification(&session));
    }
}
