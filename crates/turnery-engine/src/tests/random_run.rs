//! Generates random runs: any loop, with any inputs at any time, brought to its end.

use super::fixtures::spec_with_limits;
use super::harness::{
    LoopHarness, allow, child_usage, compaction_result, control_envelope, follow_up, hook_continue,
    hook_stop, model_answered, model_failed, model_retried, parallel_calls, permission_requested,
    steer, text_answer, text_delta, tool_call, tool_ended, tool_output, verdict,
};
use crate::{
    CommitError, ContextBudget, ContextSize, ContinuationKind, EventKind, HookSet, HookVerdict,
    Input, Limits, LoopSpec, ModelErrorKind, ModelStop, QueueMode, ToolControl, ToolEnvelope,
    ToolErrorKind, Usage, Verdict,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// Step of a run. Steps about calls refer to one of the last two requested calls.
#[derive(Clone, Debug)]
enum RunStep {
    Feed(Box<Input>),
    /// Response with two new calls, parallel or not, and its usage.
    AnswerWithCalls(bool, Option<Usage>),
    AnswerWithText(Option<Usage>),
    Call(usize, CallReport),
}

/// Report about a call.
#[derive(Clone, Debug)]
enum CallReport {
    PermissionRequested,
    Verdict(Verdict),
    ToolEnded(Box<ToolEnvelope>),
    ToolOutput,
    ToolProgress,
    /// Tokens spent by one of two child sessions.
    ChildUsage(bool, u64),
}

fn any_usage() -> impl Strategy<Value = Option<Usage>> {
    let bucket = || 0..1_000u64;
    let usage = (bucket(), bucket(), bucket(), bucket(), bucket()).prop_map(
        |(input, output, reasoning, cache_read, cache_write)| Usage {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
        },
    );
    proptest::option::of(usage)
}

fn child_session(first: bool) -> &'static str {
    if first { "first" } else { "second" }
}

fn any_call_report() -> impl Strategy<Value = CallReport> {
    let failed = || ToolEnvelope::failed(ToolErrorKind::Timeout, "slow");
    let switch = ToolControl::SwitchFrame {
        task: "more".to_owned(),
    };
    let child = ToolEnvelope {
        child_loop_id: Some("first.cfg.1".into()),
        ..ToolEnvelope::text("child")
    };
    prop_oneof![
        4 => Just(CallReport::PermissionRequested),
        8 => Just(CallReport::Verdict(Verdict::Allow)),
        2 => Just(CallReport::Verdict(Verdict::Deny("no".to_owned()))),
        6 => Just(CallReport::ToolEnded(Box::new(ToolEnvelope::text("result")))),
        2 => Just(CallReport::ToolEnded(Box::new(failed()))),
        1 => Just(CallReport::ToolEnded(Box::new(child))),
        1 => Just(CallReport::ToolEnded(Box::new(control_envelope("x", ToolControl::Submit(json!(1)))))),
        1 => Just(CallReport::ToolEnded(Box::new(control_envelope("x", switch)))),
        2 => Just(CallReport::ToolOutput),
        2 => Just(CallReport::ToolProgress),
        3 => (any::<bool>(), 1..50u64).prop_map(|(first, tokens)| CallReport::ChildUsage(first, tokens)),
    ]
}

fn compacted(succeeds: bool) -> Input {
    let after = ContextSize {
        tokens: 100,
        messages: 2,
    };
    let usage = Usage {
        input: 4,
        ..Usage::default()
    };
    compaction_result(succeeds, after, Some(usage))
}

/// Generates any step at any time; most do not fit the state, which is intended.
fn any_step() -> impl Strategy<Value = RunStep> {
    let input = prop_oneof![
        4 => (0..3u32).prop_map(|block| text_delta(block, "word ")),
        6 => Just(hook_continue()),
        1 => Just(hook_stop("not this")),
        1 => Just(Input::HookAnswered(HookVerdict::Warn("careful".to_owned()))),
        2 => any::<bool>().prop_map(compacted),
        1 => Just(model_retried()),
        1 => Just(Input::Issue("a hook failed".to_owned())),
        2 => Just(steer("steer")),
        2 => Just(follow_up("follow")),
        1 => Just(model_answered(vec![tool_call("z")], ModelStop::Length, Some((7, 7)))),
        1 => Just(model_failed(ModelErrorKind::Overloaded)),
        1 => Just(model_failed(ModelErrorKind::ContextOverflow)),
        1 => Just(Input::Cancel),
        1 => Just(Input::TimeUp),
        1 => Just(Input::GraceOver),
        1 => Just(Input::CommitFailed(CommitError::HeadConflict)),
    ];
    prop_oneof![
        8 => input.prop_map(|input| RunStep::Feed(Box::new(input))),
        4 => (any::<bool>(), any_usage()).prop_map(|(beside, cost)| RunStep::AnswerWithCalls(beside, cost)),
        1 => any_usage().prop_map(RunStep::AnswerWithText),
        16 => (0..2usize, any_call_report()).prop_map(|(place, said)| RunStep::Call(place, said)),
    ]
}

fn any_hooks() -> impl Strategy<Value = HookSet> {
    any::<[bool; 8]>().prop_map(|[a, b, c, d, e, f, g, h]| HookSet {
        input: a,
        before_turn: b,
        after_turn: c,
        before_tool: d,
        after_tool: e,
        compaction: f,
        on_error: g,
        checkpoint: h,
    })
}

fn any_spec() -> impl Strategy<Value = LoopSpec> {
    let kinds = prop_oneof![
        6 => Just(ContinuationKind::Initial),
        1 => Just(ContinuationKind::Default),
        1 => Just(ContinuationKind::Rerun),
        1 => Just(ContinuationKind::Branch),
        1 => Just(ContinuationKind::Compaction),
    ];
    let switches = any::<[bool; 3]>();
    (any_hooks(), kinds, 1..6u32, 0..2_000u64, switches).prop_map(
        |(hooks, continuation_kind, turns, tokens, [forced_reply, all, hooked])| LoopSpec {
            hooks: if hooked { hooks } else { HookSet::default() },
            continuation_kind,
            forced_reply,
            steering: if all {
                QueueMode::All
            } else {
                QueueMode::OneAtATime
            },
            context: ContextBudget {
                size: ContextSize {
                    tokens,
                    messages: 3,
                },
                window: Some(1_500),
                compact_at: 80,
            },
            ..spec_with_limits(Limits {
                turns,
                ..Limits::default()
            })
        },
    )
}

fn with_usage(mut input: Input, cost: Option<Usage>) -> Input {
    if let Input::ModelAnswered { response, .. } = &mut input {
        response.usage = cost;
    }
    input
}

/// Run in progress, with the state that a host would have.
struct RandomRun {
    harness: LoopHarness,
    response_count: u32,
    /// Usage of each child session.
    children: BTreeMap<&'static str, Usage>,
}

impl RandomRun {
    /// Returns the ids of the last requested calls.
    fn last_call_ids(&self) -> Vec<String> {
        let wanted = self
            .harness
            .published_events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolCallRequested { call, .. } => Some(call.call_id.to_string()),
                _ => None,
            });
        let wanted: Vec<String> = wanted.collect();
        wanted[wanted.len().saturating_sub(2)..].to_vec()
    }

    fn apply_step(&mut self, step: RunStep) {
        let input = match step {
            RunStep::Feed(input) => *input,
            RunStep::AnswerWithText(cost) => with_usage(text_answer("done"), cost),
            RunStep::AnswerWithCalls(beside, cost) => {
                self.response_count += 1;
                let ids = ["a", "b"].map(|place| format!("{}{place}", self.response_count));
                let ids = [ids[0].as_str(), ids[1].as_str()];
                let beside: &[&str] = if beside { &ids } else { &[] };
                with_usage(parallel_calls(&ids, beside), cost)
            }
            RunStep::Call(place, said) => {
                let ids = self.last_call_ids();
                let id = ids.get(place).map_or("nobody", String::as_str);
                match said {
                    CallReport::PermissionRequested => permission_requested(id),
                    CallReport::Verdict(given) => verdict(id, given),
                    CallReport::ToolEnded(envelope) => tool_ended(id, *envelope),
                    CallReport::ToolOutput => tool_output(id, "out"),
                    CallReport::ToolProgress => Input::ToolProgress {
                        call_id: id.into(),
                        text: "half".to_owned(),
                    },
                    CallReport::ChildUsage(first, tokens) => {
                        self.child_usage(id, child_session(first), tokens)
                    }
                }
            }
        };
        self.harness.feed(input);
    }

    fn child_usage(&mut self, id: &str, session: &'static str, tokens: u64) -> Input {
        let usage = Usage {
            input: tokens,
            ..Usage::default()
        };
        let total = self.children.entry(session).or_default();
        *total += usage;
        child_usage(id, session, Some(usage), *total)
    }

    /// Answers every effect until the loop is over.
    fn finish(mut self) -> LoopHarness {
        for _ in 0..100 {
            if self.harness.machine.is_over() {
                break;
            }
            for id in self.last_call_ids() {
                let result = ToolEnvelope::text("in the end");
                self.harness.feed_all([
                    allow(&id),
                    hook_continue(),
                    tool_ended(&id, result),
                    hook_continue(),
                ]);
            }
            self.harness.feed_all([
                hook_continue(),
                compacted(false),
                text_answer("end"),
                Input::Committed,
            ]);
        }
        self.harness
    }
}

pub(super) fn any_run() -> impl Strategy<Value = LoopHarness> {
    let steps = proptest::collection::vec(any_step(), 0..80);
    (any_spec(), steps).prop_map(|(spec, steps)| {
        let mut play = RandomRun {
            harness: LoopHarness::start(spec),
            response_count: 0,
            children: BTreeMap::new(),
        };
        for step in steps {
            play.apply_step(step);
        }
        play.finish()
    })
}
