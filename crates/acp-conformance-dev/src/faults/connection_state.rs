//! Tracks the state of a connection, as far as faults need it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the agent.
    ToAgent,
    /// From the agent to the client.
    ToClient,
}

impl Direction {
    /// Returns the other direction.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::ToAgent => Self::ToClient,
            Self::ToClient => Self::ToAgent,
        }
    }
}

/// Kind of message in a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MessageKind {
    /// Request or notification.
    Call,
    /// Response to an open request.
    Response(PendingRequest),
    /// Anything else: garbage, a batch, a response without a request.
    Other,
}

/// Request that waits for its response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingRequest {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// True if the fault made up the request, so that its apparent sender does not know about it.
    pub(crate) injected: bool,
}

/// State of a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    pending: BTreeMap<(Direction, String), PendingRequest>,
    /// Client capabilities of the last `initialize`.
    pub(crate) client_capabilities: Value,
    /// Agent capabilities.
    pub(crate) agent_capabilities: Value,
    /// Negotiated protocol version; 0 before `initialize`.
    pub(crate) protocol_version: u64,
    /// Ids of sessions created, loaded or resumed on this connection and not closed since.
    pub(crate) open_sessions: BTreeSet<String>,
    injected_count: usize,
}

impl ConnectionState {
    /// Records a line before the fault changes it, and returns its kind.
    pub(crate) fn observe(&mut self, direction: Direction, value: &Value) -> MessageKind {
        let id = value.get("id");
        if let Some(method) = value.get("method").and_then(Value::as_str) {
            if let Some(id) = id {
                let open = PendingRequest {
                    id: id.clone(),
                    method: method.to_owned(),
                    params: value.get("params").cloned().unwrap_or_default(),
                    injected: false,
                };
                self.pending.insert((direction, id.to_string()), open);
            }
            return MessageKind::Call;
        }
        let answered =
            id.and_then(|id| self.pending.remove(&(direction.opposite(), id.to_string())));
        let Some(open) = answered else {
            return MessageKind::Other;
        };
        if direction == Direction::ToClient
            && let Some(result) = value.get("result")
        {
            self.apply_result(&open, result);
        }
        MessageKind::Response(open)
    }

    fn apply_result(&mut self, open: &PendingRequest, result: &Value) {
        let asked = open.params["sessionId"].as_str().unwrap_or_default();
        match open.method.as_str() {
            "initialize" => {
                self.protocol_version = result["protocolVersion"].as_u64().unwrap_or_default();
                self.agent_capabilities = result
                    .get("agentCapabilities")
                    .or_else(|| result.get("capabilities"))
                    .cloned()
                    .unwrap_or_default();
                self.client_capabilities = open.params["clientCapabilities"].clone();
            }
            "session/new" | "session/fork" => {
                self.open_sessions
                    .extend(result["sessionId"].as_str().map(str::to_owned));
            }
            "session/load" | "session/resume" => {
                self.open_sessions.insert(asked.to_owned());
            }
            "session/close" | "session/delete" => {
                self.open_sessions.remove(asked);
            }
            _ => {}
        }
    }

    /// Returns the open requests sent in one direction.
    pub(crate) fn pending_requests(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = &PendingRequest> {
        self.pending
            .iter()
            .filter(move |((asked, _), _)| *asked == direction)
            .map(|(_, open)| open)
    }

    /// Returns the running prompt of a session.
    pub(crate) fn running_prompt(&self, session: &str) -> Option<&PendingRequest> {
        self.pending_requests(Direction::ToAgent)
            .find(|open| open.method == "session/prompt" && open.params["sessionId"] == session)
    }

    /// Returns the first running prompt of any session.
    pub(crate) fn any_running_prompt(&self) -> Option<&PendingRequest> {
        self.pending_requests(Direction::ToAgent)
            .find(|open| open.method == "session/prompt")
    }

    /// Forgets a request whose response was made up, or will never come.
    pub(crate) fn forget_request(&mut self, direction: Direction, id: &Value) {
        self.pending.remove(&(direction, id.to_string()));
    }

    /// Adds a made-up request and returns its id.
    pub(crate) fn add_injected_request(
        &mut self,
        direction: Direction,
        method: &str,
        params: &Value,
    ) -> Value {
        self.injected_count += 1;
        let id = Value::from(format!("made-up-{}", self.injected_count));
        let open = PendingRequest {
            id: id.clone(),
            method: method.to_owned(),
            params: params.clone(),
            injected: true,
        };
        self.pending.insert((direction, id.to_string()), open);
        id
    }
}
