//! The life of a session of version 2: prompts and their echo, states, resume and close (V2-6, V2-8, V2-10,
//! V2-11, V2-16).

use super::super::Found;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Life {
    state: State,
    /// A prompt was sent since something else than idle was told.
    is_prompted: bool,
    is_closed: bool,
    /// Prompts without an answer.
    prompts: Vec<Prompt>,
    /// Messages that an answer named and that were not echoed.
    silent: Vec<Silent>,
    /// Messages that answers named.
    named: BTreeSet<String>,
    /// The user's messages that were heard, by id: as the how manieth.
    echoes: BTreeMap<String, usize>,
    /// Resumes without an answer.
    resumes: Vec<Resume>,
    /// Requests of the agent that the client has not answered.
    questions: Vec<Value>,
}

/// What was told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Running,
    RequiresAction,
    /// Of none of these sorts, or it was blamed already.
    Unclear,
}

#[derive(Debug)]
struct Prompt {
    id: Value,
    /// Nothing else was going on when it was sent.
    is_alone: bool,
    /// So many messages of the user had been heard.
    echoes: usize,
}

#[derive(Debug)]
struct Silent {
    message: String,
    /// It is due when work has ended so often.
    ends: usize,
}

#[derive(Debug)]
struct Resume {
    id: Value,
    wants_replay: bool,
    /// Work went on already, so that what comes need not be replayed.
    was_busy: bool,
    /// The state was told, and nothing was replayed after it.
    is_told: bool,
}

impl Life {
    pub(super) fn prompted(&mut self, id: &Value) {
        self.prompts.push(Prompt {
            id: id.clone(),
            is_alone: !self.is_busy(),
            echoes: self.echoes.len(),
        });
        self.is_prompted = true;
    }

    pub(super) fn resumes(&mut self, id: &Value, wants_replay: bool) {
        self.resumes.push(Resume {
            id: id.clone(),
            wants_replay,
            was_busy: self.is_busy(),
            is_told: false,
        });
    }

    fn is_busy(&self) -> bool {
        self.state != State::Idle || !self.prompts.is_empty() || !self.silent.is_empty()
    }

    /// History is told.
    pub(super) fn is_replayed(&self) -> bool {
        self.resumes.iter().any(|resume| resume.wants_replay)
    }

    pub(super) fn asks(&mut self, id: &Value) {
        self.questions.push(id.clone());
    }

    /// The client has answered this request, if it is one of this session.
    pub(super) fn settled(&mut self, id: &Value) {
        self.questions.retain(|question| question != id);
    }

    /// A message names the session.
    pub(super) fn addressed(&mut self, found: &mut Found) {
        if self.is_closed && self.resumes.is_empty() {
            found.broken("V2-16", "the session was closed");
        }
    }

    pub(super) fn state(&mut self, body: &Value, found: &mut Found) {
        let state = match body["state"].as_str() {
            Some("idle") => State::Idle,
            Some("running") => State::Running,
            Some("requires_action") => State::RequiresAction,
            _ => State::Unclear,
        };
        found.seen("V2-8");
        for resume in &mut self.resumes {
            resume.is_told = true;
        }
        let has_ended = self.state != State::Idle && state == State::Idle;
        self.is_prompted &= state == State::Idle;
        self.state = state;
        if has_ended {
            for silent in &mut self.silent {
                silent.ends = silent.ends.saturating_sub(1);
            }
            self.due(found, |silent| silent.ends == 0);
        }
    }

    /// Messages that are due and were not echoed.
    fn due(&mut self, found: &mut Found, is_due: impl Fn(&Silent) -> bool) {
        self.silent.retain(|silent| {
            let is_due = is_due(silent);
            if is_due {
                let why = format!("the message {:?} was never echoed", silent.message);
                found.broken("V2-6", why);
            }
            !is_due
        });
    }

    /// A message of the user was heard.
    pub(super) fn echoed(&mut self, body: &Value, found: &mut Found) {
        self.told_of_a_message(found);
        let id = body["messageId"].as_str().unwrap_or_default();
        let silent = self.silent.len();
        self.silent.retain(|silent| silent.message != id);
        if self.silent.len() < silent {
            found.seen("V2-6");
        }
        let count = self.echoes.len();
        self.echoes.entry(id.to_owned()).or_insert(count);
    }

    /// The agent says or thinks something.
    pub(super) fn said(&mut self, found: &mut Found) {
        self.told_of_a_message(found);
        if !self.resumes.is_empty() {
            return;
        }
        let why = match self.state {
            State::Idle if self.is_prompted => "it works on a prompt, and told idle last",
            State::RequiresAction if self.questions.is_empty() => {
                "no question is open and it goes on, and told requires_action last"
            }
            State::Idle | State::Running | State::RequiresAction | State::Unclear => return,
        };
        found.broken("V2-8", why);
        // It is said once.
        self.state = State::Unclear;
        self.is_prompted = false;
    }

    fn told_of_a_message(&mut self, found: &mut Found) {
        let has_work = !self.prompts.is_empty() || !self.silent.is_empty();
        let is_idle = self.state == State::Idle;
        for resume in self.resumes.iter_mut().filter(|_| !has_work) {
            if resume.wants_replay {
                // The current state is told after the replay.
                resume.is_told &= !is_idle;
            } else if !resume.is_told && !resume.was_busy {
                found.broken("V2-10", "nothing was to be replayed");
                resume.was_busy = true;
            }
        }
    }

    pub(super) fn prompt_answered(
        &mut self,
        id: &Value,
        result: Option<&Value>,
        found: &mut Found,
    ) {
        let index = self.prompts.iter().position(|prompt| prompt.id == *id);
        let prompt = index.map(|index| self.prompts.remove(index));
        let message = result.and_then(|result| result["messageId"].as_str());
        let (Some(prompt), Some(message)) = (prompt, message) else {
            self.is_prompted &= !self.prompts.is_empty();
            return;
        };
        let heard = self.echoes.get(message);
        let is_new = self.named.insert(message.to_owned())
            && heard.is_none_or(|heard| *heard >= prompt.echoes);
        found.holds("V2-11", is_new, || {
            format!("{message:?} is the id of an earlier message of the user")
        });
        if heard.is_some() {
            found.seen("V2-6");
        } else if !self.is_closed {
            let ends = if prompt.is_alone { 1 } else { 2 };
            let message = message.to_owned();
            self.silent.push(Silent { message, ends });
        }
    }

    pub(super) fn resumed(&mut self, id: &Value, is_granted: bool, found: &mut Found) {
        let Some(index) = self.resumes.iter().position(|resume| resume.id == *id) else {
            return;
        };
        let resume = self.resumes.remove(index);
        if is_granted {
            self.is_closed = false;
            found.holds("V2-10", resume.is_told, || {
                "its state was not told before the answer, after what was replayed".to_owned()
            });
        }
    }

    pub(super) fn closed(&mut self, found: &mut Found) {
        let is_over = !matches!(self.state, State::Running | State::RequiresAction);
        found.holds("V2-16", is_over, || {
            "it was not told that the work is over".to_owned()
        });
        self.due(found, |_| true);
        self.is_closed = true;
        self.state = State::Idle;
        self.is_prompted = false;
        self.questions.clear();
    }
}
