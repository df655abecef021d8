//! Checks that updates precede the response they belong to and name existing sessions, in version 1 (PROMPT-7,
//! CANCEL-5, SESS-7, UPD-1, LOAD-2, RES-1, CLOSE-3, MSG-3, MSG-4).

use super::{
    messages::{AgentMessage, SessionUpdate, is_turn_update, parse_update, session_id},
    recorder::RuleRecorder,
    responses::ClientRequest,
};
use crate::official_schema::MessageKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct UpdateOrderRules {
    sessions: BTreeMap<String, SessionUpdateState>,
    /// Number of pending requests that create a session.
    pending_session_requests: usize,
    /// Ids of sessions that a `session/list` result or a `subagent_update` named, which therefore exist.
    listed_sessions: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct SessionUpdateState {
    /// Pending prompts: request id and texts.
    pending_prompts: Vec<(Value, Vec<String>)>,
    /// Number of pending loads.
    pending_loads: usize,
    /// Number of pending resumes.
    pending_resumes: usize,
    /// Reason why no turn updates are expected now.
    idle_reason: IdleReason,
}

/// Latest event after which no turn updates are expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IdleReason {
    #[default]
    New,
    Loaded,
    Answered,
    Cancelled,
    Closed,
}

impl UpdateOrderRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        let params = &message["params"];
        let name = session_id(params).to_owned();
        match method {
            "session/new" | "session/fork" => self.pending_session_requests += 1,
            "session/load" => self.sessions.entry(name).or_default().pending_loads += 1,
            "session/resume" => self.sessions.entry(name).or_default().pending_resumes += 1,
            "session/prompt" => {
                let blocks = params["prompt"].as_array();
                let texts = blocks.into_iter().flatten();
                let texts = texts.filter_map(|block| block["text"].as_str().map(str::to_owned));
                let prompt = (id.clone(), texts.collect());
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.pending_prompts.push(prompt);
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        match (message.kind, message.request) {
            (MessageKind::Response, Some(request)) => self.on_response(message.json, request),
            (MessageKind::Notification, _) => {
                if let Some(update) = parse_update(message.json) {
                    self.on_update(&update, recorder);
                }
            }
            (MessageKind::Response, None) | (MessageKind::Request, _) => {}
        }
    }

    fn on_response(&mut self, message: &Value, request: &ClientRequest) {
        let result = message.get("result");
        match request.method.as_str() {
            "session/new" | "session/fork" => {
                self.pending_session_requests = self.pending_session_requests.saturating_sub(1);
                if let Some(id) = result.and_then(|result| result["sessionId"].as_str()) {
                    self.sessions.entry(id.to_owned()).or_default();
                }
            }
            "session/list" => {
                let sessions = result.and_then(|result| result["sessions"].as_array());
                let ids = sessions.into_iter().flatten();
                let ids = ids.filter_map(|listed| listed["sessionId"].as_str());
                self.listed_sessions.extend(ids.map(str::to_owned));
            }
            _ => {}
        }
        let Some(session) = self.sessions.get_mut(session_id(&request.params)) else {
            return;
        };
        match request.method.as_str() {
            "session/load" => {
                session.pending_loads = session.pending_loads.saturating_sub(1);
                session.idle_reason = IdleReason::Loaded;
            }
            "session/resume" => {
                session.pending_resumes = session.pending_resumes.saturating_sub(1);
                session.idle_reason = IdleReason::New;
            }
            "session/close" if result.is_some() => session.idle_reason = IdleReason::Closed,
            "session/prompt" => {
                session.pending_prompts.retain(|(id, _)| *id != request.id);
                let is_cancelled = result.is_some_and(|result| result["stopReason"] == "cancelled");
                if session.idle_reason != IdleReason::Closed {
                    session.idle_reason = if is_cancelled {
                        IdleReason::Cancelled
                    } else {
                        IdleReason::Answered
                    };
                }
            }
            _ => {}
        }
    }

    fn on_update(&mut self, update: &SessionUpdate<'_>, recorder: &mut RuleRecorder) {
        if update.kind == "subagent_update"
            && let Some(child) = update.body["sessionId"].as_str()
        {
            self.listed_sessions.insert(child.to_owned());
        }
        let Some(session) = self.sessions.get_mut(update.session_id) else {
            if !self.listed_sessions.contains(update.session_id) {
                let name = update.session_id;
                if self.pending_session_requests > 0 {
                    recorder.record_violation(
                        "SESS-7",
                        format!("the session {name} has not been answered"),
                    );
                } else {
                    recorder.record_violation("UPD-1", format!("there is no session {name}"));
                }
            }
            return;
        };
        recorder.record_observed("UPD-1");
        recorder.record_observed("SESS-7");
        if session.idle_reason == IdleReason::Closed
            && session.pending_prompts.is_empty()
            && !session.is_opening()
        {
            return recorder.record_violation("CLOSE-3", "the session was closed");
        }
        if !is_turn_update(update.kind) {
            return;
        }
        if session.pending_resumes > 0
            && session.pending_prompts.is_empty()
            && session.pending_loads == 0
        {
            return recorder.record_violation("RES-1", "a resume replays nothing");
        }
        if !session.pending_prompts.is_empty() {
            recorder.record_observed("PROMPT-7");
            if update.kind == "user_message_chunk" && session.pending_loads == 0 {
                let text = update.body["content"]["text"].as_str().unwrap_or_default();
                let mut texts = session.pending_prompts.iter().flat_map(|(_, texts)| texts);
                let is_echo = !text.is_empty() && texts.any(|sent| sent == text);
                recorder.record_check("MSG-3", !is_echo, || {
                    "the client knows its own prompt".to_owned()
                });
            } else {
                recorder.record_observed("MSG-3");
            }
            return;
        }
        if session.pending_loads > 0 {
            return;
        }
        match session.idle_reason {
            IdleReason::Cancelled => {
                recorder.record_violation("CANCEL-5", "the turn was answered with cancelled")
            }
            IdleReason::Answered => {
                recorder.record_violation("PROMPT-7", "the turn was answered already")
            }
            IdleReason::Loaded => {
                recorder.record_violation("LOAD-2", "the load was answered already")
            }
            IdleReason::New if update.kind == "agent_message_chunk" => {
                recorder.record_violation("MSG-4", "the agent speaks although nobody asked");
            }
            IdleReason::New | IdleReason::Closed => {}
        }
    }
}

impl SessionUpdateState {
    fn is_opening(&self) -> bool {
        self.pending_loads > 0 || self.pending_resumes > 0
    }
}
