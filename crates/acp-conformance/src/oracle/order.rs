//! Order: updates come before the answer they belong to, and for sessions that there are (PROMPT-7, CANCEL-5,
//! SESS-7, UPD-1, LOAD-2, RES-1, CLOSE-3, MSG-3, MSG-4). The first version only.

use super::{
    Found, Sort,
    answers::Asked,
    messages::{Update, is_of_a_turn, session, update},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Order {
    sessions: BTreeMap<String, Session>,
    /// Requests that make a session and wait for their answer.
    making: usize,
    /// Sessions that were listed: they exist.
    listed: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Session {
    /// Prompts without an answer, and what they say.
    prompts: Vec<(Value, Vec<String>)>,
    /// Loads without an answer.
    loading: usize,
    /// Resumes without an answer.
    resuming: usize,
    /// Why nothing of a turn is due now.
    rest: Rest,
}

/// What came last to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    New,
    Loaded,
    Answered,
    Cancelled,
    Closed,
}

impl Order {
    pub(super) fn sent(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        let params = &message["params"];
        let name = session(params).to_owned();
        match method {
            "session/new" | "session/fork" => self.making += 1,
            "session/load" => self.sessions.entry(name).or_default().loading += 1,
            "session/resume" => self.sessions.entry(name).or_default().resuming += 1,
            "session/prompt" => {
                let blocks = params["prompt"].as_array();
                let texts = blocks.into_iter().flatten();
                let texts = texts.filter_map(|block| block["text"].as_str().map(str::to_owned));
                let prompt = (id.clone(), texts.collect());
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.prompts.push(prompt);
                }
            }
            _ => {}
        }
    }

    pub(super) fn heard(
        &mut self,
        sort: Sort,
        message: &Value,
        asked: Option<&Asked>,
        found: &mut Found,
    ) {
        match (sort, asked) {
            (Sort::Response, Some(asked)) => self.answered(message, asked),
            (Sort::Notification, _) => {
                if let Some(update) = update(message) {
                    self.updated(&update, found);
                }
            }
            (Sort::Response, None) | (Sort::Request, _) => {}
        }
    }

    fn answered(&mut self, message: &Value, asked: &Asked) {
        let result = message.get("result");
        match asked.method.as_str() {
            "session/new" | "session/fork" => {
                self.making = self.making.saturating_sub(1);
                if let Some(id) = result.and_then(|result| result["sessionId"].as_str()) {
                    self.sessions.entry(id.to_owned()).or_default();
                }
            }
            "session/list" => {
                let sessions = result.and_then(|result| result["sessions"].as_array());
                let ids = sessions.into_iter().flatten();
                let ids = ids.filter_map(|listed| listed["sessionId"].as_str());
                self.listed.extend(ids.map(str::to_owned));
            }
            _ => {}
        }
        let Some(session) = self.sessions.get_mut(session(&asked.params)) else {
            return;
        };
        match asked.method.as_str() {
            "session/load" => {
                session.loading = session.loading.saturating_sub(1);
                session.rest = Rest::Loaded;
            }
            "session/resume" => {
                session.resuming = session.resuming.saturating_sub(1);
                session.rest = Rest::New;
            }
            "session/close" if result.is_some() => session.rest = Rest::Closed,
            "session/prompt" => {
                session.prompts.retain(|(id, _)| *id != asked.id);
                let is_cancelled = result.is_some_and(|result| result["stopReason"] == "cancelled");
                if session.rest != Rest::Closed {
                    session.rest = if is_cancelled {
                        Rest::Cancelled
                    } else {
                        Rest::Answered
                    };
                }
            }
            _ => {}
        }
    }

    fn updated(&mut self, update: &Update<'_>, found: &mut Found) {
        if update.kind == "subagent_update"
            && let Some(child) = update.body["sessionId"].as_str()
        {
            self.listed.insert(child.to_owned());
        }
        let Some(session) = self.sessions.get_mut(update.session) else {
            if !self.listed.contains(update.session) {
                let name = update.session;
                if self.making > 0 {
                    found.broken(
                        "SESS-7",
                        format!("the session {name} has not been answered"),
                    );
                } else {
                    found.broken("UPD-1", format!("there is no session {name}"));
                }
            }
            return;
        };
        found.seen("UPD-1");
        found.seen("SESS-7");
        if session.rest == Rest::Closed && session.prompts.is_empty() && !session.is_opening() {
            return found.broken("CLOSE-3", "the session was closed");
        }
        if !is_of_a_turn(update.kind) {
            return;
        }
        if session.resuming > 0 && session.prompts.is_empty() && session.loading == 0 {
            return found.broken("RES-1", "a resume replays nothing");
        }
        if !session.prompts.is_empty() {
            found.seen("PROMPT-7");
            if update.kind == "user_message_chunk" && session.loading == 0 {
                let text = update.body["content"]["text"].as_str().unwrap_or_default();
                let mut said = session.prompts.iter().flat_map(|(_, texts)| texts);
                let is_echo = !text.is_empty() && said.any(|said| said == text);
                found.holds("MSG-3", !is_echo, || {
                    "the client knows its own prompt".to_owned()
                });
            } else {
                found.seen("MSG-3");
            }
            return;
        }
        if session.loading > 0 {
            return;
        }
        match session.rest {
            Rest::Cancelled => found.broken("CANCEL-5", "the turn was answered with cancelled"),
            Rest::Answered => found.broken("PROMPT-7", "the turn was answered already"),
            Rest::Loaded => found.broken("LOAD-2", "the load was answered already"),
            Rest::New if update.kind == "agent_message_chunk" => {
                found.broken("MSG-4", "the agent speaks although nobody asked");
            }
            Rest::New | Rest::Closed => {}
        }
    }
}

impl Session {
    fn is_opening(&self) -> bool {
        self.loading > 0 || self.resuming > 0
    }
}
