//! Tests of calls that a running call requests (LASH-71).

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, parallel_calls, permission_requested, steer, text_answer, tool_ended,
    verdict,
};
use crate::{
    CallAnnouncement, Event, EventKind, Input, ToolCall, ToolEnvelope, Verdict,
    oracle::check_stored, recover_interrupted_loops,
};

fn nested(parent: &str, ids: &[&str], parallel: bool) -> Input {
    let call = |id: &&str| ToolCall::new(*id, "tool", serde_json::Value::Null);
    let known = CallAnnouncement {
        is_parallel: parallel,
        ..CallAnnouncement::default()
    };
    Input::NestedCalls {
        parent: parent.into(),
        calls: ids.iter().map(call).collect(),
        announced: vec![known; ids.len()],
    }
}

fn done(id: &str) -> Input {
    tool_ended(id, ToolEnvelope::text(id))
}

fn with_running_call() -> LoopHarness {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(parallel_calls(&["a", "b"], &[]));
    script.feed(allow("a"));
    script.lines();
    script
}

/// Nested calls are judged one at a time, run side by side, and return together, in call order, to the call that
/// requested them; the next call of the model waits.
// proves: LASH-71, C-6
#[test]
fn nested_calls_return_to_their_parent() {
    let mut script = with_running_call();
    script.feed_all([nested("a", &["a.0", "a.1"], true), allow("a.0")]);
    script.feed_all([
        permission_requested("a.1"),
        verdict("a.1", Verdict::Deny("no".to_owned())),
    ]);
    script.feed_all([done("a.0"), done("a")]);
    let expected = [
        "a.0 requested: ",
        "a.1 requested: ",
        "> gate a.0",
        "a.0 begins, runs true",
        "> run a.0",
        "> gate a.1",
        "a.1 asked",
        "a.1 Deny(\"no\")",
        "a.1 begins, runs false",
        "a.1 ends Denied",
        "a.0 ends Executed",
        "> results a a.0, Denied",
        "a ends Executed",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error false: a",
        "> gate b",
    ];
    assert_eq!(script.lines(), expected);
}

/// Effects of nested calls come before those of the call that requested them, since they ended first. The keys name
/// loop, call and place.
// proves: JIDO-76
#[test]
fn requested_effects_have_order_and_keys() {
    let with_effects = |id: &str, effects: &[u32]| {
        let effects = effects.iter().map(|number| serde_json::json!(number));
        let envelope = ToolEnvelope {
            effects: effects.collect(),
            ..ToolEnvelope::text(id)
        };
        tool_ended(id, envelope)
    };
    let mut script = with_running_call();
    script.feed_all([nested("a", &["a.0"], false), allow("a.0")]);
    script.feed_all([with_effects("a.0", &[7]), with_effects("a", &[8, 9])]);
    script.feed_all([allow("b"), done("b"), text_answer("done")]);
    script.feed(Input::Committed);
    let record = script.recorder.into_record().unwrap();
    let effects = record.requested_effects().map(|it| {
        let effect = it.effect.as_u64().unwrap();
        (it.key, it.tool_name.to_owned(), effect)
    });
    let expected = [
        ("s.cfg.1/a.0/0", "tool", 7),
        ("s.cfg.1/a/0", "tool-a", 8),
        ("s.cfg.1/a/1", "tool-a", 9),
    ];
    let expected = expected.map(|(key, tool, effect)| (key.to_owned(), tool.to_owned(), effect));
    assert_eq!(effects.collect::<Vec<_>>(), expected);
}

/// A call that ends takes its nested calls along.
#[test]
fn end_of_parent_ends_nested_calls() {
    let mut script = with_running_call();
    script.feed_all([nested("a", &["a.0", "a.1"], false), allow("a.0")]);
    script.feed_all([nested("a.0", &["a.0.0"], false), allow("a.0.0")]);
    script.lines();
    script.feed(done("a"));
    let lines = script.lines();
    let ends: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains("ends") || line.starts_with("> abort"))
        .collect();
    let expected = [
        "> abort a.0.0",
        "a.0.0 ends Cancelled",
        "> abort a.0",
        "a.0 ends Cancelled",
        "a.1 ends Cancelled",
        "a ends Executed",
    ];
    assert_eq!(ends, expected, "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("> results")));
}

/// A new message of the user comes before nested calls that have not begun.
// proves: UP-5
#[test]
fn steering_skips_nested_calls() {
    let mut script = with_running_call();
    script.feed_all([
        nested("a", &["a.0", "a.1"], false),
        allow("a.0"),
        steer("stop that"),
    ]);
    script.lines();
    script.feed(done("a.0"));
    assert!(
        script
            .lines()
            .contains(&"> results a a.0, Skipped".to_owned())
    );
}

/// Calls of a call that runs beside others are refused: permission is decided for one call at a time.
#[test]
fn parallel_calls_have_no_nested_calls() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(parallel_calls(&["a", "b"], &["a", "b"]));
    script.feed_all([allow("a"), allow("b")]);
    script.lines();
    script.feed(nested("a", &["a.0"], false));
    assert_eq!(script.lines(), ["> results a Skipped"]);
    // A call that does not run gets nothing.
    script.feed(nested("absent", &["x"], false));
    assert!(script.lines().is_empty());
}

/// Whatever part of the events survives a crash, the recovered stream follows the grammar: nested calls are closed before
/// their parents.
// proves: S5, LASH-71
#[test]
fn recovery_closes_nested_calls_before_their_parents() {
    let mut script = with_running_call();
    script.feed_all([nested("a", &["a.0", "a.1"], false), allow("a.0")]);
    script.feed_all([
        nested("a.0", &["a.0.0", "a.0.1"], true),
        allow("a.0.0"),
        allow("a.0.1"),
    ]);
    script.feed_all([done("a.0.1"), done("a.0.0"), done("a.0")]);
    script.feed_all([
        permission_requested("a.1"),
        allow("a.1"),
        done("a.1"),
        done("a"),
    ]);
    let events = script.published_events.clone();
    for count in 1..=events.len() {
        let record = recover_interrupted_loops(&[&events[..count]])
            .pop()
            .unwrap();
        check_stored(&record.events).unwrap_or_else(|error| panic!("after {count}: {error}"));
    }
    let count = events.iter().filter(|event| is_end(event)).count();
    assert_eq!(count, 5);
}

fn is_end(event: &Event) -> bool {
    matches!(event.kind, EventKind::ToolExecutionEnd { .. })
}
