//! Tests of the order of events in a prompt with tools.

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, calls_answer, permission_requested, text_answer, text_delta, tool_ended,
    verdict,
};
use crate::{
    CallDetail, Input, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, ToolErrorKind, Verdict,
};

/// TURN-2, 8, 16, 18, 29, 33 to 35, 39 to 43, 47, 49, 56, 57, 59, 67; ACP-22; ACP-32; JIDO-47; C-25; R2.
// proves: TURN-16, TURN-18, TURN-29, TURN-33, TURN-35, TURN-39, TURN-41, TURN-43, TURN-46, TURN-47
// proves: TURN-49, TURN-50, TURN-56, TURN-57, TURN-59, ACP-22, ACP-32, R1, R2, C-25, TURN-67, TURN-2
#[test]
fn prompt_with_tools_emits_events_in_order() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([
        text_delta(0, "let "),
        text_delta(0, "me "),
        text_delta(1, "see"),
        calls_answer(&["a", "b", "c"]),
        permission_requested("a"),
        allow("a"),
        Input::ToolOutput {
            call_id: "a".into(),
            text: "out".to_owned(),
        },
        Input::ToolUpdate {
            call_id: "a".into(),
            detail: CallDetail::default(),
        },
        Input::ToolProgress {
            call_id: "a".into(),
            text: "half way".to_owned(),
        },
        Input::PlanUpdated {
            call_id: "a".into(),
            entries: vec![PlanEntry {
                content: "one".to_owned(),
                priority: PlanPriority::High,
                status: PlanStatus::Pending,
            }],
        },
        tool_ended("a", ToolEnvelope::text("42")),
        verdict("b", Verdict::Deny("not allowed here".to_owned())),
        tool_ended(
            "c",
            ToolEnvelope::failed(ToolErrorKind::NotFound, "no such tool"),
        ),
        text_answer("done"),
        Input::Committed,
    ]);
    let expected = [
        "loop begins",
        "turn begins User",
        "s.cfg.1.m0 begins",
        "s.cfg.1.m0 user: hello",
        "> call model 0",
        "s.cfg.1.m1 begins",
        "delta 0",
        "delta 0",
        "delta 1",
        "s.cfg.1.m1 assistant ToolUse: ",
        "usage Some(13) of 13",
        "a requested: Use tool-a",
        "b requested: Use tool-b",
        "c requested: Use tool-c",
        "> gate a",
        "a asked",
        "a Allow",
        "a begins, runs true",
        "> run a",
        "a prints out",
        "a shows",
        "a says half way",
        "plan of 1",
        "a ends Executed",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error false: 42",
        "> gate b",
        "b begins, runs false",
        "b ends Denied",
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 result b error true: not allowed here",
        "> gate c",
        "c begins, runs false",
        "c ends NotFound",
        "s.cfg.1.m4 begins",
        "s.cfg.1.m4 result c error true: no such tool",
        "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\", \"s.cfg.1.m4\"]",
        "turn begins Continuation",
        "> call model 1",
        "s.cfg.1.m5 begins",
        "s.cfg.1.m5 assistant Stop: done",
        "usage Some(7) of 20",
        "turn ends []",
        "> commit loop ends Finished(AssistantMessage { text: \"done\" })",
        "publish loop ends Finished(AssistantMessage { text: \"done\" })",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
}

/// TURN-7, TURN-34, D-2: prompt, response and results name their turn.
// proves: TURN-7, TURN-34, TURN-47, D-2, TURN-6
#[test]
fn messages_carry_turn_id() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", ToolEnvelope::text("x")),
    ]);
    script.feed_all([text_answer("y"), Input::Committed]);
    let turns: Vec<Option<u32>> = script
        .messages()
        .iter()
        .map(|message| message.turn_id.as_ref().map(|id| id.turn_index))
        .collect();
    assert_eq!(turns, [Some(0), Some(0), Some(0), Some(1)]);
}

/// D-1, TURN-51: each fragment is shown at once, and takes its own number.
// proves: TURN-51, LOOP-79, D-1
#[test]
fn deltas_are_emitted_at_once() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(text_delta(0, "it "));
    assert_eq!(script.lines().last().unwrap(), "delta 0");
    for (seq, fragment) in [(6, "a"), (7, "b"), (8, "c")] {
        script.feed(text_delta(0, fragment));
        assert_eq!(script.lines(), ["delta 0"]);
        assert_eq!(
            script.published_events.last().map(|event| event.seq),
            Some(seq)
        );
    }
}

/// The disposition follows from the error and from whether the tool ran.
// proves: R2, C-5
#[test]
fn disposition_of_each_call_end() {
    let cases = [
        (false, ToolErrorKind::NotFound, "a ends NotFound"),
        (false, ToolErrorKind::Validation, "a ends Invalid"),
        (false, ToolErrorKind::Denied, "a ends Denied"),
        (false, ToolErrorKind::Skipped, "a ends Skipped"),
        (true, ToolErrorKind::Timeout, "a ends TimedOut"),
        (true, ToolErrorKind::Exception, "a ends Executed"),
        (true, ToolErrorKind::ExecutionError, "a ends Executed"),
    ];
    for (runs, kind, line) in cases {
        let mut script = LoopHarness::start(prompt_spec());
        script.feed(calls_answer(&["a"]));
        if runs {
            script.feed(allow("a"));
        }
        script.feed(tool_ended("a", ToolEnvelope::failed(kind, "why")));
        let lines = script.lines();
        assert!(lines.contains(&line.to_owned()), "{kind:?}: {lines:?}");
        let result = "s.cfg.1.m2 result a error true: why".to_owned();
        assert!(lines.contains(&result), "C-5: fed back to the model");
    }
}
