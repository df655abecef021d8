//! Ends: one row of section 7 each, and what the record says of it.

use super::fixture::{prompt, spec};
use super::script::{Script, allow, answer, asking, call, calls, ended, failed, prose, text};
use crate::{
    CommitFault, Content, Detail, FaultKind, Finish, Input, LimitKind, Limits, LoopSpec,
    LoopStatus, MessageStop, ModelStop, Outcome, Price, ToolEnvelope, TurnFinish, TurnStop, Usage,
};
use std::time::Duration;

fn end_of(limits: Limits, inputs: Vec<Input>) -> (Script, Outcome, Option<Detail>) {
    let mut script = Script::start(spec(limits));
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    let Some(Finish::Done {
        outcome, detail, ..
    }) = script.finish.clone()
    else {
        panic!("not done: {:?}", script.finish);
    };
    (script, outcome, detail)
}

fn broken(kind: FaultKind, message: &str) -> Option<Detail> {
    Some(Detail::Provider {
        kind,
        message: message.to_owned(),
    })
}

fn limit(kind: LimitKind, text: &str) -> Option<Detail> {
    Some(Detail::Limit {
        kind,
        text: text.to_owned(),
    })
}

fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() })
}

/// LASH-4, LASH-17 to 20, C-19, D-16, UP-34: how the model's answer decides.
// proves: LOOP-52, LASH-4, LASH-17, LASH-18, LASH-19, LASH-20, LASH-25, C-31, D-16, C-19, UP-34, UP-35
#[test]
fn the_answer_decides_the_outcome() {
    let empty = "the model gave an empty answer; send the prompt again, or choose another model";
    let two = vec![Content::text("part 1"), Content::text("part 2")];
    let cut = || vec![Content::text("half"), call("a")];
    let stopped = Outcome::Stopped;
    let round = |last| {
        let result = ended("a", ToolEnvelope::text("x"));
        vec![calls(&["a"]), allow("a"), result, last]
    };
    let nothing = || answer(Vec::new(), ModelStop::EndTurn, None);
    let cases = [
        (
            vec![answer(two, ModelStop::EndTurn, None)],
            finished("part 1\npart 2"),
            None,
            true,
        ),
        (
            vec![answer(cut(), ModelStop::Length, None)],
            stopped(TurnStop::Incomplete),
            None,
            true,
        ),
        (
            vec![answer(cut(), ModelStop::Refusal, None)],
            stopped(TurnStop::ProviderError),
            Some(Detail::Refusal),
            false,
        ),
        (
            vec![failed(FaultKind::Network)],
            stopped(TurnStop::ProviderError),
            broken(FaultKind::Network, "it broke"),
            true,
        ),
        (
            vec![text(0, "al"), failed(FaultKind::Unfinished)],
            stopped(TurnStop::RuntimeError),
            Some(Detail::Runtime {
                message: "it broke".to_owned(),
            }),
            true,
        ),
        (
            vec![failed(FaultKind::ContextOverflow)],
            stopped(TurnStop::ProviderError),
            broken(FaultKind::ContextOverflow, "it broke"),
            true,
        ),
        (
            vec![nothing()],
            stopped(TurnStop::ProviderError),
            broken(FaultKind::Protocol, empty),
            true,
        ),
        (round(nothing()), finished(""), None, true),
    ];
    for (inputs, outcome, detail, on_chain) in cases {
        let (script, got, got_detail) = end_of(Limits::default(), inputs);
        assert_eq!((got, got_detail), (outcome.clone(), detail.clone()));
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.status, LoopStatus::Completed, "LOOP-52");
        assert_eq!((record.outcome, record.detail), (Some(outcome), detail));
        assert_eq!(record.on_chain, on_chain, "UP-35");
        crate::oracle::check_history(&record.messages).unwrap();
    }
}

/// D-18, TURN-36, I2: a failure after some text keeps the text and says what failed.
// proves: TURN-36, LASH-18, R1, D-18, C-19
#[test]
fn a_failed_answer_keeps_what_was_shown() {
    let inputs = vec![
        text(0, "al"),
        text(1, "x"),
        text(0, "so"),
        failed(FaultKind::Timeout),
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
    };
    assert_eq!(messages[1].message, expected);
}

/// UP-1, UP-2, TURN-68 to 70, D-12, C-4: limits are reached with `>=`, before a turn.
// proves: TURN-68, TURN-69, TURN-70, D-12, UP-1, UP-2
#[test]
fn limits() {
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
            calls(&["a"]),
            allow("a"),
            ended("a", ToolEnvelope::text("x")),
        ];
        let (script, outcome, detail) = end_of(limits, inputs);
        assert_eq!(outcome, Outcome::Stopped(TurnStop::MaxTurns));
        assert_eq!(detail, limit(kind, reason));
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.turns.len(), 1, "TURN-68: no turn that cannot run");
        let notice = record.messages.last().unwrap();
        assert_eq!(notice.turn_id, None);
        let text = format!("[Agent stopped: {reason}]");
        assert_eq!(notice.message, crate::Message::System { text });
    }
}

/// UP-1: input and output count, whatever went through a cache beside them.
// proves: UP-1
#[test]
fn what_goes_through_a_cache_does_not_count_as_tokens() {
    let cached = Usage {
        input: 10,
        output: 3,
        reasoning: 2,
        cache_read: 500,
        cache_write: 70,
    };
    for (tokens, stops) in [(13, true), (14, false)] {
        let mut asked = calls(&["a"]);
        if let Input::Answered { response, .. } = &mut asked {
            response.usage = Some(cached);
        }
        let mut script = Script::start(spec(Limits {
            tokens,
            ..Limits::default()
        }));
        let result = ended("a", ToolEnvelope::text("x"));
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

/// UP-1: money, where its price is known: every bucket has its own, and the sum is rounded up.
// proves: UP-1
#[test]
fn the_cost_is_a_limit() {
    let price = Price {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: 300_000,
        cache_write: 3_750_000,
    };
    let usage = Usage {
        input: 10,
        output: 3,
        reasoning: 2,
        cache_read: 1,
        cache_write: 4,
    };
    assert_eq!(price.of(&usage), 91, "30 + 45 + 0.3 + 15 millionths");
    let price = Price {
        input: 100_000_000_000,
        output: 100_000_000_000,
        ..Price::default()
    };
    // The answer costs 13 tokens at ten cents.
    for (most, price, stops) in [
        (1_300_000, Some(price), true),
        (1_300_001, Some(price), false),
        (1, None, false),
    ] {
        let limits = Limits {
            cost: Some(most),
            ..Limits::default()
        };
        let mut script = Script::start(LoopSpec {
            price,
            ..spec(limits)
        });
        let result = ended("a", ToolEnvelope::text("x"));
        script.feed_all([calls(&["a"]), allow("a"), result]);
        let lines = script.lines();
        let notice = "s.cfg.1.m3 system: [Agent stopped: Max cost reached (1.30/1.30)]";
        assert_eq!(
            lines.contains(&notice.to_owned()),
            stops,
            "{most}: {lines:?}"
        );
    }
}

/// C-21: the time that a person takes to answer does not count.
#[test]
fn a_slow_answer_reaches_no_limit() {
    let limits = Limits {
        duration: Duration::from_secs(5),
        ..Limits::default()
    };
    let mut script = Script::start(spec(limits));
    script.feed_all([calls(&["a"]), asking("a")]);
    script.now += Duration::from_secs(3600);
    script.feed_all([
        allow("a"),
        ended("a", ToolEnvelope::text("x")),
        prose("done"),
        Input::Committed,
    ]);
    let finish = script.finish.clone();
    assert!(
        matches!(
            &finish,
            Some(Finish::Done {
                outcome: Outcome::Finished(_),
                ..
            })
        ),
        "{finish:?}"
    );
}

/// C-4: a limit that is reached with nothing left to do is no limit.
#[test]
fn a_last_turn_within_the_limit_finishes() {
    let limits = Limits {
        turns: 1,
        tokens: 7,
        ..Limits::default()
    };
    let (_, outcome, detail) = end_of(limits, vec![prose("done")]);
    assert_eq!((outcome, detail), (finished("done"), None));
}

/// R4, LASH-33 to 35, C-11: what was not stored is not published, and is no outcome.
// proves: LASH-34, LASH-35, R4, R5, S8, C-11
#[test]
fn a_failed_commit_publishes_nothing() {
    let faults = [
        CommitFault::HeadConflict,
        CommitFault::LaneLost,
        CommitFault::Store("disk full".to_owned()),
    ];
    for fault in faults {
        let mut script = Script::start(prompt());
        script.feed(prose("done"));
        script.lines();
        script.feed(Input::CommitFailed(fault.clone()));
        assert_eq!(script.lines(), [format!("> lost {fault:?}")]);
        assert_eq!(script.finish, Some(Finish::Lost(fault)));
        assert!(script.machine.is_over());
        script.feed(Input::Committed);
        assert!(script.lines().is_empty(), "R5");
    }
}
