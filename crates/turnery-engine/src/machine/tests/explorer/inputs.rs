//! Generates the inputs that are possible, invalid, or cooperative in the current state.

use super::scenario::Scenario;
use super::simulated_host::{SimulatedCall, SimulatedHost};
use crate::{
    CallAnnouncement, CallDetail, CallId, Content, ContextSize, HookRequest, HookVerdict, Input,
    Limits, ModelErrorKind, ModelStop, Response, Spending, TextValue, ToolCall, ToolControl,
    ToolEnvelope, ToolErrorKind, Usage, Verdict,
    tests::harness::{
        child_usage, compaction_result, model_failed, permission_requested, text_delta, tool_ended,
        tool_output, verdict,
    },
};

/// Possible behavior of a tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolBehavior {
    /// Asks the user, who may allow, deny, cancel, or never answer.
    pub(super) is_asked: bool,
    /// Is denied or unknown.
    pub(super) never_runs: bool,
    /// Runs until it is stopped or killed.
    pub(super) runs_forever: bool,
    /// May fail.
    pub(super) can_fail: bool,
    /// Maximum number of updates.
    pub(super) max_updates: u8,
    /// Has a child session that spends tokens.
    pub(super) has_child: bool,
    /// Possible decision about the loop.
    pub(super) control: Option<ToolControl>,
}

/// Fragment that the model repeats.
pub(super) const FRAGMENT: &str = "aaa";

const CALL_IDS: [&str; 7] = ["c0", "c1", "c2", "c0.0", "c0.1", "d1", "d2"];

impl SimulatedHost {
    /// Returns all inputs possible next.
    pub(super) fn possible_inputs(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        if self.is_over {
            return inputs;
        }
        if let Some(turn) = self.model {
            if self.deltas < self.scenario.max_fragments() {
                inputs.push(model_delta());
            }
            if self.scenario == Scenario::OversizedResponses && !self.was_silent {
                inputs.push(model_silent());
            }
            inputs.extend(self.scenario.possible_responses(turn));
            inputs.extend(self.scenario.possible_model_errors());
        }
        for (id, state) in &self.calls {
            push_call_inputs(id, *state, &self.scenario.tool_behavior(id), &mut inputs);
            let nested = self.scenario.nested_calls(id);
            let is_running = matches!(state, SimulatedCall::Running { .. });
            if is_running && !nested.is_empty() && !self.parents.contains(id) {
                inputs.push(nested_calls(id, nested, self.scenario));
            }
        }
        if let Some(hook) = &self.hook {
            inputs.extend(self.hook_verdicts(hook));
        }
        if self.compacting {
            inputs.extend([compaction_succeeded(), compaction_failed()]);
        }
        if self.scenario.has_user_input() {
            for (word, input) in [
                ("steer", Input::Steer as fn(_) -> _),
                ("follow", Input::FollowUp),
            ] {
                if !self.user_inputs.contains_key(word) {
                    inputs.push(input(vec![Content::text(word)]));
                }
            }
        }
        if self.grace_started {
            inputs.push(Input::GraceOver);
        }
        if self.commit_pending {
            inputs.push(Input::Committed);
            inputs.push(Input::CommitFailed(crate::CommitError::HeadConflict));
        }
        if !self.sealed {
            if !self.cancelled && !self.lane_lost {
                inputs.push(Input::Cancel);
            }
            if !self.is_halted() {
                inputs.push(Input::TimeUp);
            }
            if !self.lane_lost {
                inputs.push(Input::LaneLost);
            }
            if self.scenario.has_shared_budget() && !self.is_budget_spent {
                inputs.push(other_spending());
            }
        }
        inputs
    }

    fn hook_verdicts(&self, hook: &HookRequest) -> Vec<Input> {
        let no = || HookVerdict::Stop("no".to_owned());
        let verdicts = match hook {
            HookRequest::Input { .. }
            | HookRequest::BeforeTurn { .. }
            | HookRequest::BeforeTool(_)
            | HookRequest::BeforeCompaction(_) => {
                vec![HookVerdict::Continue, no()]
            }
            HookRequest::AfterTurn { .. }
            | HookRequest::AfterTool { .. }
            | HookRequest::AfterCompaction { .. }
            | HookRequest::OnError { .. } => vec![HookVerdict::Continue],
            HookRequest::Checkpoint => {
                let more = HookVerdict::Inject(vec![Content::text("more")]);
                let mut verdicts = vec![HookVerdict::Continue, no()];
                verdicts.extend((!self.injected).then_some(more));
                verdicts
            }
        };
        verdicts.into_iter().map(Input::HookAnswered).collect()
    }

    /// Returns inputs that are late, early or repeated, none of which may change anything (R5).
    pub(super) fn invalid_inputs(&self) -> Vec<Input> {
        let mut inputs = vec![Input::Steer(Vec::new()), Input::FollowUp(Vec::new())];
        if self.model.is_none() {
            inputs.extend([
                model_delta(),
                model_silent(),
                model_failed(ModelErrorKind::Network),
            ]);
            inputs.push(model_answered(
                &["c0"],
                "",
                ModelStop::ToolUse,
                None,
                Vec::new(),
            ));
        }
        for id in CALL_IDS.into_iter().chain(["unknown"]) {
            let state = self.calls.get(id).copied().unwrap_or(SimulatedCall::Over);
            let call_id = CallId::from(id);
            let (gated, running) = match state {
                SimulatedCall::Gated | SimulatedCall::Asked => (true, false),
                SimulatedCall::Running { .. } => (false, true),
                SimulatedCall::Allowed | SimulatedCall::Over => (false, false),
            };
            if state != SimulatedCall::Gated {
                inputs.push(permission_requested(id));
            }
            if !gated {
                inputs.push(verdict(id, Verdict::Allow));
                inputs.push(verdict(id, Verdict::Cancelled));
            }
            if !running {
                inputs.push(nested_calls(id, &["late"], self.scenario));
                inputs.extend(tool_updates(id));
                inputs.push(child_spending(id));
            }
            if !gated && !running {
                let envelope = ToolEnvelope::text("late");
                inputs.push(Input::ToolEnded { call_id, envelope });
            }
        }
        if self.hook.is_none() {
            inputs.push(Input::HookAnswered(HookVerdict::Stop("late".to_owned())));
        }
        if !self.compacting {
            inputs.push(compaction_succeeded());
        }
        if !self.commit_pending {
            inputs.push(Input::Committed);
            inputs.push(Input::CommitFailed(crate::CommitError::HeadConflict));
        }
        if !self.is_halted() || self.sealed {
            inputs.push(Input::GraceOver);
        }
        if self.sealed || self.cancelled {
            inputs.extend([Input::Cancel, Input::TimeUp]);
        }
        if self.sealed {
            inputs.extend([Input::LaneLost, Input::Issue("late".to_owned())]);
        }
        inputs
    }

    /// Returns the next input of a cooperative host, which answers every effect.
    pub(super) fn cooperative_input(&self) -> Option<Input> {
        if self.hook.is_some() {
            return Some(Input::HookAnswered(HookVerdict::Continue));
        }
        if self.compacting {
            return Some(compaction_failed());
        }
        if let Some(turn) = self.model {
            return self
                .scenario
                .possible_responses(turn.max(1))
                .into_iter()
                .next();
        }
        if self.commit_pending {
            return Some(Input::Committed);
        }
        self.calls.iter().find_map(|(id, state)| match state {
            SimulatedCall::Gated | SimulatedCall::Asked => Some(verdict(id, Verdict::Allow)),
            // A call that waits for results ends once it has them.
            SimulatedCall::Running { .. } if self.awaits_results(id) => None,
            SimulatedCall::Running { .. } => Some(tool_ended(id, ToolEnvelope::text("done"))),
            SimulatedCall::Allowed | SimulatedCall::Over => None,
        })
    }
}

fn push_call_inputs(id: &str, state: SimulatedCall, tool: &ToolBehavior, inputs: &mut Vec<Input>) {
    let failed = |kind, why| tool_ended(id, ToolEnvelope::failed(kind, why));
    match state {
        SimulatedCall::Over | SimulatedCall::Allowed => {}
        SimulatedCall::Gated | SimulatedCall::Asked if tool.never_runs => {
            if state == SimulatedCall::Gated {
                inputs.push(permission_requested(id));
            }
            let denied = Verdict::Deny("the policy forbids it".to_owned());
            let unknown = failed(ToolErrorKind::NotFound, "no such tool");
            inputs.extend([verdict(id, denied), unknown]);
        }
        SimulatedCall::Gated if tool.is_asked => inputs.push(permission_requested(id)),
        SimulatedCall::Asked if tool.is_asked => inputs.extend([
            verdict(id, Verdict::Allow),
            verdict(id, Verdict::Deny("not this".to_owned())),
            verdict(id, Verdict::Cancelled),
        ]),
        SimulatedCall::Gated | SimulatedCall::Asked => inputs.push(verdict(id, Verdict::Allow)),
        SimulatedCall::Running {
            stopped,
            words: said,
        } => {
            if said < tool.max_updates {
                inputs.push(tool_updates(id).swap_remove(usize::from(said)));
            }
            if tool.has_child && said == 0 {
                inputs.push(child_spending(id));
            }
            if stopped {
                inputs.push(failed(ToolErrorKind::Cancelled, "stopped"));
            }
            if !tool.runs_forever {
                inputs.push(tool_ended(id, ToolEnvelope::text("done")));
            }
            if tool.can_fail {
                inputs.push(failed(ToolErrorKind::ExecutionError, "exit code 1"));
            }
            if let Some(control) = &tool.control {
                let envelope = ToolEnvelope {
                    control: Some(Box::new(control.clone())),
                    ..ToolEnvelope::text("decided")
                };
                inputs.push(tool_ended(id, envelope));
            }
        }
    }
}

/// Builds a response with these calls, or with `text`, and its usage if known.
pub(super) fn model_answered(
    ids: &[&str],
    text: &str,
    stop: ModelStop,
    input: Option<u64>,
    calls: Vec<CallAnnouncement>,
) -> Input {
    let mut content: Vec<Content> = ids.iter().map(|id| call(id)).collect();
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    let response = Response {
        content,
        stop,
        raw_stop: None,
        usage: input.map(|input| Usage {
            input,
            ..Usage::default()
        }),
        model: "m".to_owned(),
        provider: "p".to_owned(),
        tool_results: Vec::new(),
        request: None,
    };
    Input::ModelAnswered {
        response,
        calls,
        value: TextValue::Absent,
    }
}

/// Builds the request of a running call for nested calls.
fn nested_calls(parent: &str, ids: &[&str], scenario: Scenario) -> Input {
    let call = |id: &&str| ToolCall::new(*id, "tool", serde_json::Value::Null);
    let announced = ids.iter().map(|id| CallAnnouncement {
        is_parallel: scenario.is_parallel(id),
        ..CallAnnouncement::default()
    });
    Input::NestedCalls {
        parent: parent.into(),
        calls: ids.iter().map(call).collect(),
        announced: announced.collect(),
    }
}

fn call(id: &str) -> Content {
    Content::ToolCall(ToolCall::new(id, "tool", serde_json::Value::Null))
}

fn model_delta() -> Input {
    text_delta(0, FRAGMENT)
}

fn model_silent() -> Input {
    Input::ModelSilent {
        silent_ms: 30_000,
        is_connected: true,
    }
}

fn compaction_succeeded() -> Input {
    let after = ContextSize {
        tokens: 10,
        messages: 1,
    };
    compaction_result(true, after, None)
}

fn compaction_failed() -> Input {
    compaction_result(false, ContextSize::default(), None)
}

fn child_spending(id: &str) -> Input {
    let usage = Usage {
        input: 3,
        ..Usage::default()
    };
    child_usage(id, "child", Some(usage), usage)
}

/// Builds the report that the rest of the prompt has used up its tokens.
fn other_spending() -> Input {
    Input::OtherSpending(Spending {
        tokens: Limits::default().tokens,
        ..Spending::default()
    })
}

fn tool_updates(id: &str) -> Vec<Input> {
    vec![
        tool_output(id, "out"),
        Input::ToolUpdate {
            call_id: id.into(),
            detail: CallDetail::default(),
        },
        Input::PlanUpdated {
            call_id: id.into(),
            entries: Vec::new(),
        },
    ]
}
