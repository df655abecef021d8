//! wire: what has been said on a connection so far, as far as faults need to know it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the client to the agent.
    ToAgent,
    /// From the agent to the client.
    ToClient,
}

impl Way {
    /// The other direction.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::ToAgent => Self::ToClient,
            Self::ToClient => Self::ToAgent,
        }
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A request or a notification.
    Call,
    /// An answer to an open request.
    Answer(Open),
    /// Neither: garbage, a batch, an answer that nobody asked for.
    Other,
}

/// A request that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Open {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The fault made it up: the other side knows nothing of it.
    pub(crate) own: bool,
}

/// What has been said so far.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    open: BTreeMap<(Way, String), Open>,
    /// What the client offered in its last `initialize`.
    pub(crate) client: Value,
    /// What the agent said it can do.
    pub(crate) agent: Value,
    /// The version agreed upon; 0 before that.
    pub(crate) version: u64,
    /// Sessions made, loaded or resumed on this connection and not closed since.
    pub(crate) sessions: BTreeSet<String>,
    made_up: usize,
}

impl Wire {
    /// Take note of a line, before any fault changes it.
    pub(crate) fn note(&mut self, way: Way, value: &Value) -> Kind {
        let id = value.get("id");
        if let Some(method) = value.get("method").and_then(Value::as_str) {
            if let Some(id) = id {
                let open = Open {
                    id: id.clone(),
                    method: method.to_owned(),
                    params: value.get("params").cloned().unwrap_or_default(),
                    own: false,
                };
                self.open.insert((way, id.to_string()), open);
            }
            return Kind::Call;
        }
        let answered = id.and_then(|id| self.open.remove(&(way.back(), id.to_string())));
        let Some(open) = answered else {
            return Kind::Other;
        };
        if way == Way::ToClient
            && let Some(result) = value.get("result")
        {
            self.agreed(&open, result);
        }
        Kind::Answer(open)
    }

    fn agreed(&mut self, open: &Open, result: &Value) {
        let asked = open.params["sessionId"].as_str().unwrap_or_default();
        match open.method.as_str() {
            "initialize" => {
                self.version = result["protocolVersion"].as_u64().unwrap_or_default();
                self.agent = result
                    .get("agentCapabilities")
                    .or_else(|| result.get("capabilities"))
                    .cloned()
                    .unwrap_or_default();
                self.client = open.params["clientCapabilities"].clone();
            }
            "session/new" | "session/fork" => {
                self.sessions
                    .extend(result["sessionId"].as_str().map(str::to_owned));
            }
            "session/load" | "session/resume" => {
                self.sessions.insert(asked.to_owned());
            }
            "session/close" | "session/delete" => {
                self.sessions.remove(asked);
            }
            _ => {}
        }
    }

    /// The requests of one side that wait for an answer.
    pub(crate) fn open(&self, way: Way) -> impl Iterator<Item = &Open> {
        self.open
            .iter()
            .filter(move |((asked, _), _)| *asked == way)
            .map(|(_, open)| open)
    }

    /// The prompt that runs in a session.
    pub(crate) fn prompt_in(&self, session: &str) -> Option<&Open> {
        self.open(Way::ToAgent)
            .find(|open| open.method == "session/prompt" && open.params["sessionId"] == session)
    }

    /// The first prompt that runs anywhere.
    pub(crate) fn any_prompt(&self) -> Option<&Open> {
        self.open(Way::ToAgent)
            .find(|open| open.method == "session/prompt")
    }

    /// Its answer was made up, or will never come.
    pub(crate) fn forget(&mut self, way: Way, id: &Value) {
        self.open.remove(&(way, id.to_string()));
    }

    /// An id for a request that the fault makes up.
    pub(crate) fn made_up(&mut self, way: Way, method: &str, params: &Value) -> Value {
        self.made_up += 1;
        let id = Value::from(format!("made-up-{}", self.made_up));
        let open = Open {
            id: id.clone(),
            method: method.to_owned(),
            params: params.clone(),
            own: true,
        };
        self.open.insert((way, id.to_string()), open);
        id
    }
}
