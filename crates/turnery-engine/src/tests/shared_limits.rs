//! Tests of limits shared with the rest of the prompt: frames, candidates, a judge, child sessions.

use super::fixtures::spec_with_limits;
use super::harness::{
    LoopHarness, allow, calls_answer, follow_up, hook_continue, limit, model_answered, text_answer,
    tool_call, tool_ended,
};
use crate::{
    ContextBudget, ContextSize, Effect, HookSet, Input, LimitKind, Limits, LoopSpec, ModelStop,
    Outcome, Price, Spending, Timestamp, ToolEnvelope, TurnFinish, TurnStop, Usage,
};
use std::time::Duration;

/// Returns the inputs of a turn with one call, which takes 11 tokens.
fn a_turn() -> [Input; 3] {
    [
        model_answered(vec![tool_call("a")], ModelStop::ToolUse, Some((10, 1))),
        allow("a"),
        tool_ended("a", ToolEnvelope::text("x")),
    ]
}

fn end_of(mut script: LoopHarness) -> Outcome {
    script.feed(Input::Committed);
    script.outcome()
}

/// Returns a price of ten cents per token.
fn high_price() -> Option<Price> {
    Some(Price {
        input: 100_000_000_000,
        output: 100_000_000_000,
        ..Price::default()
    })
}

/// Returns the number of model calls so far.
fn model_calls(script: &mut LoopHarness) -> usize {
    let lines = script.lines();
    lines
        .iter()
        .filter(|line| line.contains("call model"))
        .count()
}

// proves: UP-1, C-4, TURN-68
#[test]
fn other_spending_counts_before_each_turn() {
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
        // Reported at the start, and during the turn.
        for at_start in [true, false] {
            let mut script = LoopHarness::start(LoopSpec {
                price: high_price(),
                other_spending: if at_start {
                    others
                } else {
                    Spending::default()
                },
                ..spec_with_limits(limits)
            });
            if !at_start {
                // The harness advances the clock by a second with this input.
                let time = others.time.saturating_sub(Duration::from_secs(1));
                script.feed(Input::OtherSpending(Spending { time, ..others }));
            }
            script.feed_all(a_turn());
            let expected = Outcome::Stopped(TurnStop::MaxTurns(limit(kind, text)));
            assert_eq!(end_of(script), expected, "{text}, at the start: {at_start}");
        }
    }
}

/// The response is kept, and the exceeded limit is reported.
// proves: C-4, UP-1
#[test]
fn limit_exceeded_by_last_response_is_reported() {
    let tokens = |tokens| Limits {
        tokens,
        ..Limits::default()
    };
    let cost = |cost| Limits {
        cost: Some(cost),
        ..Limits::default()
    };
    // A response of seven tokens at 100 millionths each; a thousand millionths were spent before.
    let cases = [
        (
            tokens(1),
            Some(limit(LimitKind::Tokens, "Max tokens reached (7/1)")),
        ),
        (
            tokens(6),
            Some(limit(LimitKind::Tokens, "Max tokens reached (7/6)")),
        ),
        (tokens(7), None),
        (
            cost(1_001),
            Some(limit(LimitKind::Cost, "Max cost reached (0.0017/0.001001)")),
        ),
        (
            cost(1_699),
            Some(limit(LimitKind::Cost, "Max cost reached (0.0017/0.001699)")),
        ),
        (cost(1_700), None),
    ];
    for (limits, expected) in cases {
        let mut script = LoopHarness::start(LoopSpec {
            price: Some(Price {
                input: 100_000_000,
                output: 100_000_000,
                ..Price::default()
            }),
            other_spending: Spending {
                cost: 1_000,
                ..Spending::default()
            },
            ..spec_with_limits(limits)
        });
        script.feed(text_answer("done"));
        let text = "done".into();
        let finished = Outcome::Finished(TurnFinish::AssistantMessage { text }, expected);
        assert_eq!(end_of(script), finished, "{limits:?}");
    }
}

/// A frame or candidate without remaining budget does not run, and reports the limit.
// proves: UP-1, C-4, TURN-69
#[test]
fn loop_without_budget_calls_no_model() {
    let limits = Limits {
        tokens: 50,
        ..Limits::default()
    };
    let elsewhere = Spending {
        tokens: 50,
        ..Spending::default()
    };
    let mut script = LoopHarness::start(LoopSpec {
        other_spending: elsewhere,
        forced_reply: true,
        ..spec_with_limits(limits)
    });
    assert_eq!(model_calls(&mut script), 0);
    let expected = limit(LimitKind::Tokens, "Max tokens reached (50/50)");
    assert_eq!(
        end_of(script),
        Outcome::Stopped(TurnStop::MaxTurns(expected))
    );
}

/// The prompt is part of the reply's request, also where it is the loop's only one.
// proves: C-4, UP-3
#[test]
fn last_reply_is_given_once_per_prompt() {
    let limits = Limits {
        turns: 3,
        ..Limits::default()
    };
    for (others, replies) in [(false, true), (true, false)] {
        let mut script = LoopHarness::start(LoopSpec {
            other_spending: Spending {
                turns: 3,
                forced_reply_used: others,
                ..Spending::default()
            },
            forced_reply: true,
            ..spec_with_limits(limits)
        });
        let detail = limit(LimitKind::Turns, "Max turns reached (3/3)");
        if replies {
            let told = script
                .messages()
                .iter()
                .any(|it| it.message.text() == "hello");
            assert!(told, "the model hears the prompt");
            assert!(script.machine.spending().forced_reply_used);
            assert_eq!(script.machine.spending().turns, 0, "it comes on top");
            script.feed(text_answer("so far"));
            let text = "so far".into();
            let finish = TurnFinish::AssistantMessage { text };
            assert_eq!(end_of(script), Outcome::Finished(finish, Some(detail)));
        } else {
            assert_eq!(end_of(script), Outcome::Stopped(TurnStop::MaxTurns(detail)));
        }
    }
}

/// A sub-agent's own turn limit: its last reply is an ordinary turn of the prompt.
// proves: C-4, UP-3
#[test]
fn loop_turn_limit_ends_loop_before_prompt_limit() {
    for (elsewhere, replies, turns) in [(0, true, 2), (8, true, 2), (9, false, 1)] {
        let mut script = LoopHarness::start(LoopSpec {
            other_spending: Spending {
                turns: elsewhere,
                ..Spending::default()
            },
            loop_turn_limit: Some(1),
            forced_reply: true,
            ..spec_with_limits(Limits {
                turns: 10,
                ..Limits::default()
            })
        });
        script.feed_all(a_turn());
        assert_eq!(script.machine.spending().turns, turns, "{elsewhere}");
        let detail = limit(LimitKind::Turns, "Max turns reached (1/1)");
        if replies {
            script.feed(text_answer("so far"));
            let outcome = end_of(script);
            assert!(matches!(outcome, Outcome::Finished(..)), "{outcome:?}");
            assert_eq!(outcome.limit(), Some(&detail));
        } else {
            assert_eq!(end_of(script), Outcome::Stopped(TurnStop::MaxTurns(detail)));
        }
    }
}

/// Queued user messages are returned; the response is complete.
// proves: C-4, UP-6
#[test]
fn limit_reached_during_filter_keeps_finished_outcome() {
    let mut script = LoopHarness::start(LoopSpec {
        hooks: HookSet {
            input: true,
            ..HookSet::default()
        },
        ..spec_with_limits(Limits {
            turns: 2,
            ..Limits::default()
        })
    });
    script.feed_all([hook_continue(), follow_up("more"), text_answer("done")]);
    let others = Spending {
        turns: 1,
        ..Spending::default()
    };
    script.feed_all([Input::OtherSpending(others), hook_continue()]);
    assert!(
        script
            .lines()
            .iter()
            .any(|line| line.contains("return undelivered"))
    );
    let text = "done".into();
    let finish = TurnFinish::AssistantMessage { text };
    assert_eq!(end_of(script), Outcome::Finished(finish, None));
}

// proves: UP-1, I10
#[test]
fn summary_that_spends_budget_prevents_model_call() {
    let full = ContextBudget {
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
        LoopHarness::start(LoopSpec {
            context: full,
            ..spec_with_limits(Limits {
                tokens: 100,
                ..Limits::default()
            })
        })
    };
    let mut script = start();
    script.feed(summary(99));
    assert_eq!(script.machine.spending().tokens, 99);
    assert_eq!(script.machine.usage(), Usage::default(), "I10");
    script.feed(text_answer("done"));
    assert!(matches!(end_of(script), Outcome::Finished(..)));
    let mut script = start();
    script.feed(summary(100));
    assert_eq!(model_calls(&mut script), 0);
    let expected = limit(LimitKind::Tokens, "Max tokens reached (100/100)");
    assert_eq!(
        end_of(script),
        Outcome::Stopped(TurnStop::MaxTurns(expected))
    );
}

/// The model may change while the loop runs.
// proves: UP-1
#[test]
fn responses_are_charged_at_their_models_price() {
    let mut script = LoopHarness::start(LoopSpec {
        price: high_price(),
        ..spec_with_limits(Limits::default())
    });
    script.feed_all(a_turn());
    assert_eq!(script.machine.spending().cost, 1_100_000);
    let half = high_price().map(|price| Price {
        input: price.input / 2,
        output: price.output / 2,
        ..price
    });
    script.feed(Input::PriceChanged(half));
    script.feed(model_answered(
        vec![tool_call("b")],
        ModelStop::ToolUse,
        Some((10, 1)),
    ));
    assert_eq!(script.machine.spending().cost, 1_650_000);
}

/// A model call starts with its turn and is not stopped by other spending.
#[test]
fn other_spending_does_not_stop_running_call() {
    let mut out = Vec::new();
    let now = Timestamp::default();
    let mut machine = crate::Loop::start(spec_with_limits(Limits::default()), now, &mut out);
    out.clear();
    let others = Spending {
        tokens: u64::MAX,
        ..Spending::default()
    };
    machine.handle_input(now, Input::OtherSpending(others), &mut out);
    assert!(out.is_empty(), "{out:?}");
    machine.handle_input(now, calls_answer(&["a"]), &mut out);
    assert!(
        out.iter().any(|it| matches!(it, Effect::Gate(_))),
        "{out:?}"
    );
}
