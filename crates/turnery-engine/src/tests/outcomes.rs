//! Tests of the outcomes: each cause of an end (LASH-3 to LASH-27), and the resulting record.

use super::fixtures::{prompt_spec, spec_with_limits};
use super::harness::{
    LoopHarness, allow, calls_answer, limit, model_answered, model_failed, permission_requested,
    text_answer, text_delta, tool_call, tool_ended,
};
use crate::{
    CommitError, Content, Input, LimitKind, Limits, LoopFinish, LoopSpec, LoopStatus, MessageStop,
    ModelErrorKind, ModelStop, Outcome, Price, PriceTier, ProviderFailure, ToolEnvelope,
    TurnFinish, TurnStop, Usage,
};
use std::time::Duration;

fn end_of(limits: Limits, inputs: Vec<Input>) -> (LoopHarness, Outcome) {
    let mut script = LoopHarness::start(spec_with_limits(limits));
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    let outcome = script.outcome();
    (script, outcome)
}

fn broken(kind: ModelErrorKind, message: &str) -> TurnStop {
    TurnStop::ProviderError(ProviderFailure::Failed {
        kind,
        message: message.to_owned(),
    })
}

fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() }, None)
}

/// LASH-4, LASH-17 to 20, C-19, D-16, UP-34: how the model's answer decides.
// proves: LOOP-52, LASH-4, LASH-17, LASH-18, LASH-19, LASH-20, LASH-25, C-31, D-16, C-19, UP-34, UP-35, C-2
#[test]
fn response_decides_outcome() {
    let empty = "the model gave an empty answer; send the prompt again, or choose another model";
    let two = vec![Content::text("part 1"), Content::text("part 2")];
    let cut = || vec![Content::text("half"), tool_call("a")];
    let stopped = Outcome::Stopped;
    let round = |last| {
        let result = tool_ended("a", ToolEnvelope::text("x"));
        vec![calls_answer(&["a"]), allow("a"), result, last]
    };
    let nothing = || model_answered(Vec::new(), ModelStop::EndTurn, None);
    let cases = [
        (
            vec![model_answered(two, ModelStop::EndTurn, None)],
            finished("part 1\npart 2"),
            true,
        ),
        (
            vec![model_answered(cut(), ModelStop::Length, None)],
            stopped(TurnStop::Incomplete),
            true,
        ),
        (
            vec![model_answered(cut(), ModelStop::Refusal, None)],
            stopped(TurnStop::ProviderError(ProviderFailure::Refused)),
            false,
        ),
        (
            vec![model_failed(ModelErrorKind::Network)],
            stopped(broken(ModelErrorKind::Network, "it broke")),
            true,
        ),
        (
            vec![
                text_delta(0, "al"),
                model_failed(ModelErrorKind::Unfinished),
            ],
            stopped(TurnStop::RuntimeError {
                message: "it broke".to_owned(),
            }),
            true,
        ),
        (
            vec![model_failed(ModelErrorKind::ContextOverflow)],
            stopped(broken(ModelErrorKind::ContextOverflow, "it broke")),
            true,
        ),
        (
            vec![nothing()],
            stopped(broken(ModelErrorKind::Protocol, empty)),
            true,
        ),
        (round(nothing()), finished(""), true),
        (vec![Input::Cancel], stopped(TurnStop::Cancelled), true),
    ];
    for (inputs, outcome, on_chain) in cases {
        let (script, got) = end_of(Limits::default(), inputs);
        assert_eq!(got, outcome);
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.status, LoopStatus::Completed, "LOOP-52");
        assert_eq!(record.outcome, Some(outcome));
        assert_eq!(record.on_chain, on_chain, "UP-35");
        crate::oracle::check_history(&record.messages).unwrap();
    }
}

/// D-18, TURN-36, I2: a failure after some text keeps the text and says what failed.
// proves: TURN-36, LASH-18, R1, D-18, C-19
#[test]
fn failed_response_keeps_shown_text() {
    let inputs = vec![
        text_delta(0, "al"),
        text_delta(1, "x"),
        text_delta(0, "so"),
        model_failed(ModelErrorKind::Timeout),
    ];
    let (script, ..) = end_of(Limits::default(), inputs);
    let messages = script.messages();
    let expected = crate::Message::Assistant {
        content: vec![Content::text("also"), Content::text("x")],
        stop: MessageStop::Error,
        model: "snap-model".to_owned(),
        provider: "snap-provider".to_owned(),
        usage: None,
        error: Some("it broke".to_owned()),
        request: None,
    };
    assert_eq!(messages[1].message, expected);
}

// proves: UP-1
#[test]
fn default_limits_are_those_of_the_documents() {
    let limits = Limits::default();
    assert_eq!((limits.turns, limits.tokens), (50, 1_000_000));
    assert_eq!(limits.duration, Duration::from_secs(600));
    assert_eq!(limits.cost, None);
}

/// UP-1, UP-2, TURN-68 to 70, D-12, C-4: limits are reached with `>=`, before a turn.
// proves: TURN-67, TURN-68, TURN-69, TURN-70, D-12, UP-1, UP-2
#[test]
fn limits_stop_the_loop() {
    let all = Limits::default();
    let cases = [
        (
            Limits { turns: 1, ..all },
            LimitKind::Turns,
            "Max turns reached (1/1)",
        ),
        (
            Limits { tokens: 13, ..all },
            LimitKind::Tokens,
            "Max tokens reached (13/13)",
        ),
        (
            Limits {
                duration: Duration::from_secs(3),
                ..all
            },
            LimitKind::Duration,
            "Max duration reached (3s/3s)",
        ),
    ];
    for (limits, kind, reason) in cases {
        let inputs = vec![
            calls_answer(&["a"]),
            allow("a"),
            tool_ended("a", ToolEnvelope::text("x")),
        ];
        let (script, outcome) = end_of(limits, inputs);
        let stop = TurnStop::MaxTurns(limit(kind, reason));
        assert_eq!(outcome, Outcome::Stopped(stop));
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.turns.len(), 1, "TURN-68: no turn that cannot run");
        let notice = record.messages.last().unwrap();
        assert_eq!(notice.turn_id, None);
        let text = format!("[Agent stopped: {reason}]");
        assert_eq!(notice.message, crate::Message::System { text });
    }
}

/// UP-1: input and output count, but not cached tokens.
// proves: UP-1
#[test]
fn cached_tokens_do_not_count_against_limit() {
    let cached = Usage {
        input: 10,
        output: 3,
        reasoning: 2,
        cache_read: 500,
        cache_write: 70,
    };
    for (tokens, stops) in [(13, true), (14, false)] {
        let mut asked = calls_answer(&["a"]);
        if let Input::ModelAnswered { response, .. } = &mut asked {
            response.usage = Some(cached);
        }
        let mut script = LoopHarness::start(spec_with_limits(Limits {
            tokens,
            ..Limits::default()
        }));
        let result = tool_ended("a", ToolEnvelope::text("x"));
        script.feed_all([asked, allow("a"), result]);
        let notice = "s.cfg.1.m3 system: [Agent stopped: Max tokens reached (13/13)]";
        let lines = script.lines();
        assert_eq!(
            lines.contains(&notice.to_owned()),
            stops,
            "{tokens}: {lines:?}"
        );
    }
}

/// UP-1: the input of a request, cached input included, selects its tier; a sum of requests has none.
// proves: UP-1
#[test]
fn long_input_is_charged_at_its_tier() {
    const TIERS: &[PriceTier] = &[
        PriceTier {
            above: 100,
            input: 2_000_000,
            output: 20_000_000,
            cache_read: 200_000,
            cache_write: 3_000_000,
        },
        PriceTier {
            above: 1_000,
            input: 4_000_000,
            output: 40_000_000,
            cache_read: 400_000,
            cache_write: 6_000_000,
        },
    ];
    let price = Price {
        input: 1_000_000,
        output: 10_000_000,
        cache_read: 100_000,
        cache_write: 1_500_000,
        tiers: TIERS,
    };
    let usage = |input, cache_read| Usage {
        input,
        output: 5,
        cache_read,
        ..Usage::default()
    };
    for (input, cache_read, cost) in [
        (60, 40, 60 + 50 + 4),
        // 101 tokens: at the second price, output included.
        (61, 40, 122 + 100 + 8),
        (1_000, 0, 2_000 + 100),
        (1_001, 0, 4_004 + 200),
        (1, 1_000, 4 + 200 + 400),
    ] {
        assert_eq!(
            price.cost_of(&usage(input, cache_read)),
            cost,
            "{input} {cache_read}"
        );
    }
    assert_eq!(price.without_tiers().cost_of(&usage(1_001, 0)), 1_001 + 50);
}

/// UP-1: cost, if the price is known: each kind of token has its own price, and the sum is rounded up.
// proves: UP-1
#[test]
fn cost_limit_stops_loop() {
    let price = Price {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: 300_000,
        cache_write: 3_750_000,
        tiers: &[],
    };
    let usage = Usage {
        input: 10,
        output: 3,
        reasoning: 2,
        cache_read: 1,
        cache_write: 4,
    };
    assert_eq!(price.cost_of(&usage), 91, "30 + 45 + 0.3 + 15 millionths");
    let price = Price {
        input: 100_000_000_000,
        output: 100_000_000_000,
        ..Price::default()
    };
    // The response costs 13 tokens at ten cents.
    for (most, price, stops) in [
        (1_300_000, Some(price), true),
        (1_300_001, Some(price), false),
        (1, None, false),
    ] {
        let limits = Limits {
            cost: Some(most),
            ..Limits::default()
        };
        let mut script = LoopHarness::start(LoopSpec {
            price,
            ..spec_with_limits(limits)
        });
        let result = tool_ended("a", ToolEnvelope::text("x"));
        script.feed_all([calls_answer(&["a"]), allow("a"), result]);
        let lines = script.lines();
        let notice = "s.cfg.1.m3 system: [Agent stopped: Max cost reached (1.30/1.30)]";
        assert_eq!(
            lines.contains(&notice.to_owned()),
            stops,
            "{most}: {lines:?}"
        );
    }
}

/// C-21: time spent waiting for the user does not count.
#[test]
fn permission_wait_does_not_count_as_duration() {
    let limits = Limits {
        duration: Duration::from_secs(5),
        ..Limits::default()
    };
    let mut script = LoopHarness::start(spec_with_limits(limits));
    script.feed_all([calls_answer(&["a"]), permission_requested("a")]);
    script.now += Duration::from_secs(3600);
    script.feed_all([
        allow("a"),
        tool_ended("a", ToolEnvelope::text("x")),
        text_answer("done"),
        Input::Committed,
    ]);
    let finish = script.finish.clone();
    assert!(
        matches!(
            &finish,
            Some(LoopFinish::Committed {
                outcome: Outcome::Finished(..),
                ..
            })
        ),
        "{finish:?}"
    );
}

/// C-4: a limit reached with nothing left to do has no effect.
#[test]
fn last_turn_within_limit_finishes() {
    let limits = Limits {
        turns: 1,
        tokens: 7,
        ..Limits::default()
    };
    let (_, outcome) = end_of(limits, vec![text_answer("done")]);
    assert_eq!(outcome, finished("done"));
}

/// R4, LASH-33 to LASH-35, C-11: a record that was not stored is not published, and gives no outcome.
// proves: LASH-34, LASH-35, R4, R5, S8, C-11
#[test]
fn failed_commit_publishes_nothing() {
    let faults = [
        CommitError::HeadConflict,
        CommitError::LaneLost,
        CommitError::Store("disk full".to_owned()),
    ];
    for error in faults {
        let mut script = LoopHarness::start(prompt_spec());
        script.feed(text_answer("done"));
        script.lines();
        script.feed(Input::CommitFailed(error.clone()));
        assert_eq!(script.lines(), [format!("> lost {error:?}")]);
        assert_eq!(script.finish, Some(LoopFinish::CommitFailed(error)));
        assert!(script.machine.is_over());
        script.feed(Input::Committed);
        assert!(script.lines().is_empty(), "R5");
    }
}
