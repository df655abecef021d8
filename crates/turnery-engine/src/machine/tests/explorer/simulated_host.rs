//! Simulated host of a loop, derived from the loop's effects and inputs.

use super::scenario::Scenario;
use crate::{HookRequest, HookVerdict, Input, ToolControl, ToolEnvelope, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Simulated host.
#[derive(Clone, Debug)]
pub(super) struct SimulatedHost {
    pub(super) scenario: Scenario,
    /// Turn of the running model call.
    pub(super) model: Option<u32>,
    pub(super) deltas: u8,
    /// True if the model was silent.
    pub(super) was_silent: bool,
    /// True if a response exceeded a limit.
    pub(super) is_response_oversized: bool,
    /// True if the oversized response was stopped while streaming.
    pub(super) is_response_cut_off: bool,
    pub(super) calls: BTreeMap<String, SimulatedCall>,
    /// Nested calls that running calls have requested and whose results were not returned yet, by parent.
    pub(super) nested: BTreeMap<String, Vec<String>>,
    /// Calls that have requested nested calls, which each does once.
    pub(super) parents: BTreeSet<String>,
    /// Results of ended nested calls.
    pub(super) results: BTreeMap<String, ToolEnvelope>,
    /// Decisions of ended calls about the loop.
    pub(super) controls: BTreeMap<String, ToolControl>,
    pub(super) hook: Option<HookRequest>,
    pub(super) injected: bool,
    pub(super) compacting: bool,
    /// User messages and what became of them.
    pub(super) user_inputs: BTreeMap<&'static str, UserInputFate>,
    pub(super) grace_started: bool,
    pub(super) commit_pending: bool,
    pub(super) sealed: bool,
    pub(super) is_over: bool,
    /// Ending, for the list of endings reached.
    pub(super) ending: String,
    pub(super) cancelled: bool,
    pub(super) time_up: bool,
    pub(super) lane_lost: bool,
    /// True if the rest of the prompt has used up the limits.
    pub(super) is_budget_spent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulatedCall {
    Gated,
    Asked,
    Allowed,
    Running { stopped: bool, words: u8 },
    Over,
}

/// Fate of a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserInputFate {
    Waiting,
    /// Delivered to the model.
    Delivered,
    /// Rejected by an input filter.
    Rejected,
    /// Returned to the host.
    Returned,
}

impl SimulatedHost {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            model: None,
            deltas: 0,
            was_silent: false,
            is_response_oversized: false,
            is_response_cut_off: false,
            calls: BTreeMap::new(),
            nested: BTreeMap::new(),
            parents: BTreeSet::new(),
            results: BTreeMap::new(),
            controls: BTreeMap::new(),
            hook: None,
            injected: false,
            compacting: false,
            user_inputs: BTreeMap::new(),
            grace_started: false,
            commit_pending: false,
            sealed: false,
            is_over: false,
            ending: String::new(),
            cancelled: false,
            time_up: false,
            lane_lost: false,
            is_budget_spent: false,
        }
    }

    pub(super) fn is_halted(&self) -> bool {
        self.cancelled || self.time_up || self.lane_lost
    }

    /// Records an input that the host is about to send.
    pub(super) fn observe_input(&mut self, input: &Input) {
        let overrun = self.scenario.is_oversized(input, self.deltas + 1);
        self.is_response_oversized |= overrun;
        self.is_response_cut_off |=
            overrun && matches!(input, Input::ModelDelta(_) | Input::ModelFailed(_));
        match input {
            Input::ModelDelta(_) => self.deltas += 1,
            Input::ModelSilent { .. } => self.was_silent = true,
            Input::ModelAnswered { .. } | Input::ModelFailed(_) => self.model = None,
            Input::PermissionRequested { call_id, .. } => {
                self.set_call_state(call_id.as_str(), SimulatedCall::Asked)
            }
            Input::Verdict { call_id, verdict } => {
                let state = match verdict {
                    Verdict::Allow => SimulatedCall::Allowed,
                    Verdict::Deny(_) => SimulatedCall::Over,
                    Verdict::Cancelled => {
                        self.cancelled = true;
                        SimulatedCall::Over
                    }
                };
                self.set_call_state(call_id.as_str(), state);
            }
            Input::ToolUpdate { call_id, .. }
            | Input::ToolOutput { call_id, .. }
            | Input::ToolProgress { call_id, .. }
            | Input::ChildUsageReported { call_id, .. }
            | Input::PlanUpdated { call_id, .. } => {
                if let Some(SimulatedCall::Running { words, .. }) =
                    self.calls.get_mut(call_id.as_str())
                {
                    *words += 1;
                }
            }
            Input::NestedCalls { parent, calls, .. } => {
                let ids = calls.iter().map(|call| call.call_id.to_string());
                self.nested.insert(parent.to_string(), ids.collect());
                self.parents.insert(parent.to_string());
            }
            Input::ToolEnded { call_id, envelope } => {
                self.set_call_state(call_id.as_str(), SimulatedCall::Over);
                self.nested.remove(call_id.as_str());
                if call_id.as_str().contains('.') {
                    self.results.insert(call_id.to_string(), envelope.clone());
                }
                if let Some(control) = &envelope.control {
                    let control = control.as_ref().clone();
                    self.controls.insert(call_id.to_string(), control);
                }
            }
            Input::Steer(_) => {
                self.user_inputs.insert("steer", UserInputFate::Waiting);
            }
            Input::FollowUp(_) => {
                self.user_inputs.insert("follow", UserInputFate::Waiting);
            }
            Input::HookAnswered(verdict) => self.apply_hook_verdict(verdict),
            Input::Compacted { .. } => self.compacting = false,
            Input::Cancel => self.cancelled = true,
            Input::GraceOver => self.grace_started = false,
            Input::TimeUp => self.time_up = true,
            Input::Committed | Input::CommitFailed(_) => self.commit_pending = false,
            Input::LaneLost => self.lane_lost = true,
            Input::OtherSpending(_) => self.is_budget_spent = true,
            Input::ModelRetried { .. } | Input::Issue(_) | Input::PriceChanged(_) => {}
        }
    }

    fn apply_hook_verdict(&mut self, verdict: &HookVerdict) {
        match (self.hook.take(), verdict) {
            (Some(HookRequest::Input { text }), HookVerdict::Stop(_)) => {
                self.set_fate(&text, UserInputFate::Rejected)
            }
            (Some(HookRequest::BeforeTool(call)), HookVerdict::Stop(_)) => {
                self.set_call_state(call.call_id.as_str(), SimulatedCall::Over);
            }
            (_, HookVerdict::Inject(_)) => self.injected = true,
            (_, HookVerdict::Continue | HookVerdict::Warn(_) | HookVerdict::Stop(_)) => {}
        }
    }

    /// Records the fate of a user message, if the text is one.
    pub(super) fn set_fate(&mut self, text: &str, fate: UserInputFate) {
        for (word, state) in &mut self.user_inputs {
            if text.starts_with(word) {
                *state = fate;
            }
        }
    }

    pub(super) fn set_call_state(&mut self, id: &str, state: SimulatedCall) {
        self.calls.insert(id.to_owned(), state);
    }

    /// Returns the calls in matching states.
    pub(super) fn calls_where(&self, is: impl Fn(SimulatedCall) -> bool) -> Vec<&str> {
        let busy = self.calls.iter().filter(|(_, state)| is(**state));
        busy.map(|(id, _)| id.as_str()).collect()
    }

    pub(super) fn running_calls(&self) -> Vec<&str> {
        self.calls_where(|state| matches!(state, SimulatedCall::Running { .. }))
    }

    /// Returns true if the call waits for the results of nested calls.
    pub(super) fn awaits_results(&self, id: &str) -> bool {
        self.nested.contains_key(id)
    }
}
