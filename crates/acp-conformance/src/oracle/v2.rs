//! Checks rules of version 2 that span messages: states, ids, calls, terminals and lists (V2-1, V2-6, V2-8 to
//! V2-14, V2-16, V2-19 to V2-21). `schema_check` covers single messages.
//!
//! The draft says little about timing. Only what its text forbids is reported: background work may report at
//! any time, and updates before or after a response, or against a mere recommendation, pass.

mod background;
mod items;
mod lifecycle;
mod lists;

use super::{
    messages::{AgentMessage, SessionUpdate, parse_update, parse_version, session_id},
    recorder::RuleRecorder,
    responses::ClientRequest,
};
use crate::official_schema::{MessageKind, official_schema};
use background::BackgroundWork;
use items::SessionItems;
use lifecycle::SessionLifecycle;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct V2Rules {
    sessions: BTreeMap<String, V2Session>,
    /// Cancel requests for single calls and terminals: request id, and true if the item was cancellable at that
    /// time.
    pending_cancels: Vec<(Value, bool)>,
}

#[derive(Debug, Default)]
struct V2Session {
    lifecycle: SessionLifecycle,
    items: SessionItems,
    background: BackgroundWork,
}

impl V2Rules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else {
            for session in self.sessions.values_mut() {
                session.lifecycle.on_client_response(id);
            }
            return;
        };
        if message.get("id").is_none() {
            return;
        }
        let params = &message["params"];
        let name = session_id(params);
        match method {
            "session/prompt" => self.session_mut(name).lifecycle.on_prompt(id),
            "session/resume" => {
                let wants_replay = !params["replayFrom"].is_null();
                self.session_mut(name).lifecycle.on_resume(id, wants_replay);
            }
            "tool_call/cancel" | "terminal/cancel" => {
                let is_due = self.is_cancellable(params);
                self.pending_cancels.push((id.clone(), is_due));
            }
            _ => {}
        }
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        let json = message.json;
        if let (MessageKind::Response, Some(request)) = (message.kind, message.request) {
            return self.on_response(json, request, recorder);
        }
        let params = &json["params"];
        if let Some(session) = self.sessions.get_mut(session_id(params)) {
            session.lifecycle.check_not_closed(recorder);
        }
        if let Some(update) = parse_update(json) {
            return self.on_update(&update, recorder);
        }
        if message.kind == MessageKind::Request && params["sessionId"].is_string() {
            let session = self.session_mut(session_id(params));
            session.lifecycle.on_agent_request(&json["id"]);
            if json["method"] == "session/request_permission" {
                lists::check_permission(params, recorder);
                session
                    .items
                    .on_permission_request(&params["subject"], recorder);
            }
        }
    }

    fn session_mut(&mut self, name: &str) -> &mut V2Session {
        self.sessions.entry(name.to_owned()).or_default()
    }

    fn is_cancellable(&self, params: &Value) -> bool {
        let session = self.sessions.get(session_id(params));
        session.is_some_and(|session| session.items.is_cancellable(params))
    }

    fn on_response(
        &mut self,
        message: &Value,
        request: &ClientRequest,
        recorder: &mut RuleRecorder,
    ) {
        let result = message.get("result");
        let name = session_id(&request.params);
        match request.method.as_str() {
            "initialize" if result.is_some() => {
                let requested = parse_version(&request.params["protocolVersion"]);
                recorder.record_check("V2-1", requested.is_none_or(|version| version >= 2), || {
                    "it is above the version that was asked for".to_owned()
                });
            }
            "session/new" | "session/fork" => {
                if let Some(id) = result.and_then(|result| result["sessionId"].as_str()) {
                    self.session_mut(id);
                }
            }
            "session/prompt" => {
                self.session_mut(name)
                    .lifecycle
                    .on_prompt_response(&request.id, result, recorder)
            }
            "session/resume" => {
                let is_granted = result.is_some();
                self.session_mut(name).lifecycle.on_resume_response(
                    &request.id,
                    is_granted,
                    recorder,
                );
            }
            "session/close" if result.is_some() => {
                if let Some(session) = self.sessions.get_mut(name) {
                    session.lifecycle.on_close_response(recorder);
                    session.background = BackgroundWork::default();
                }
            }
            "tool_call/cancel" | "terminal/cancel" => {
                let sent = self
                    .pending_cancels
                    .iter()
                    .position(|(id, _)| *id == request.id);
                let was_due = sent.is_some_and(|index| self.pending_cancels.swap_remove(index).1);
                if result.is_some() {
                    let is_due = was_due || self.is_cancellable(&request.params);
                    recorder.record_check("V2-19", is_due, || {
                        "it is unknown, over, or does not say that it can be cancelled".to_owned()
                    });
                }
            }
            _ => {}
        }
        if let Some(result) = result {
            lists::check(result, recorder);
        }
    }

    fn on_update(&mut self, update: &SessionUpdate<'_>, recorder: &mut RuleRecorder) {
        let is_known = update.kind.starts_with('_')
            || official_schema(2)
                .variant_tags("SessionUpdate", "sessionUpdate")
                .contains(&update.kind);
        recorder.record_check("V2-20", is_known, || {
            format!("no update is called {:?}", update.kind)
        });
        let body = update.body;
        let session = self.session_mut(update.session_id);
        match update.kind {
            "state_update" => {
                session.lifecycle.on_state_update(body, recorder);
                session
                    .background
                    .on_state_update(&body["background"], &session.items, recorder);
            }
            "user_message" | "user_message_chunk" => {
                session.lifecycle.on_user_message(body, recorder)
            }
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                session.lifecycle.on_agent_message(recorder);
            }
            _ => {
                let is_replay = session.lifecycle.is_replaying();
                session.items.on_update(update, is_replay, recorder);
            }
        }
        lists::check(body, recorder);
    }
}
