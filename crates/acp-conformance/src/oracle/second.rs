//! Second: what an agent keeps of version 2 from message to message: its states, ids, calls, terminals and lists
//! (V2-1, V2-6, V2-8 to V2-14, V2-16, V2-19 to V2-21). Of one message alone `shapes` says what it breaks.
//!
//! The draft says little about when something is due. Only what its sentences forbid is blamed: what background
//! work may tell at any time, what may come before or after an answer, and what is merely advised, passes.

mod background;
mod life;
mod lists;
mod things;

use super::{
    Found, Sort,
    answers::Asked,
    messages::{Update, session, update},
};
use crate::official::official;
use background::Background;
use life::Life;
use serde_json::Value;
use std::collections::BTreeMap;
use things::Things;

#[derive(Debug, Default)]
pub(super) struct Second {
    sessions: BTreeMap<String, Session>,
    /// Cancels of single calls and terminals, by the id of the request: it was due when it was sent.
    cancels: Vec<(Value, bool)>,
}

#[derive(Debug, Default)]
struct Session {
    life: Life,
    things: Things,
    background: Background,
}

impl Second {
    pub(super) fn sent(&mut self, message: &Value) {
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else {
            for session in self.sessions.values_mut() {
                session.life.settled(id);
            }
            return;
        };
        if message.get("id").is_none() {
            return;
        }
        let params = &message["params"];
        let name = session(params);
        match method {
            "session/prompt" => self.session(name).life.prompted(id),
            "session/resume" => {
                let wants_replay = !params["replayFrom"].is_null();
                self.session(name).life.resumes(id, wants_replay);
            }
            "tool_call/cancel" | "terminal/cancel" => {
                let is_due = self.is_cancellable(params);
                self.cancels.push((id.clone(), is_due));
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
        if let (Sort::Response, Some(asked)) = (sort, asked) {
            return self.answered(message, asked, found);
        }
        let params = &message["params"];
        if let Some(session) = self.sessions.get_mut(session(params)) {
            session.life.addressed(found);
        }
        if let Some(update) = update(message) {
            return self.updated(&update, found);
        }
        if sort == Sort::Request && params["sessionId"].is_string() {
            let session = self.session(session(params));
            session.life.asks(&message["id"]);
            if message["method"] == "session/request_permission" {
                lists::check_permission(params, found);
                session.things.asked(&params["subject"], found);
            }
        }
    }

    fn session(&mut self, name: &str) -> &mut Session {
        self.sessions.entry(name.to_owned()).or_default()
    }

    fn is_cancellable(&self, params: &Value) -> bool {
        let session = self.sessions.get(session(params));
        session.is_some_and(|session| session.things.is_cancellable(params))
    }

    fn answered(&mut self, message: &Value, asked: &Asked, found: &mut Found) {
        let result = message.get("result");
        let name = session(&asked.params);
        match asked.method.as_str() {
            "initialize" => {
                let asked = super::version(&asked.params["protocolVersion"]);
                found.holds("V2-1", asked.is_none_or(|asked| asked >= 2), || {
                    "it is above the version that was asked for".to_owned()
                });
            }
            "session/new" | "session/fork" => {
                if let Some(id) = result.and_then(|result| result["sessionId"].as_str()) {
                    self.session(id);
                }
            }
            "session/prompt" => self
                .session(name)
                .life
                .prompt_answered(&asked.id, result, found),
            "session/resume" => {
                let is_granted = result.is_some();
                self.session(name)
                    .life
                    .resumed(&asked.id, is_granted, found);
            }
            "session/close" if result.is_some() => {
                if let Some(session) = self.sessions.get_mut(name) {
                    session.life.closed(found);
                    session.background = Background::default();
                }
            }
            "tool_call/cancel" | "terminal/cancel" => {
                let sent = self.cancels.iter().position(|(id, _)| *id == asked.id);
                let was_due = sent.is_some_and(|index| self.cancels.swap_remove(index).1);
                if result.is_some() {
                    let is_due = was_due || self.is_cancellable(&asked.params);
                    found.holds("V2-19", is_due, || {
                        "it is unknown, over, or does not say that it can be cancelled".to_owned()
                    });
                }
            }
            _ => {}
        }
        if let Some(result) = result {
            lists::check(result, found);
        }
    }

    fn updated(&mut self, update: &Update<'_>, found: &mut Found) {
        let is_known = update.kind.starts_with('_')
            || official(2)
                .variants("SessionUpdate", "sessionUpdate")
                .contains(&update.kind);
        found.holds("V2-20", is_known, || {
            format!("no update is called {:?}", update.kind)
        });
        let body = update.body;
        let session = self.session(update.session);
        match update.kind {
            "state_update" => {
                session.life.state(body, found);
                session
                    .background
                    .told(&body["background"], &session.things, found);
            }
            "user_message" | "user_message_chunk" => session.life.echoed(body, found),
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                session.life.said(found);
            }
            _ => {
                let is_replay = session.life.is_replayed();
                session.things.updated(update, is_replay, found);
            }
        }
        lists::check(body, found);
    }
}
