//! Messages: what several laws read of one.

use serde_json::Value;

/// A `session/update`: its session, its kind and what it says.
pub(super) struct Update<'a> {
    pub(super) session: &'a str,
    pub(super) kind: &'a str,
    pub(super) body: &'a Value,
}

/// What a message updates.
pub(super) fn update(message: &Value) -> Option<Update<'_>> {
    if message["method"] != "session/update" {
        return None;
    }
    let params = &message["params"];
    let body = &params["update"];
    Some(Update {
        session: params["sessionId"].as_str()?,
        kind: body["sessionUpdate"].as_str()?,
        body,
    })
}

/// The session that a message names.
pub(super) fn session(params: &Value) -> &str {
    params["sessionId"].as_str().unwrap_or_default()
}

/// Part of what is said and done in a turn, and not news about the session.
pub(super) fn is_of_a_turn(kind: &str) -> bool {
    matches!(
        kind,
        "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
    )
}
