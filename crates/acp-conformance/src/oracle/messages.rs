//! Parses message parts that several rules use.

use serde_json::Value;

/// Kind of a JSON-RPC message, derived from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonRpcKind {
    Request,
    Notification,
    Response,
}

impl JsonRpcKind {
    /// Returns the kind of a message, or `None` if it has none.
    pub(super) fn of(message: &Value) -> Option<Self> {
        let has = |key: &str| message.get(key).is_some();
        match (message["method"].is_string(), has("id")) {
            (true, true) => Some(Self::Request),
            (true, false) => Some(Self::Notification),
            (false, _) if has("result") || has("error") => Some(Self::Response),
            (false, _) => None,
        }
    }
}

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
pub(super) fn session_id(params: &Value) -> &str {
    params["sessionId"].as_str().unwrap_or_default()
}

/// Returns the intended protocol version, even if it is sent as a string.
pub(super) fn parse_version(version: &Value) -> Option<u64> {
    version.as_u64().or_else(|| version.as_str()?.parse().ok())
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
