//! Tests of the last reply after the turn limit.

use super::fixtures::spec_with_limits;
use super::harness::{
    LoopHarness, allow, calls_answer, limit, model_answered, model_failed, text_answer, tool_ended,
};
use crate::{
    Effect, Input, LimitKind, Limits, Loop, LoopSpec, Message, ModelErrorKind, ModelStop, Outcome,
    ReachedLimit, Timestamp, ToolChoice, ToolEnvelope, TurnFinish, TurnStop,
};
use std::time::Duration;

fn spec_with_last_reply(limits: Limits) -> LoopSpec {
    LoopSpec {
        forced_reply: true,
        ..spec_with_limits(limits)
    }
}

fn one_turn() -> Limits {
    Limits {
        turns: 1,
        ..Limits::default()
    }
}

/// Returns the inputs of one ordinary turn with a call, followed by `last`.
fn after_a_turn(last: Vec<Input>) -> Vec<Input> {
    let mut inputs = vec![calls_answer(&["a"]), allow("a")];
    inputs.push(tool_ended("a", ToolEnvelope::text("x")));
    inputs.extend(last);
    inputs
}

fn end_of(spec: LoopSpec, inputs: Vec<Input>) -> (LoopHarness, Outcome) {
    let mut script = LoopHarness::start(spec);
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    let outcome = script.outcome();
    (script, outcome)
}

fn turn_limit() -> ReachedLimit {
    limit(LimitKind::Turns, "Max turns reached (1/1)")
}

// proves: TURN-67, TURN-69, TURN-70, C-4, UP-3, LASH-21
#[test]
fn text_in_last_reply_finishes_with_limit_detail() {
    let (script, outcome) = end_of(
        spec_with_last_reply(one_turn()),
        after_a_turn(vec![text_answer("so far")]),
    );
    let text = "so far".into();
    let finish = TurnFinish::AssistantMessage { text };
    assert_eq!(outcome, Outcome::Finished(finish, Some(turn_limit())));
    let record = script.recorder.into_record().unwrap();
    assert_eq!(record.turns.len(), 2, "the last one comes on top");
    let texts: Vec<(String, bool)> = record
        .messages
        .iter()
        .map(|message| (message.message.text(), message.turn_id.is_some()))
        .collect();
    let expected = [
        ("hello", true),
        ("", true),
        ("x", true),
        ("[Agent stopped: Max turns reached (1/1)]", false),
        (
            "No tool can be used any more. Reply now in prose, from what you know so far.",
            true,
        ),
        ("so far", true),
    ];
    assert_eq!(
        texts,
        expected.map(|(text, inside)| (text.to_owned(), inside))
    );
    assert!(matches!(record.messages[3].message, Message::System { .. }));
}

// proves: C-4, UP-3
#[test]
fn last_reply_calls_no_tools() {
    let mut out = Vec::new();
    let now = Timestamp::default();
    let mut machine = Loop::start(spec_with_last_reply(one_turn()), now, &mut out);
    for input in after_a_turn(Vec::new()) {
        machine.handle_input(now, input, &mut out);
    }
    let asked: Vec<(u32, ToolChoice)> = out
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel {
                turn_index,
                tool_choice,
            } => Some((*turn_index, *tool_choice)),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [(0, ToolChoice::Auto), (1, ToolChoice::None)]);
}

// proves: LASH-21, C-4
#[test]
fn last_reply_without_text_stops_at_limit() {
    let lasts = [
        calls_answer(&["b"]),
        model_answered(Vec::new(), ModelStop::EndTurn, None),
        model_answered(Vec::new(), ModelStop::Length, None),
        model_failed(ModelErrorKind::Network),
    ];
    for last in lasts {
        let what = format!("{last:?}");
        let (script, outcome) = end_of(spec_with_last_reply(one_turn()), after_a_turn(vec![last]));
        let stop = TurnStop::MaxTurns(turn_limit());
        assert_eq!(outcome, Outcome::Stopped(stop), "{what}");
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.turns.len(), 2, "{what}");
        crate::oracle::check_history(&record.messages).unwrap();
    }
}

// proves: LASH-21, C-4, TURN-70
#[test]
fn last_reply_only_if_enabled_and_at_turn_limit() {
    let tokens = Limits {
        tokens: 13,
        ..Limits::default()
    };
    let duration = Limits {
        duration: Duration::from_secs(3),
        ..Limits::default()
    };
    for (spec, kind) in [
        (spec_with_limits(one_turn()), LimitKind::Turns),
        (spec_with_last_reply(tokens), LimitKind::Tokens),
        (spec_with_last_reply(duration), LimitKind::Duration),
    ] {
        let (script, outcome) = end_of(spec, after_a_turn(Vec::new()));
        assert!(
            matches!(&outcome, Outcome::Stopped(TurnStop::MaxTurns(limit)) if limit.kind == kind),
            "{outcome:?}"
        );
        assert_eq!(script.recorder.into_record().unwrap().turns.len(), 1);
    }
}
