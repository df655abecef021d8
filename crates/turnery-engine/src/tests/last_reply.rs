//! The last reply: what comes after the limit of turns, where the host wants an answer all the same.

use super::fixture::spec;
use super::script::{Script, allow, answer, calls, ended, failed, prose};
use crate::{
    Detail, Effect, FaultKind, Finish, Input, LimitKind, Limits, Loop, LoopSpec, Message,
    ModelStop, Outcome, Timestamp, ToolEnvelope, TurnFinish, TurnStop,
};
use std::time::Duration;

fn wanted(limits: Limits) -> LoopSpec {
    LoopSpec {
        forced_reply: true,
        ..spec(limits)
    }
}

fn one_turn() -> Limits {
    Limits {
        turns: 1,
        ..Limits::default()
    }
}

/// One ordinary turn with a call, and then these.
fn after_a_turn(last: Vec<Input>) -> Vec<Input> {
    let mut inputs = vec![calls(&["a"]), allow("a")];
    inputs.push(ended("a", ToolEnvelope::text("x")));
    inputs.extend(last);
    inputs
}

fn end_of(spec: LoopSpec, inputs: Vec<Input>) -> (Script, Outcome, Option<Detail>) {
    let mut script = Script::start(spec);
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    match script.finish.clone() {
        Some(Finish::Done {
            outcome, detail, ..
        }) => (script, outcome, detail),
        other => panic!("not done: {other:?}"),
    }
}

fn reached() -> Option<Detail> {
    Some(Detail::Limit {
        kind: LimitKind::Turns,
        text: "Max turns reached (1/1)".to_owned(),
    })
}

// proves: TURN-69, C-4, UP-3
#[test]
fn prose_in_the_last_reply_is_a_finish_with_its_limit() {
    let (script, outcome, detail) = end_of(wanted(one_turn()), after_a_turn(vec![prose("so far")]));
    let text = "so far".into();
    let finished = Outcome::Finished(TurnFinish::AssistantMessage { text });
    assert_eq!((outcome, detail), (finished, reached()));
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
fn the_last_reply_has_no_tools() {
    let mut out = Vec::new();
    let now = Timestamp::default();
    let mut machine = Loop::start(wanted(one_turn()), now, &mut out);
    for input in after_a_turn(Vec::new()) {
        machine.on(now, input, &mut out);
    }
    let asked: Vec<(u32, bool)> = out
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { turn_index, tools } => Some((*turn_index, *tools)),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [(0, true), (1, false)]);
}

// proves: LASH-21, C-4
#[test]
fn anything_but_prose_in_the_last_reply_is_the_limit() {
    let lasts = [
        calls(&["b"]),
        answer(Vec::new(), ModelStop::EndTurn, None),
        answer(Vec::new(), ModelStop::Length, None),
        failed(FaultKind::Network),
    ];
    for last in lasts {
        let what = format!("{last:?}");
        let (script, outcome, detail) = end_of(wanted(one_turn()), after_a_turn(vec![last]));
        assert_eq!(outcome, Outcome::Stopped(TurnStop::MaxTurns), "{what}");
        assert_eq!(detail, reached(), "{what}");
        let record = script.recorder.into_record().unwrap();
        assert_eq!(record.turns.len(), 2, "{what}");
        crate::oracle::check_history(&record.messages).unwrap();
    }
}

// proves: LASH-21, C-4, TURN-70
#[test]
fn there_is_none_unless_wanted_and_none_for_other_limits() {
    let tokens = Limits {
        tokens: 13,
        ..Limits::default()
    };
    let duration = Limits {
        duration: Duration::from_secs(3),
        ..Limits::default()
    };
    for (spec, kind) in [
        (spec(one_turn()), LimitKind::Turns),
        (wanted(tokens), LimitKind::Tokens),
        (wanted(duration), LimitKind::Duration),
    ] {
        let (script, outcome, detail) = end_of(spec, after_a_turn(Vec::new()));
        assert_eq!(outcome, Outcome::Stopped(TurnStop::MaxTurns));
        assert!(
            matches!(detail, Some(Detail::Limit { kind: of, .. }) if of == kind),
            "{detail:?}"
        );
        assert_eq!(script.recorder.into_record().unwrap().turns.len(), 1);
    }
}
