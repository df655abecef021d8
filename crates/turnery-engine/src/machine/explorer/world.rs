//! World: what is going on outside a loop, told from the effects that it gave and the inputs that it got.

use super::scene::Scene;
use crate::{Hook, HookVerdict, Input, ToolControl, Verdict};
use std::collections::BTreeMap;

/// What the world is busy with for the loop.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) scene: Scene,
    /// The turn that the model answers for.
    pub(super) model: Option<u32>,
    pub(super) deltas: u8,
    /// The model has been silent.
    pub(super) silent: bool,
    /// An answer was beyond its bounds.
    pub(super) overrun: bool,
    /// What was shown of it is all there is.
    pub(super) is_cut: bool,
    pub(super) calls: BTreeMap<String, CallState>,
    /// What ended calls decided about the loop.
    pub(super) controls: BTreeMap<String, ToolControl>,
    pub(super) hook: Option<Hook>,
    pub(super) injected: bool,
    pub(super) compacting: bool,
    /// What people said, and what became of it.
    pub(super) words: BTreeMap<&'static str, Fate>,
    pub(super) grace: bool,
    pub(super) commit: bool,
    pub(super) sealed: bool,
    pub(super) over: bool,
    /// How it was over, for the list of what was reached.
    pub(super) ending: String,
    pub(super) cancelled: bool,
    pub(super) time_up: bool,
    pub(super) lane_lost: bool,
    /// The rest of the prompt has used up its limits.
    pub(super) spent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    Gated,
    Asked,
    Allowed,
    Running { stopped: bool, words: u8 },
    Over,
}

/// What became of somebody's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Waiting,
    /// The model was told.
    Heard,
    /// A filter said no.
    Refused,
    /// They were given back.
    Returned,
}

impl World {
    pub(super) fn new(scene: Scene) -> Self {
        Self {
            scene,
            model: None,
            deltas: 0,
            silent: false,
            overrun: false,
            is_cut: false,
            calls: BTreeMap::new(),
            controls: BTreeMap::new(),
            hook: None,
            injected: false,
            compacting: false,
            words: BTreeMap::new(),
            grace: false,
            commit: false,
            sealed: false,
            over: false,
            ending: String::new(),
            cancelled: false,
            time_up: false,
            lane_lost: false,
            spent: false,
        }
    }

    pub(super) fn halted(&self) -> bool {
        self.cancelled || self.time_up || self.lane_lost
    }

    /// Take note of what the world is about to say.
    pub(super) fn say(&mut self, input: &Input) {
        let overrun = self.scene.is_overrun(input, self.deltas + 1);
        self.overrun |= overrun;
        self.is_cut |= overrun && matches!(input, Input::Delta(_) | Input::ModelFailed(_));
        match input {
            Input::Delta(_) => self.deltas += 1,
            Input::Silent { .. } => self.silent = true,
            Input::Answered { .. } | Input::ModelFailed(_) => self.model = None,
            Input::Asking { call_id, .. } => self.set(call_id.as_str(), CallState::Asked),
            Input::Verdict { call_id, verdict } => {
                let state = match verdict {
                    Verdict::Allow => CallState::Allowed,
                    Verdict::Deny(_) => CallState::Over,
                    Verdict::Cancelled => {
                        self.cancelled = true;
                        CallState::Over
                    }
                };
                self.set(call_id.as_str(), state);
            }
            Input::Shows { call_id, .. }
            | Input::Printed { call_id, .. }
            | Input::Progressed { call_id, .. }
            | Input::ChildSpent { call_id, .. }
            | Input::Planned { call_id, .. } => {
                if let Some(CallState::Running { words, .. }) = self.calls.get_mut(call_id.as_str())
                {
                    *words += 1;
                }
            }
            Input::Ended { call_id, envelope } => {
                self.set(call_id.as_str(), CallState::Over);
                if let Some(control) = &envelope.control {
                    let control = control.as_ref().clone();
                    self.controls.insert(call_id.to_string(), control);
                }
            }
            Input::Steer(_) => {
                self.words.insert("steer", Fate::Waiting);
            }
            Input::FollowUp(_) => {
                self.words.insert("follow", Fate::Waiting);
            }
            Input::Hooked(verdict) => self.hooked(verdict),
            Input::Compacted { .. } => self.compacting = false,
            Input::Cancel => self.cancelled = true,
            Input::GraceOver => self.grace = false,
            Input::TimeUp => self.time_up = true,
            Input::Committed | Input::CommitFailed(_) => self.commit = false,
            Input::LaneLost => self.lane_lost = true,
            Input::OtherSpending(_) => self.spent = true,
            Input::Retried { .. } | Input::Noticed(_) | Input::Price(_) => {}
        }
    }

    fn hooked(&mut self, verdict: &HookVerdict) {
        match (self.hook.take(), verdict) {
            (Some(Hook::Input { text }), HookVerdict::Stop(_)) => self.fate(&text, Fate::Refused),
            (Some(Hook::BeforeTool(call)), HookVerdict::Stop(_)) => {
                self.set(call.call_id.as_str(), CallState::Over);
            }
            (_, HookVerdict::Inject(_)) => self.injected = true,
            (_, HookVerdict::Go | HookVerdict::Warn(_) | HookVerdict::Stop(_)) => {}
        }
    }

    /// Note what became of somebody's words, if these are such.
    pub(super) fn fate(&mut self, text: &str, fate: Fate) {
        for (word, state) in &mut self.words {
            if text.starts_with(word) {
                *state = fate;
            }
        }
    }

    pub(super) fn set(&mut self, id: &str, state: CallState) {
        self.calls.insert(id.to_owned(), state);
    }

    /// The calls in one of these states.
    pub(super) fn busy(&self, is: impl Fn(CallState) -> bool) -> Vec<&str> {
        let busy = self.calls.iter().filter(|(_, state)| is(**state));
        busy.map(|(id, _)| id.as_str()).collect()
    }

    pub(super) fn running(&self) -> Vec<&str> {
        self.busy(|state| matches!(state, CallState::Running { .. }))
    }
}
