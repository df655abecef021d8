//! Parses message parts that several rules use.

use serde_json::Value;

/// Session, kind and body of a `session/update` notification.
pub(super) struct SessionUpdate<'a> {
    pub(super) session_id: &'a str,
    pub(super) kind: &'a str,
    pub(super) body: &'a Value,
}

/// Parses a `session/update` notification.
pub(super) fn parse_update(message: &Value) -> Option<SessionUpdate<'_>> {
    if message["method"] != "session/update" {
        return None;
    }
    let params = &message["params"];
    let body = &params["update"];
    Some(SessionUpdate {
        session_id: params["sessionId"].as_str()?,
        kind: body["sessionUpdate"].as_str()?,
        body,
    })
}

/// Returns the session id of the parameters, or an empty string.
pub(super) fn session(params: &Value) -> &str {
    params["sessionId"].as_str().unwrap_or_default()
}

/// Returns true for updates that belong to a turn rather than to the session.
pub(super) fn is_turn_update(kind: &str) -> bool {
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
