//! Play: any run at all: any loop, with anything happening at any time, brought to its end.

use super::fixture::spec;
use super::script::{
    Script, allow, answer, asking, call, deciding, ended, failed, follow_up, go, no,
    parallel_calls, printed, prose, steer, text, verdict,
};
use crate::{
    ChildUsage, CommitFault, CompactionBlock, Context, ContextSize, ContinuationKind, EventKind,
    FailureKind, FaultKind, HookSet, HookVerdict, Input, Limits, LoopSpec, ModelFault, ModelStop,
    QueueMode, Timestamp, ToolControl, ToolEnvelope, Usage, Verdict,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// One thing that happens. Those about calls are about one of the two that were asked for last.
#[derive(Clone, Debug)]
enum Step {
    Say(Box<Input>),
    /// An answer with two fresh calls, side by side or not, that costs so much.
    Calls(bool, Option<Usage>),
    Prose(Option<Usage>),
    Call(usize, Said),
}

/// What is said of a call.
#[derive(Clone, Debug)]
enum Said {
    Asking,
    Verdict(Verdict),
    Ended(Box<ToolEnvelope>),
    Printed,
    Progressed,
    /// So many tokens, by one of two children.
    Spent(bool, u64),
}

fn cost() -> impl Strategy<Value = Option<Usage>> {
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

fn said() -> impl Strategy<Value = Said> {
    let failed = || ToolEnvelope::failed(FailureKind::Timeout, "slow");
    let switch = ToolControl::SwitchFrame {
        task: "more".to_owned(),
    };
    let child = ToolEnvelope {
        child_loop_id: Some("first.cfg.1".into()),
        ..ToolEnvelope::text("child")
    };
    prop_oneof![
        4 => Just(Said::Asking),
        8 => Just(Said::Verdict(Verdict::Allow)),
        2 => Just(Said::Verdict(Verdict::Deny("no".to_owned()))),
        6 => Just(Said::Ended(Box::new(ToolEnvelope::text("result")))),
        2 => Just(Said::Ended(Box::new(failed()))),
        1 => Just(Said::Ended(Box::new(child))),
        1 => Just(Said::Ended(Box::new(deciding("x", ToolControl::Submit(json!(1)))))),
        1 => Just(Said::Ended(Box::new(deciding("x", switch)))),
        2 => Just(Said::Printed),
        2 => Just(Said::Progressed),
        3 => (any::<bool>(), 1..50u64).prop_map(|(first, tokens)| Said::Spent(first, tokens)),
    ]
}

fn compacted(block: bool) -> Input {
    let whole = CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: Vec::new(),
        keep_recent: Vec::new(),
        through: "s.cfg.0.m0".into(),
        created_at: Timestamp::default(),
    };
    Input::Compacted {
        block: block.then_some(whole).ok_or_else(|| "no".to_owned()),
        after: ContextSize {
            tokens: 100,
            messages: 2,
        },
        usage: Some(Usage {
            input: 4,
            ..Usage::default()
        }),
    }
}

fn retried() -> Input {
    Input::Retried {
        attempt: 1,
        fault: ModelFault {
            kind: FaultKind::RateLimit,
            message: "slow down".to_owned(),
            status: Some(429),
            retry_after: None,
        },
        wait_ms: 1_000,
    }
}

/// Anything at any time: most of it will not fit, which is the point.
fn step() -> impl Strategy<Value = Step> {
    let input = prop_oneof![
        4 => (0..3u32).prop_map(|block| text(block, "word ")),
        6 => Just(go()),
        1 => Just(no("not this")),
        1 => Just(Input::Hooked(HookVerdict::Warn("careful".to_owned()))),
        2 => any::<bool>().prop_map(compacted),
        1 => Just(retried()),
        1 => Just(Input::Noticed("a hook failed".to_owned())),
        2 => Just(steer("steer")),
        2 => Just(follow_up("follow")),
        1 => Just(answer(vec![call("z")], ModelStop::Length, Some((7, 7)))),
        1 => Just(failed(FaultKind::Overloaded)),
        1 => Just(failed(FaultKind::ContextOverflow)),
        1 => Just(Input::Cancel),
        1 => Just(Input::TimeUp),
        1 => Just(Input::GraceOver),
        1 => Just(Input::CommitFailed(CommitFault::HeadConflict)),
    ];
    prop_oneof![
        8 => input.prop_map(|input| Step::Say(Box::new(input))),
        4 => (any::<bool>(), cost()).prop_map(|(beside, cost)| Step::Calls(beside, cost)),
        1 => cost().prop_map(Step::Prose),
        16 => (0..2usize, said()).prop_map(|(place, said)| Step::Call(place, said)),
    ]
}

fn hooks() -> impl Strategy<Value = HookSet> {
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
    (hooks(), kinds, 1..6u32, 0..2_000u64, switches).prop_map(
        |(hooks, continuation_kind, turns, tokens, [forced_reply, all, hooked])| LoopSpec {
            hooks: if hooked { hooks } else { HookSet::default() },
            continuation_kind,
            forced_reply,
            steering: if all {
                QueueMode::All
            } else {
                QueueMode::OneAtATime
            },
            context: Context {
                size: ContextSize {
                    tokens,
                    messages: 3,
                },
                window: Some(1_500),
                compact_at: 80,
            },
            ..spec(Limits {
                turns,
                ..Limits::default()
            })
        },
    )
}

fn with_cost(mut input: Input, cost: Option<Usage>) -> Input {
    if let Input::Answered { response, .. } = &mut input {
        response.usage = cost;
    }
    input
}

/// A run under way, with what only a world knows.
struct Play {
    script: Script,
    answers: u32,
    /// What each child has spent.
    children: BTreeMap<&'static str, Usage>,
}

impl Play {
    /// The calls that were asked for last.
    fn calls(&self) -> Vec<String> {
        let wanted = self
            .script
            .shown
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolCallRequested { call, .. } => Some(call.call_id.to_string()),
                _ => None,
            });
        let wanted: Vec<String> = wanted.collect();
        wanted[wanted.len().saturating_sub(2)..].to_vec()
    }

    fn play(&mut self, step: Step) {
        let input = match step {
            Step::Say(input) => *input,
            Step::Prose(cost) => with_cost(prose("done"), cost),
            Step::Calls(beside, cost) => {
                self.answers += 1;
                let ids = ["a", "b"].map(|place| format!("{}{place}", self.answers));
                let ids = [ids[0].as_str(), ids[1].as_str()];
                let beside: &[&str] = if beside { &ids } else { &[] };
                with_cost(parallel_calls(&ids, beside), cost)
            }
            Step::Call(place, said) => {
                let ids = self.calls();
                let id = ids.get(place).map_or("nobody", String::as_str);
                match said {
                    Said::Asking => asking(id),
                    Said::Verdict(given) => verdict(id, given),
                    Said::Ended(envelope) => ended(id, *envelope),
                    Said::Printed => printed(id, "out"),
                    Said::Progressed => Input::Progressed {
                        call_id: id.into(),
                        text: "half".to_owned(),
                    },
                    Said::Spent(first, tokens) => self.spent(id, child_session(first), tokens),
                }
            }
        };
        self.script.feed(input);
    }

    fn spent(&mut self, id: &str, session: &'static str, tokens: u64) -> Input {
        let usage = Usage {
            input: tokens,
            ..Usage::default()
        };
        let total = self.children.entry(session).or_default();
        *total += usage;
        Input::ChildSpent {
            call_id: id.into(),
            child: ChildUsage {
                session_id: session.into(),
                source: "subagent".to_owned(),
                model: "p/m".to_owned(),
                iteration: 0,
                usage: Some(usage),
                cumulative: *total,
            },
        }
    }

    /// Answer whatever is asked until it is over.
    fn ended(mut self) -> Script {
        for _ in 0..100 {
            if self.script.machine.is_over() {
                break;
            }
            for id in self.calls() {
                let result = ToolEnvelope::text("in the end");
                self.script
                    .feed_all([allow(&id), go(), ended(&id, result), go()]);
            }
            self.script
                .feed_all([go(), compacted(false), prose("end"), Input::Committed]);
        }
        self.script
    }
}

pub(super) fn run() -> impl Strategy<Value = Script> {
    let steps = proptest::collection::vec(step(), 0..80);
    (any_spec(), steps).prop_map(|(spec, steps)| {
        let mut play = Play {
            script: Script::start(spec),
            answers: 0,
            children: BTreeMap::new(),
        };
        for step in steps {
            play.play(step);
        }
        play.ended()
    })
}
