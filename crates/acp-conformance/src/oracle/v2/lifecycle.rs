//! Checks the life cycle of a version 2 session: prompts and their echoes, states, resume and close (V2-6,
//! V2-8, V2-10, V2-11, V2-16).

use super::super::recorder::RuleRecorder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct SessionLifecycle {
    state: SessionState,
    /// True if a prompt was sent and no state other than idle followed.
    is_prompted: bool,
    is_closed: bool,
    /// Prompts without a response.
    pending_prompts: Vec<PendingPrompt>,
    /// Messages that a response named and that were not echoed.
    missing_echoes: Vec<MissingEcho>,
    /// Ids of messages that responses named.
    named_messages: BTreeSet<String>,
    /// Position of each received user message, by id.
    echoes: BTreeMap<String, usize>,
    /// Resumes without a response.
    pending_resumes: Vec<PendingResume>,
    /// Ids of agent requests that the client has not answered.
    agent_requests: Vec<Value>,
}

/// Latest reported state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionState {
    #[default]
    Idle,
    Running,
    RequiresAction,
    /// Another state, or a state whose violation was already reported.
    Unknown,
}

#[derive(Debug)]
struct PendingPrompt {
    id: Value,
    /// True if no other work was running when the prompt was sent.
    is_only_work: bool,
    /// Number of user messages received before the prompt.
    echoes_before: usize,
}

#[derive(Debug)]
struct MissingEcho {
    message_id: String,
    /// Number of further transitions to idle until the echo is due.
    idles_until_due: usize,
}

#[derive(Debug)]
struct PendingResume {
    id: Value,
    wants_replay: bool,
    /// True if work was already running, so that messages may belong to that work.
    was_busy: bool,
    /// True if the state was reported and no replayed message followed.
    has_reported_state: bool,
}

impl SessionLifecycle {
    pub(super) fn on_prompt(&mut self, id: &Value) {
        self.pending_prompts.push(PendingPrompt {
            id: id.clone(),
            is_only_work: !self.is_busy(),
            echoes_before: self.echoes.len(),
        });
        self.is_prompted = true;
    }

    pub(super) fn on_resume(&mut self, id: &Value, wants_replay: bool) {
        self.pending_resumes.push(PendingResume {
            id: id.clone(),
            wants_replay,
            was_busy: self.is_busy(),
            has_reported_state: false,
        });
    }

    fn is_busy(&self) -> bool {
        self.state != SessionState::Idle
            || !self.pending_prompts.is_empty()
            || !self.missing_echoes.is_empty()
    }

    /// Returns true while a resume replays history.
    pub(super) fn is_replaying(&self) -> bool {
        self.pending_resumes
            .iter()
            .any(|resume| resume.wants_replay)
    }

    pub(super) fn on_agent_request(&mut self, id: &Value) {
        self.agent_requests.push(id.clone());
    }

    /// Handles a client response, which may answer a request of this session.
    pub(super) fn on_client_response(&mut self, id: &Value) {
        self.agent_requests.retain(|question| question != id);
    }

    /// Checks that a message does not name a closed session.
    pub(super) fn check_not_closed(&mut self, recorder: &mut RuleRecorder) {
        if self.is_closed && self.pending_resumes.is_empty() {
            recorder.record_violation("V2-16", "the session was closed");
        }
    }

    pub(super) fn on_state_update(&mut self, body: &Value, recorder: &mut RuleRecorder) {
        let state = match body["state"].as_str() {
            Some("idle") => SessionState::Idle,
            Some("running") => SessionState::Running,
            Some("requires_action") => SessionState::RequiresAction,
            _ => SessionState::Unknown,
        };
        recorder.record_observed("V2-8");
        for resume in &mut self.pending_resumes {
            resume.has_reported_state = true;
        }
        let has_ended = self.state != SessionState::Idle && state == SessionState::Idle;
        self.is_prompted &= state == SessionState::Idle;
        self.state = state;
        if has_ended {
            for silent in &mut self.missing_echoes {
                silent.idles_until_due = silent.idles_until_due.saturating_sub(1);
            }
            self.report_missing_echoes(recorder, |silent| silent.idles_until_due == 0);
        }
    }

    /// Reports due messages that were not echoed.
    fn report_missing_echoes(
        &mut self,
        recorder: &mut RuleRecorder,
        is_due: impl Fn(&MissingEcho) -> bool,
    ) {
        self.missing_echoes.retain(|silent| {
            let is_due = is_due(silent);
            if is_due {
                let why = format!("the message {:?} was never echoed", silent.message_id);
                recorder.record_violation("V2-6", why);
            }
            !is_due
        });
    }

    /// Handles a user message.
    pub(super) fn on_user_message(&mut self, body: &Value, recorder: &mut RuleRecorder) {
        self.on_replayable_message(recorder);
        let id = body["messageId"].as_str().unwrap_or_default();
        let silent = self.missing_echoes.len();
        self.missing_echoes.retain(|silent| silent.message_id != id);
        if self.missing_echoes.len() < silent {
            recorder.record_observed("V2-6");
        }
        let count = self.echoes.len();
        self.echoes.entry(id.to_owned()).or_insert(count);
    }

    /// Handles a message or thought of the agent.
    pub(super) fn on_agent_message(&mut self, recorder: &mut RuleRecorder) {
        self.on_replayable_message(recorder);
        if !self.pending_resumes.is_empty() {
            return;
        }
        let why = match self.state {
            SessionState::Idle if self.is_prompted => {
                "it works on a prompt, but its last state is idle"
            }
            SessionState::RequiresAction if self.agent_requests.is_empty() => {
                "it works without an open request, but its last state is requires_action"
            }
            SessionState::Idle
            | SessionState::Running
            | SessionState::RequiresAction
            | SessionState::Unknown => return,
        };
        recorder.record_violation("V2-8", why);
        // Report only once.
        self.state = SessionState::Unknown;
        self.is_prompted = false;
    }

    fn on_replayable_message(&mut self, recorder: &mut RuleRecorder) {
        let has_work = !self.pending_prompts.is_empty() || !self.missing_echoes.is_empty();
        let is_idle = self.state == SessionState::Idle;
        for resume in self.pending_resumes.iter_mut().filter(|_| !has_work) {
            if resume.wants_replay {
                // The current state follows the replay.
                resume.has_reported_state &= !is_idle;
            } else if !resume.has_reported_state && !resume.was_busy {
                recorder.record_violation("V2-10", "nothing was to be replayed");
                resume.was_busy = true;
            }
        }
    }

    pub(super) fn on_prompt_response(
        &mut self,
        id: &Value,
        result: Option<&Value>,
        recorder: &mut RuleRecorder,
    ) {
        let index = self
            .pending_prompts
            .iter()
            .position(|prompt| prompt.id == *id);
        let prompt = index.map(|index| self.pending_prompts.remove(index));
        let message = result.and_then(|result| result["messageId"].as_str());
        let (Some(prompt), Some(message)) = (prompt, message) else {
            self.is_prompted &= !self.pending_prompts.is_empty();
            return;
        };
        let echo_count = self.echoes.get(message);
        let is_new = self.named_messages.insert(message.to_owned())
            && echo_count.is_none_or(|echo_count| *echo_count >= prompt.echoes_before);
        recorder.record_check("V2-11", is_new, || {
            format!("{message:?} is the id of an earlier message of the user")
        });
        if echo_count.is_some() {
            recorder.record_observed("V2-6");
        } else if !self.is_closed {
            let ends = if prompt.is_only_work { 1 } else { 2 };
            let message = message.to_owned();
            self.missing_echoes.push(MissingEcho {
                message_id: message,
                idles_until_due: ends,
            });
        }
    }

    pub(super) fn on_resume_response(
        &mut self,
        id: &Value,
        is_granted: bool,
        recorder: &mut RuleRecorder,
    ) {
        let Some(index) = self
            .pending_resumes
            .iter()
            .position(|resume| resume.id == *id)
        else {
            return;
        };
        let resume = self.pending_resumes.remove(index);
        if is_granted {
            self.is_closed = false;
            recorder.record_check("V2-10", resume.has_reported_state, || {
                "its state was not reported after the replay and before the response".to_owned()
            });
        }
    }

    pub(super) fn on_close_response(&mut self, recorder: &mut RuleRecorder) {
        let is_over = !matches!(
            self.state,
            SessionState::Running | SessionState::RequiresAction
        );
        recorder.record_check("V2-16", is_over, || {
            "the end of the work was not reported".to_owned()
        });
        self.report_missing_echoes(recorder, |_| true);
        self.is_closed = true;
        self.state = SessionState::Idle;
        self.is_prompted = false;
        self.agent_requests.clear();
    }
}
