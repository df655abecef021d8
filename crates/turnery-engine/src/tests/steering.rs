//! Steering: what people say while a loop runs is heard at the next turn, and nothing of it is lost.

use super::fixture::{prompt, spec};
use super::script::{Script, allow, calls, ended, failed, follow_up, go, prose, steer, text};
use crate::{FaultKind, HookSet, Input, Limits, LoopSpec, QueueMode, ToolEnvelope};

/// What is said after `before`, on the inputs of `then`.
fn after(spec: LoopSpec, before: Vec<Input>, then: Vec<Input>) -> Vec<String> {
    let mut script = Script::start(spec);
    script.feed_all(before);
    script.lines();
    script.feed_all(then);
    script.lines()
}

/// UP-5: the calls that have not begun are skipped, each with its bracket and its result.
// proves: UP-5, TURN-19, TURN-31, TURN-34, LOOP-91, R2
#[test]
fn steering_skips_the_calls_that_have_not_begun() {
    let before = vec![calls(&["a", "b", "c"]), allow("a"), steer("stop that")];
    let lines = after(prompt(), before, vec![ended("a", ToolEnvelope::text("x"))]);
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

/// A call that is being decided has begun: it is not skipped. Nor is anything heard in mid-answer.
// proves: UP-5
#[test]
fn steering_waits_for_what_has_begun() {
    let mut script = Script::start(prompt());
    script.lines();
    script.feed_all([text(0, "x"), steer("one"), text(0, "y")]);
    assert_eq!(script.lines(), ["s.cfg.1.m1 begins", "delta 0", "delta 0"]);
    script.feed(calls(&["a"]));
    let skipped = script.lines();
    assert!(
        skipped.contains(&"a ends Skipped".to_owned()),
        "{skipped:?}"
    );
    script.feed_all([calls(&["b"]), steer("two")]);
    script.lines();
    script.feed(allow("b"));
    assert_eq!(script.lines(), ["b begins, runs true", "> run b"]);
}

/// What is said while the filters still hear the prompt is heard with it, in the first turn.
// proves: UP-5
#[test]
fn steering_is_heard_at_the_start() {
    let hooks = HookSet {
        input: true,
        ..HookSet::default()
    };
    let spec = LoopSpec { hooks, ..prompt() };
    let then = vec![go(), go()];
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

/// TURN-67: steering goes on where the answer had ended the loop, before any follow-up.
// proves: TURN-67, UP-6, LOOP-90, TURN-32
#[test]
fn what_waits_is_heard_when_the_loop_would_finish() {
    let waiting = vec![follow_up("then that"), steer("first this")];
    let lines = after(prompt(), waiting, vec![prose("a"), prose("b"), prose("c")]);
    let heard: Vec<&String> = lines.iter().filter(|line| line.contains("user")).collect();
    assert_eq!(
        heard,
        ["s.cfg.1.m2 user: first this", "s.cfg.1.m4 user: then that"]
    );
    let begun = "turn begins Continuation".to_owned();
    assert_eq!(lines.iter().filter(|line| **line == begun).count(), 2);
    let end = "> commit loop ends Finished(AssistantMessage { text: \"c\" })";
    assert_eq!(lines.last().unwrap(), end);
}

/// UP-5: one at a time, or all at once.
// proves: UP-5
#[test]
fn queues_give_one_or_all() {
    let heard = |mode| {
        let spec = LoopSpec {
            steering: mode,
            follow_ups: mode,
            ..prompt()
        };
        let waiting = vec![steer("1"), steer("2"), follow_up("3"), follow_up("4")];
        let answers = vec![prose("a"), prose("b"), prose("c"), prose("d"), prose("e")];
        let lines = after(spec, waiting, answers);
        let turns = lines.split(|line| line == "turn begins Continuation");
        let user = |line: &&String| line.contains("user");
        let counts = turns.skip(1).map(|turn| turn.iter().filter(user).count());
        counts.collect::<Vec<_>>()
    };
    assert_eq!(heard(QueueMode::OneAtATime), [1, 1, 1, 1]);
    assert_eq!(heard(QueueMode::All), [2, 2]);
}

/// After a failure, a limit or a cancel nobody is heard any more: the words are given back.
// proves: C-4
#[test]
fn what_was_not_heard_is_given_back() {
    let limits = Limits {
        turns: 1,
        ..Limits::default()
    };
    let ends = [
        (failed(FaultKind::Network), "Stopped(ProviderError)"),
        (Input::Cancel, "Stopped(Cancelled)"),
        (calls(&["a"]), "Stopped(MaxTurns)"),
        (prose("x"), "Finished(AssistantMessage { text: \"x\" })"),
    ];
    for (end, outcome) in ends {
        let waiting = vec![follow_up("later"), steer("now")];
        let lines = after(spec(limits), waiting, vec![end]);
        let expected = [
            "> unheard now".to_owned(),
            "> unheard later".to_owned(),
            format!("> commit loop ends {outcome}"),
        ];
        assert_eq!(lines[lines.len() - 3..], expected);
    }
}

/// Once sealed, or lost, or over, the words come back at once.
#[test]
fn what_comes_too_late_is_given_back() {
    let mut script = Script::start(prompt());
    script.feed(prose("done"));
    script.lines();
    script.feed(steer("one"));
    assert_eq!(script.lines(), ["> unheard one"]);
    script.feed(Input::Committed);
    script.lines();
    script.feed_all([steer("two"), follow_up("three")]);
    assert_eq!(script.lines(), ["> unheard two", "> unheard three"]);
    let lines = after(prompt(), vec![steer("x")], vec![Input::LaneLost]);
    let expected = ["> unheard x", "> lost LaneLost"];
    assert_eq!(lines[lines.len() - 2..], expected);
}
