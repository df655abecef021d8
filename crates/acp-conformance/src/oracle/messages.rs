//! Parses message parts that several rules use.

use super::responses::ClientRequest;
use crate::official_schema::MessageKind;
use serde_json::Value;

/// Message of the agent.
#[derive(Clone, Copy)]
pub(super) struct AgentMessage<'a> {
    pub(super) kind: MessageKind,
    pub(super) json: &'a Value,
    /// Request that this response answers.
    pub(super) request: Option<&'a ClientRequest>,
}

impl<'a> AgentMessage<'a> {
    /// Returns the `initialize` request that the message accepts.
    pub(super) fn accepted_initialize(self) -> Option<&'a ClientRequest> {
        let is_accepted = self.json["result"].is_object();
        self.request
            .filter(|request| is_accepted && request.method == "initialize")
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

/// Returns the values that an option offers, those of its groups included.
pub(super) fn option_values(option: &Value) -> impl Iterator<Item = &Value> {
    let offered = option["options"].as_array().into_iter().flatten();
    let offered = offered.flat_map(|one| match one["options"].as_array() {
        Some(group) => group.iter().collect(),
        None => vec![one],
    });
    offered.map(|one| &one["value"])
}

/// Returns true if no two items are equal.
pub(super) fn are_unique<T: PartialEq>(items: &[T]) -> bool {
    let mut indexed = items.iter().enumerate();
    indexed.all(|(index, item)| !items[..index].contains(item))
}
