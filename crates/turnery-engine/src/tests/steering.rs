//! Tests of user messages that arrive while a loop runs: delivered in the next turn, and never lost.

use super::fixtures::{prompt_spec, spec_with_limits};
use super::harness::{
    LoopHarness, allow, calls_answer, follow_up, hook_continue, model_failed, steer, text_answer,
    text_delta, tool_ended,
};
use crate::{HookSet, Input, Limits, LoopSpec, MessageId, ModelErrorKind, QueueMode, ToolEnvelope};

/// Returns the lines produced by the inputs `then`, after `before`.
fn after(spec: LoopSpec, before: Vec<Input>, then: Vec<Input>) -> Vec<String> {
    let mut script = LoopHarness::start(spec);
    script.feed_all(before);
    script.lines();
    script.feed_all(then);
    script.lines()
}

/// UP-5: calls that have not started are skipped, each with start, end and result.
// proves: UP-5, TURN-19, TURN-29, TURN-31, TURN-33, TURN-34, LOOP-91, R2
#[test]
fn steering_skips_calls_not_started() {
    let before = vec![
        calls_answer(&["a", "b", "c"]),
        allow("a"),
        steer("stop that"),
    ];
    let lines = after(
        prompt_spec(),
        before,
        vec![tool_ended("a", ToolEnvelope::text("x"))],
    );
    let why = "skipped: a new message of the user came first; read it, then call again if need be";
    let expected = [
        "a ends Executed".to_owned(),
        "s.cfg.1.m2 begins".to_owned(),
        "s.cfg.1.m2 result a error false: x".to_owned(),
        "b begins, runs false".to_owned(),
        "b ends Skipped".to_owned(),
        "s.cfg.1.m3 begins".to_owned(),
        format!("s.cfg.1.m3 result b error true: {why}"),
        "c begins, runs false".to_owned(),
        "c ends Skipped".to_owned(),
        "s.cfg.1.m4 begins".to_owned(),
        format!("s.cfg.1.m4 result c error true: {why}"),
        "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\", \"s.cfg.1.m4\"]".to_owned(),
        "turn begins Continuation".to_owned(),
        "s.cfg.1.m5 begins".to_owned(),
        "s.cfg.1.m5 user: stop that".to_owned(),
        "> call model 1".to_owned(),
    ];
    assert_eq!(lines, expected);
}

/// A call with a pending permission has started and is not skipped. Nothing is delivered during a response.
// proves: UP-5
#[test]
fn steering_waits_for_running_calls() {
    let mut script = LoopHarness::start(prompt_spec());
    script.lines();
    script.feed_all([text_delta(0, "x"), steer("one"), text_delta(0, "y")]);
    assert_eq!(script.lines(), ["s.cfg.1.m1 begins", "delta 0", "delta 0"]);
    script.feed(calls_answer(&["a"]));
    let skipped = script.lines();
    assert!(
        skipped.contains(&"a ends Skipped".to_owned()),
        "{skipped:?}"
    );
    script.feed_all([calls_answer(&["b"]), steer("two")]);
    script.lines();
    script.feed(allow("b"));
    assert_eq!(script.lines(), ["b begins, runs true", "> run b"]);
}

/// Messages that arrive while the filter checks the prompt are delivered with it, in the first turn.
// proves: UP-5
#[test]
fn steering_is_delivered_in_first_turn() {
    let hooks = HookSet {
        input: true,
        ..HookSet::default()
    };
    let spec = LoopSpec {
        hooks,
        ..prompt_spec()
    };
    let then = vec![hook_continue(), hook_continue()];
    let lines = after(spec, vec![steer("in French")], then);
    let expected = [
        "> hook input in French",
        "turn begins User",
        "s.cfg.1.m0 begins",
        "s.cfg.1.m0 user: hello",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 user: in French",
        "> call model 0",
    ];
    assert_eq!(lines, expected);
}

/// TURN-67: steering continues a loop that would have finished, before any follow-up.
// proves: TURN-67, UP-6, LOOP-90, TURN-29, TURN-32, TURN-33
#[test]
fn queued_input_is_delivered_before_finish() {
    let waiting = vec![follow_up("then that"), steer("first this")];
    let lines = after(
        prompt_spec(),
        waiting,
        vec![text_answer("a"), text_answer("b"), text_answer("c")],
    );
    let heard: Vec<&String> = lines.iter().filter(|line| line.contains("user")).collect();
    assert_eq!(
        heard,
        ["s.cfg.1.m2 user: first this", "s.cfg.1.m4 user: then that"]
    );
    let begins = |line: &String| line.starts_with("turn begins");
    let turns: Vec<&[String]> = lines.split(begins).skip(1).collect();
    let starts: Vec<&[String]> = turns.iter().map(|turn| &turn[..2]).collect();
    let expected = [
        ["s.cfg.1.m2 begins", "s.cfg.1.m2 user: first this"],
        ["s.cfg.1.m4 begins", "s.cfg.1.m4 user: then that"],
    ];
    assert_eq!(starts, expected);
    let begun = "turn begins Continuation".to_owned();
    assert_eq!(lines.iter().filter(|line| **line == begun).count(), 2);
    let end = "> commit loop ends Finished(AssistantMessage { text: \"c\" })";
    assert_eq!(lines.last().unwrap(), end);
}

/// UP-5: one at a time, or all at once; each is an input of the turn that it causes.
// proves: UP-5, TURN-31, TURN-32, LOOP-90, TURN-2
#[test]
fn queue_mode_takes_one_or_all() {
    let inputs_by_turn = |mode| {
        let spec = LoopSpec {
            steering: mode,
            follow_ups: mode,
            ..prompt_spec()
        };
        let waiting = vec![steer("1"), steer("2"), follow_up("3"), follow_up("4")];
        let answers = vec![
            text_answer("a"),
            text_answer("b"),
            text_answer("c"),
            text_answer("d"),
            text_answer("e"),
        ];
        let mut script = LoopHarness::start(spec);
        script.feed_all(waiting).feed_all(answers);
        let record = script.recorder.into_record().unwrap();
        let text_of = |id: &MessageId| {
            let mut messages = record.messages.iter();
            let message = messages.find(|message| message.message_id == *id).unwrap();
            format!("{id} {}", message.message.text())
        };
        let turns = record.turns.iter();
        let inputs = turns.map(|turn| turn.input_messages.iter().map(text_of).collect());
        inputs.collect::<Vec<Vec<String>>>()
    };
    let one_by_one: &[&[&str]] = &[
        &["s.cfg.1.m0 hello"],
        &["s.cfg.1.m2 1"],
        &["s.cfg.1.m4 2"],
        &["s.cfg.1.m6 3"],
        &["s.cfg.1.m8 4"],
    ];
    assert_eq!(inputs_by_turn(QueueMode::OneAtATime), one_by_one);
    let at_once: &[&[&str]] = &[
        &["s.cfg.1.m0 hello"],
        &["s.cfg.1.m2 1", "s.cfg.1.m3 2"],
        &["s.cfg.1.m5 3", "s.cfg.1.m6 4"],
    ];
    assert_eq!(inputs_by_turn(QueueMode::All), at_once);
}

/// After a failure, a limit or a cancel, queued messages are returned.
// proves: C-4, TURN-70
#[test]
fn undelivered_input_is_returned() {
    let limits = Limits {
        turns: 1,
        ..Limits::default()
    };
    let ends = [
        (
            model_failed(ModelErrorKind::Network),
            "Stopped(ProviderError)",
        ),
        (Input::Cancel, "Stopped(Cancelled)"),
        (calls_answer(&["a"]), "Stopped(MaxTurns)"),
        (
            text_answer("x"),
            "Finished(AssistantMessage { text: \"x\" })",
        ),
    ];
    for (end, outcome) in ends {
        let waiting = vec![follow_up("later"), steer("now")];
        let lines = after(spec_with_limits(limits), waiting, vec![end]);
        let expected = [
            "> return undelivered now".to_owned(),
            "> return undelivered later".to_owned(),
            format!("> commit loop ends {outcome}"),
        ];
        assert_eq!(lines[lines.len() - 3..], expected);
    }
}

/// Once the loop is sealed, lost or over, messages are returned at once.
#[test]
fn late_input_is_returned() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(text_answer("done"));
    script.lines();
    script.feed(steer("one"));
    assert_eq!(script.lines(), ["> return undelivered one"]);
    script.feed(Input::Committed);
    script.lines();
    script.feed_all([steer("two"), follow_up("three")]);
    assert_eq!(
        script.lines(),
        ["> return undelivered two", "> return undelivered three"]
    );
    let lines = after(prompt_spec(), vec![steer("x")], vec![Input::LaneLost]);
    let expected = ["> return undelivered x", "> lost LaneLost"];
    assert_eq!(lines[lines.len() - 2..], expected);
}
