//! Limits that a loop shares with the rest of its prompt: frames, candidates, a judge, child sessions.

use super::fixture::spec;
use super::script::{Script, allow, answer, call, calls, ended, follow_up, go, prose};
use crate::{
    Context, ContextSize, Detail, Effect, Finish, HookSet, Input, LimitKind, Limits, LoopSpec,
    ModelStop, Outcome, Price, Spending, Timestamp, ToolEnvelope, TurnFinish, TurnStop, Usage,
};
use std::time::Duration;

/// A turn with one call, which takes 11 tokens.
fn a_turn() -> [Input; 3] {
    [
        answer(vec![call("a")], ModelStop::ToolUse, Some((10, 1))),
        allow("a"),
        ended("a", ToolEnvelope::text("x")),
    ]
}

fn end_of(mut script: Script) -> (Outcome, Option<Detail>) {
    script.feed(Input::Committed);
    match script.finish.clone() {
        Some(Finish::Done {
            outcome, detail, ..
        }) => (outcome, detail),
        other => panic!("not done: {other:?}"),
    }
}

fn limit(kind: LimitKind, text: &str) -> Option<Detail> {
    let text = text.to_owned();
    Some(Detail::Limit { kind, text })
}

/// Ten cents for each token.
fn dear() -> Option<Price> {
    Some(Price {
        input: 100_000_000_000,
        output: 100_000_000_000,
        ..Price::default()
    })
}

/// Numbers of the model's calls so far.
fn model_calls(script: &mut Script) -> usize {
    let lines = script.lines();
    lines
        .iter()
        .filter(|line| line.contains("call model"))
        .count()
}

// proves: UP-1, C-4, TURN-68
#[test]
fn spending_of_others_counts_before_each_turn() {
    let cases = [
        (
            Limits {
                turns: 4,
                ..Limits::default()
            },
            Spending {
                turns: 3,
                ..Spending::default()
            },
            LimitKind::Turns,
            "Max turns reached (4/4)",
        ),
        (
            Limits {
                tokens: 50,
                ..Limits::default()
            },
            Spending {
                tokens: 39,
                ..Spending::default()
            },
            LimitKind::Tokens,
            "Max tokens reached (50/50)",
        ),
        (
            Limits {
                cost: Some(2_000_000),
                ..Limits::default()
            },
            Spending {
                cost: 900_000,
                ..Spending::default()
            },
            LimitKind::Cost,
            "Max cost reached (2.00/2.00)",
        ),
        (
            Limits {
                duration: Duration::from_secs(60),
                ..Limits::default()
            },
            Spending {
                time: Duration::from_secs(57),
                ..Spending::default()
            },
            LimitKind::Duration,
            "Max duration reached (60s/60s)",
        ),
    ];
    for (limits, others, kind, text) in cases {
        // Told at the start, and told in the middle of the turn.
        for at_start in [true, false] {
            let mut script = Script::start(LoopSpec {
                price: dear(),
                elsewhere: if at_start {
                    others
                } else {
                    Spending::default()
                },
                ..spec(limits)
            });
            if !at_start {
                // The world's clock has gone on by a second with this input.
                let time = others.time.saturating_sub(Duration::from_secs(1));
                script.feed(Input::OtherSpending(Spending { time, ..others }));
            }
            script.feed_all(a_turn());
            let expected = (Outcome::Stopped(TurnStop::MaxTurns), limit(kind, text));
            assert_eq!(end_of(script), expected, "{text}, at the start: {at_start}");
        }
    }
}

/// The answer stands, and that it cost more than was allowed is said.
// proves: C-4, UP-1
#[test]
fn limit_that_the_last_answer_passes_is_reported() {
    let tokens = |tokens| Limits {
        tokens,
        ..Limits::default()
    };
    let cost = |cost| Limits {
        cost: Some(cost),
        ..Limits::default()
    };
    // An answer of seven tokens; 100 of the millionths for each, a thousand of them were spent before.
    let cases = [
        (
            tokens(1),
            limit(LimitKind::Tokens, "Max tokens reached (7/1)"),
        ),
        (
            tokens(6),
            limit(LimitKind::Tokens, "Max tokens reached (7/6)"),
        ),
        (tokens(7), None),
        (
            cost(1_001),
            limit(LimitKind::Cost, "Max cost reached (0.0017/0.001001)"),
        ),
        (
            cost(1_699),
            limit(LimitKind::Cost, "Max cost reached (0.0017/0.001699)"),
        ),
        (cost(1_700), None),
    ];
    for (limits, expected) in cases {
        let mut script = Script::start(LoopSpec {
            price: Some(Price {
                input: 100_000_000,
                output: 100_000_000,
                ..Price::default()
            }),
            elsewhere: Spending {
                cost: 1_000,
                ..Spending::default()
            },
            ..spec(limits)
        });
        script.feed(prose("done"));
        let text = "done".into();
        let finished = Outcome::Finished(TurnFinish::AssistantMessage { text });
        assert_eq!(end_of(script), (finished, expected), "{limits:?}");
    }
}

/// A frame, or a candidate, that finds nothing left is not run, and says why.
// proves: UP-1, C-4, TURN-69
#[test]
fn loop_without_anything_left_calls_no_model() {
    let limits = Limits {
        tokens: 50,
        ..Limits::default()
    };
    let elsewhere = Spending {
        tokens: 50,
        ..Spending::default()
    };
    let mut script = Script::start(LoopSpec {
        elsewhere,
        forced_reply: true,
        ..spec(limits)
    });
    assert_eq!(model_calls(&mut script), 0);
    let expected = limit(LimitKind::Tokens, "Max tokens reached (50/50)");
    assert_eq!(
        end_of(script),
        (Outcome::Stopped(TurnStop::MaxTurns), expected)
    );
}

/// The prompt is part of the reply's request, also where it is the loop's only one.
// proves: C-4, UP-3
#[test]
fn last_reply_is_given_once_in_a_prompt() {
    let limits = Limits {
        turns: 3,
        ..Limits::default()
    };
    for (others, replies) in [(false, true), (true, false)] {
        let mut script = Script::start(LoopSpec {
            elsewhere: Spending {
                turns: 3,
                last_reply: others,
                ..Spending::default()
            },
            forced_reply: true,
            ..spec(limits)
        });
        let detail = limit(LimitKind::Turns, "Max turns reached (3/3)");
        if replies {
            let told = script
                .messages()
                .iter()
                .any(|it| it.message.text() == "hello");
            assert!(told, "the model hears the prompt");
            assert!(script.machine.spending().last_reply);
            assert_eq!(script.machine.spending().turns, 0, "it comes on top");
            script.feed(prose("so far"));
            let text = "so far".into();
            let finished = Outcome::Finished(TurnFinish::AssistantMessage { text });
            assert_eq!(end_of(script), (finished, detail));
        } else {
            assert_eq!(
                end_of(script),
                (Outcome::Stopped(TurnStop::MaxTurns), detail)
            );
        }
    }
}

/// A sub-agent's own number of turns: its last reply is an ordinary turn of the prompt.
// proves: C-4, UP-3
#[test]
fn own_turns_end_a_loop_before_its_prompt() {
    for (elsewhere, replies, turns) in [(0, true, 2), (8, true, 2), (9, false, 1)] {
        let mut script = Script::start(LoopSpec {
            elsewhere: Spending {
                turns: elsewhere,
                ..Spending::default()
            },
            own_turns: Some(1),
            forced_reply: true,
            ..spec(Limits {
                turns: 10,
                ..Limits::default()
            })
        });
        script.feed_all(a_turn());
        assert_eq!(script.machine.spending().turns, turns, "{elsewhere}");
        let detail = limit(LimitKind::Turns, "Max turns reached (1/1)");
        if replies {
            script.feed(prose("so far"));
            let (outcome, told) = end_of(script);
            assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
            assert_eq!(told, detail);
        } else {
            assert_eq!(
                end_of(script),
                (Outcome::Stopped(TurnStop::MaxTurns), detail)
            );
        }
    }
}

/// What a person has still to say is given back; the answer is whole.
// proves: C-4, UP-6
#[test]
fn limit_reached_while_a_filter_is_asked_ends_no_finished_answer() {
    let mut script = Script::start(LoopSpec {
        hooks: HookSet {
            input: true,
            ..HookSet::default()
        },
        ..spec(Limits {
            turns: 2,
            ..Limits::default()
        })
    });
    script.feed_all([go(), follow_up("more"), prose("done")]);
    let others = Spending {
        turns: 1,
        ..Spending::default()
    };
    script.feed_all([Input::OtherSpending(others), go()]);
    assert!(script.lines().iter().any(|line| line.contains("unheard")));
    let text = "done".into();
    let finished = Outcome::Finished(TurnFinish::AssistantMessage { text });
    assert_eq!(end_of(script), (finished, None));
}

// proves: UP-1, I10
#[test]
fn summary_counts_and_no_call_follows_one_that_took_the_rest() {
    let full = Context {
        size: ContextSize {
            tokens: 950,
            messages: 9,
        },
        window: Some(1_000),
        compact_at: 90,
    };
    let summary = |tokens| Input::Compacted {
        block: Err("it was too long".to_owned()),
        after: ContextSize::default(),
        usage: Some(Usage {
            input: tokens,
            ..Usage::default()
        }),
    };
    let start = || {
        Script::start(LoopSpec {
            context: full,
            ..spec(Limits {
                tokens: 100,
                ..Limits::default()
            })
        })
    };
    let mut script = start();
    script.feed(summary(99));
    assert_eq!(script.machine.spending().tokens, 99);
    assert_eq!(script.machine.usage(), Usage::default(), "I10");
    script.feed(prose("done"));
    assert!(matches!(end_of(script).0, Outcome::Finished(_)));
    let mut script = start();
    script.feed(summary(100));
    assert_eq!(model_calls(&mut script), 0);
    let expected = limit(LimitKind::Tokens, "Max tokens reached (100/100)");
    assert_eq!(
        end_of(script),
        (Outcome::Stopped(TurnStop::MaxTurns), expected)
    );
}

/// Another model may be chosen while the loop runs.
// proves: UP-1
#[test]
fn each_answer_costs_what_its_model_costs() {
    let mut script = Script::start(LoopSpec {
        price: dear(),
        ..spec(Limits::default())
    });
    script.feed_all(a_turn());
    assert_eq!(script.machine.spending().cost, 1_100_000);
    let half = dear().map(|price| Price {
        input: price.input / 2,
        output: price.output / 2,
        ..price
    });
    script.feed(Input::Price(half));
    script.feed(answer(vec![call("b")], ModelStop::ToolUse, Some((10, 1))));
    assert_eq!(script.machine.spending().cost, 1_650_000);
}

/// A call has begun once its turn has: nothing of it is taken back.
#[test]
fn spending_of_others_stops_no_call_under_way() {
    let mut out = Vec::new();
    let now = Timestamp::default();
    let mut machine = crate::Loop::start(spec(Limits::default()), now, &mut out);
    out.clear();
    let others = Spending {
        tokens: u64::MAX,
        ..Spending::default()
    };
    machine.on(now, Input::OtherSpending(others), &mut out);
    assert!(out.is_empty(), "{out:?}");
    machine.on(now, calls(&["a"]), &mut out);
    assert!(
        out.iter().any(|it| matches!(it, Effect::Gate(_))),
        "{out:?}"
    );
}
