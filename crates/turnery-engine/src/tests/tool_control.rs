//! Tests of tools that decide about their loop: the stream and the outcome.

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, calls_answer, control_envelope, follow_up, parallel_calls, tool_ended,
};
use crate::{
    HookSet, HookVerdict, Input, LoopFinish, LoopSpec, Outcome, ToolControl, ToolEnvelope,
    ToolErrorKind, TurnFinish, TurnStop,
};
use serde_json::json;

fn decided(control: ToolControl) -> (Vec<String>, Outcome) {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([calls_answer(&["a"]), allow("a")]);
    script.lines();
    script.feed(tool_ended("a", control_envelope("told", control)));
    script.feed(Input::Committed);
    let lines = script.lines();
    match script.finish {
        Some(LoopFinish::Committed { outcome, .. }) => (lines, outcome),
        other => panic!("not done: {other:?}"),
    }
}

/// Rows 2 and 3: the value is shown inside the turn, once, and is the outcome.
// proves: LASH-6, LASH-7, LASH-10, LASH-11, LASH-63, LASH-64, LASH-119, UP-21
#[test]
fn final_value_is_event_and_outcome() {
    let value = json!({"answer": 42});
    let (lines, outcome) = decided(ToolControl::Submit(value.clone()));
    assert_eq!(
        lines[3..5],
        ["value {\"answer\":42}", "turn ends [\"s.cfg.1.m2\"]"]
    );
    let finish = TurnFinish::FinalValue {
        value: value.clone(),
    };
    assert_eq!(outcome, Outcome::Finished(finish, None));
    let (lines, outcome) = decided(ToolControl::Finish(value.clone()));
    let shown = "tool-a has {\"answer\":42}";
    assert_eq!(lines[3..5], [shown, "turn ends [\"s.cfg.1.m2\"]"]);
    let tool_name = "tool-a".to_owned();
    let finish = TurnFinish::ToolValue { tool_name, value };
    assert_eq!(outcome, Outcome::Finished(finish, None));
}

/// Rows 14 and 15: an error for the host; nothing was final, so no value is shown.
// proves: LASH-26, LASH-27, LASH-14
#[test]
fn submitted_error_stops_loop() {
    let value = json!("quota");
    let (lines, outcome) = decided(ToolControl::SubmitError(value.clone()));
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    let stop = TurnStop::SubmittedError {
        value: value.clone(),
    };
    assert_eq!(outcome, Outcome::Stopped(stop));
    let (lines, outcome) = decided(ToolControl::FailWith(value.clone()));
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    let tool_name = "tool-a".to_owned();
    let stop = TurnStop::ToolError { tool_name, value };
    assert_eq!(outcome, Outcome::Stopped(stop));
}

/// Row 10: only a tool with `Fail` stops the loop; the model handles any other error.
// proves: LASH-22, C-5, UP-21
#[test]
fn tool_error_stops_loop_only_with_fail_control() {
    let failure = || ToolEnvelope::failed(ToolErrorKind::ExecutionError, "no disk");
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([calls_answer(&["a"]), allow("a"), tool_ended("a", failure())]);
    assert_eq!(script.lines().last().unwrap(), "> call model 1");
    let mut script = LoopHarness::start(prompt_spec());
    let fatal = ToolEnvelope {
        control: Some(Box::new(ToolControl::Fail)),
        ..failure()
    };
    script.feed_all([calls_answer(&["a"]), allow("a"), tool_ended("a", fatal)]);
    script.feed(Input::Committed);
    script.lines();
    let Some(LoopFinish::Committed { outcome, .. }) = script.finish else {
        panic!("not done");
    };
    let message = "tool-a: no disk".to_owned();
    assert_eq!(outcome, Outcome::Stopped(TurnStop::ToolFailure { message }));
}

/// Row 4: the frame's id follows from the loop's own, so a replay opens the same.
// proves: LASH-12, UP-21
#[test]
fn frame_switch_opens_frame() {
    let task = "write the tests".to_owned();
    let (lines, outcome) = decided(ToolControl::SwitchFrame { task: task.clone() });
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    let frame_id = "s.cfg.1.f".to_owned();
    assert_eq!(outcome, Outcome::FrameSwitch { frame_id, task });
}

/// A frame switch that is not allowed is a failure of the loop, reported and recorded as such.
// proves: UP-31, LASH-24, C-28
#[test]
fn disallowed_frame_switch_is_runtime_error() {
    let hooks = HookSet {
        on_error: true,
        ..HookSet::default()
    };
    let mut script = LoopHarness::start(LoopSpec {
        can_switch_frame: false,
        hooks,
        ..prompt_spec()
    });
    script.feed_all([calls_answer(&["a"]), allow("a")]);
    script.lines();
    let task = "write the tests".to_owned();
    script.feed(tool_ended(
        "a",
        control_envelope("told", ToolControl::SwitchFrame { task }),
    ));
    script.feed_all([Input::HookAnswered(HookVerdict::Continue), Input::Committed]);
    let why =
        "tool-a: this prompt has opened as many frames as one may; send another prompt to go on";
    assert_eq!(
        script.lines()[3..6],
        [
            format!("> hook error {why}"),
            "turn ends [\"s.cfg.1.m2\"]".to_owned(),
            "> commit loop ends Stopped(RuntimeError)".to_owned(),
        ]
    );
    let record = script.recorder.into_record().unwrap();
    let message = why.to_owned();
    let stop = TurnStop::RuntimeError { message };
    assert_eq!(record.outcome, Some(Outcome::Stopped(stop)));
    assert_eq!(record.turns.len(), 1);
}

/// All calls of the turn end first; the first in call order decides, whichever ended first.
#[test]
fn first_control_in_call_order_wins() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([
        parallel_calls(&["a", "b"], &["a", "b"]),
        allow("a"),
        allow("b"),
    ]);
    script.lines();
    let control = |n: u32| ToolControl::Submit(json!(n));
    script.feed_all([
        tool_ended("b", control_envelope("x", control(2))),
        tool_ended("a", control_envelope("y", control(1))),
    ]);
    let lines = script.lines();
    assert_eq!(lines[6], "value 1");
    let end = "> commit loop ends Finished(FinalValue { value: Number(1) })";
    assert_eq!(lines.last().unwrap(), end);
}

/// A decision is final: queued messages are returned. A cancel before the commit still wins, also after the value was
/// shown.
// proves: ACP-52, LASH-14
#[test]
fn control_is_final_unless_cancelled() {
    let control = || ToolControl::Submit(json!(1));
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([follow_up("and then"), calls_answer(&["a"]), allow("a")]);
    script.feed(tool_ended("a", control_envelope("x", control())));
    let lines = script.lines();
    assert_eq!(lines[lines.len() - 2], "> return undelivered and then");
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([calls_answer(&["a"]), allow("a"), Input::Cancel]);
    script.lines();
    script.feed(tool_ended("a", control_envelope("x", control())));
    let lines = script.lines();
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    assert_eq!(lines[4], "> commit loop ends Stopped(Cancelled)");
    let hooks = HookSet {
        after_turn: true,
        ..HookSet::default()
    };
    let mut script = LoopHarness::start(LoopSpec {
        hooks,
        ..prompt_spec()
    });
    script.feed_all([calls_answer(&["a"]), allow("a")]);
    script.feed(tool_ended("a", control_envelope("x", control())));
    assert!(script.lines().contains(&"value 1".to_owned()));
    script.feed_all([Input::Cancel, Input::HookAnswered(HookVerdict::Continue)]);
    let lines = script.lines();
    let end = "> commit loop ends Stopped(Cancelled)";
    assert_eq!(lines.last().unwrap(), end);
}
