//! Turns: the order of events in a prompt that uses tools.

use super::fixture::prompt;
use super::script::{Script, allow, asking, calls, ended, prose, text, verdict};
use crate::{
    CallDetail, FailureKind, Input, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, Verdict,
};

/// TURN-2, 8, 16, 18, 29, 33 to 35, 39 to 43, 47, 49, 56, 57, 59, 67; ACP-22; ACP-32; JIDO-47; C-25; R2.
// proves: TURN-16, TURN-18, TURN-29, TURN-33, TURN-35, TURN-39, TURN-41, TURN-43, TURN-46, TURN-47
// proves: TURN-49, TURN-50, TURN-56, TURN-57, TURN-59, ACP-22, ACP-32, R1, R2, C-25
#[test]
fn a_prompt_with_tools_keeps_the_order() {
    let mut script = Script::start(prompt());
    script.feed_all([
        text(0, "let me "),
        calls(&["a", "b", "c"]),
        asking("a"),
        allow("a"),
        Input::Printed {
            call_id: "a".into(),
            text: "out".to_owned(),
        },
        Input::Shows {
            call_id: "a".into(),
            detail: CallDetail::default(),
        },
        Input::Planned {
            call_id: "a".into(),
            entries: vec![PlanEntry {
                content: "one".to_owned(),
                priority: PlanPriority::High,
                status: PlanStatus::Pending,
            }],
        },
        ended("a", ToolEnvelope::text("42")),
        verdict("b", Verdict::Deny("not allowed here".to_owned())),
        ended(
            "c",
            ToolEnvelope::failed(FailureKind::NotFound, "no such tool"),
        ),
        prose("done"),
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
        "s.cfg.1.m1 assistant ToolUse: ",
        "usage Some(13) of 13",
        "a wanted: Use tool-a",
        "b wanted: Use tool-b",
        "c wanted: Use tool-c",
        "> gate a",
        "a asked",
        "a Allow",
        "a begins, runs true",
        "> run a",
        "a prints out",
        "a shows",
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

/// TURN-7, TURN-34, D-2: prompt, answer and results all say which turn they belong to.
// proves: TURN-7, TURN-34, TURN-47, D-2
#[test]
fn every_message_of_a_turn_carries_its_id() {
    let mut script = Script::start(prompt());
    script.feed_all([
        calls(&["a"]),
        allow("a"),
        ended("a", ToolEnvelope::text("x")),
    ]);
    script.feed_all([prose("y"), Input::Committed]);
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
fn fragments_are_shown_as_they_come() {
    let mut script = Script::start(prompt());
    script.feed(text(0, "it "));
    assert_eq!(script.lines().last().unwrap(), "delta 0");
    for (seq, fragment) in [(6, "a"), (7, "b"), (8, "c")] {
        script.feed(text(0, fragment));
        assert_eq!(script.lines(), ["delta 0"]);
        assert_eq!(script.shown.last().map(|event| event.seq), Some(seq));
    }
}

/// How a call ended is told from its failure and from whether it ran.
// proves: R2, C-5
#[test]
fn dispositions() {
    let cases = [
        (false, FailureKind::NotFound, "a ends NotFound"),
        (false, FailureKind::Validation, "a ends Invalid"),
        (false, FailureKind::Denied, "a ends Denied"),
        (false, FailureKind::Skipped, "a ends Skipped"),
        (true, FailureKind::Timeout, "a ends TimedOut"),
        (true, FailureKind::Exception, "a ends Executed"),
        (true, FailureKind::ExecutionError, "a ends Executed"),
    ];
    for (runs, kind, line) in cases {
        let mut script = Script::start(prompt());
        script.feed(calls(&["a"]));
        if runs {
            script.feed(allow("a"));
        }
        script.feed(ended("a", ToolEnvelope::failed(kind, "why")));
        let lines = script.lines();
        assert!(lines.contains(&line.to_owned()), "{kind:?}: {lines:?}");
        let result = "s.cfg.1.m2 result a error true: why".to_owned();
        assert!(lines.contains(&result), "C-5: fed back to the model");
    }
}
