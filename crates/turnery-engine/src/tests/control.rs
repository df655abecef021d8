//! Control: a tool that decides about its loop, and what the stream and the outcome say of it.

use super::fixture::prompt;
use super::script::{Script, allow, calls, deciding, ended, follow_up, parallel_calls};
use crate::{
    Detail, FailureKind, Finish, HookSet, HookVerdict, Input, LoopSpec, Outcome, ToolControl,
    ToolEnvelope, TurnFinish, TurnStop,
};
use serde_json::json;

fn decided(control: ToolControl) -> (Vec<String>, Outcome, Option<Detail>) {
    let mut script = Script::start(prompt());
    script.feed_all([calls(&["a"]), allow("a")]);
    script.lines();
    script.feed(ended("a", deciding("told", control)));
    script.feed(Input::Committed);
    let lines = script.lines();
    match script.finish {
        Some(Finish::Done {
            outcome, detail, ..
        }) => (lines, outcome, detail),
        other => panic!("not done: {other:?}"),
    }
}

/// Rows 2 and 3: the value is shown inside the turn, once, and is the outcome.
// proves: LASH-6, LASH-7, LASH-10, LASH-11, LASH-63, LASH-64, LASH-119, UP-21
#[test]
fn a_value_is_shown_and_is_the_outcome() {
    let value = json!({"answer": 42});
    let (lines, outcome, _) = decided(ToolControl::Submit(value.clone()));
    assert_eq!(
        lines[3..5],
        ["value {\"answer\":42}", "turn ends [\"s.cfg.1.m2\"]"]
    );
    let finish = TurnFinish::FinalValue {
        value: value.clone(),
    };
    assert_eq!(outcome, Outcome::Finished(finish));
    let (lines, outcome, _) = decided(ToolControl::Finish(value.clone()));
    let shown = "tool-a has {\"answer\":42}";
    assert_eq!(lines[3..5], [shown, "turn ends [\"s.cfg.1.m2\"]"]);
    let tool_name = "tool-a".to_owned();
    let finish = TurnFinish::ToolValue { tool_name, value };
    assert_eq!(outcome, Outcome::Finished(finish));
}

/// Rows 14 and 15: an error for the host; nothing was final, so no value is shown.
// proves: LASH-26, LASH-27
#[test]
fn a_submitted_error_stops_the_loop() {
    let value = json!("quota");
    let (lines, outcome, _) = decided(ToolControl::SubmitError(value.clone()));
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    let stop = TurnStop::SubmittedError {
        value: value.clone(),
    };
    assert_eq!(outcome, Outcome::Stopped(stop));
    let (_, outcome, _) = decided(ToolControl::FailWith(value.clone()));
    let tool_name = "tool-a".to_owned();
    let stop = TurnStop::ToolError { tool_name, value };
    assert_eq!(outcome, Outcome::Stopped(stop));
}

/// Row 10: only a tool that says so stops the loop; any other failure is the model's to mend.
// proves: LASH-22, C-5, UP-21
#[test]
fn a_failure_stops_the_loop_only_when_it_says_so() {
    let failure = || ToolEnvelope::failed(FailureKind::ExecutionError, "no disk");
    let mut script = Script::start(prompt());
    script.feed_all([calls(&["a"]), allow("a"), ended("a", failure())]);
    assert_eq!(script.lines().last().unwrap(), "> call model 1");
    let mut script = Script::start(prompt());
    let fatal = ToolEnvelope {
        control: Some(Box::new(ToolControl::Fail)),
        ..failure()
    };
    script.feed_all([calls(&["a"]), allow("a"), ended("a", fatal)]);
    script.feed(Input::Committed);
    script.lines();
    let Some(Finish::Done {
        outcome, detail, ..
    }) = script.finish
    else {
        panic!("not done");
    };
    assert_eq!(outcome, Outcome::Stopped(TurnStop::ToolFailure));
    let message = "tool-a: no disk".to_owned();
    assert_eq!(detail, Some(Detail::Runtime { message }));
}

/// Row 4: the frame's id follows from the loop's own, so a replay opens the same.
// proves: LASH-12, UP-21
#[test]
fn a_switch_opens_a_frame() {
    let task = "write the tests".to_owned();
    let (lines, outcome, _) = decided(ToolControl::SwitchFrame { task: task.clone() });
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    let frame_id = "s.cfg.1.f".to_owned();
    assert_eq!(outcome, Outcome::FrameSwitch { frame_id, task });
}

/// A frame that may not be opened is a failure of the loop: it is told of, and recorded as such.
// proves: UP-31, LASH-24, C-28
#[test]
fn a_switch_that_is_not_allowed_is_a_failure() {
    let hooks = HookSet {
        on_error: true,
        ..HookSet::default()
    };
    let mut script = Script::start(LoopSpec {
        may_switch: false,
        hooks,
        ..prompt()
    });
    script.feed_all([calls(&["a"]), allow("a")]);
    script.lines();
    let task = "write the tests".to_owned();
    script.feed(ended(
        "a",
        deciding("told", ToolControl::SwitchFrame { task }),
    ));
    script.feed_all([Input::Hooked(HookVerdict::Go), Input::Committed]);
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
    assert_eq!(
        record.outcome,
        Some(Outcome::Stopped(TurnStop::RuntimeError))
    );
    let message = why.to_owned();
    assert_eq!(record.detail, Some(Detail::Runtime { message }));
    assert_eq!(record.turns.len(), 1);
}

/// All calls of the turn end first; the first in call order decides, whichever ended first.
#[test]
fn the_first_in_call_order_decides() {
    let mut script = Script::start(prompt());
    script.feed_all([
        parallel_calls(&["a", "b"], &["a", "b"]),
        allow("a"),
        allow("b"),
    ]);
    script.lines();
    let control = |n: u32| ToolControl::Submit(json!(n));
    script.feed_all([
        ended("b", deciding("x", control(2))),
        ended("a", deciding("y", control(1))),
    ]);
    let lines = script.lines();
    assert_eq!(lines[6], "value 1");
    let end = "> commit loop ends Finished(FinalValue { value: Number(1) })";
    assert_eq!(lines.last().unwrap(), end);
}

/// What is decided is decided: nobody else is heard, and a cancel seen before still wins.
// proves: ACP-52
#[test]
fn a_decision_hears_nobody_but_a_cancel() {
    let control = || ToolControl::Submit(json!(1));
    let mut script = Script::start(prompt());
    script.feed_all([follow_up("and then"), calls(&["a"]), allow("a")]);
    script.feed(ended("a", deciding("x", control())));
    let lines = script.lines();
    assert_eq!(lines[lines.len() - 2], "> unheard and then");
    let mut script = Script::start(prompt());
    script.feed_all([calls(&["a"]), allow("a"), Input::Cancel]);
    script.lines();
    script.feed(ended("a", deciding("x", control())));
    let lines = script.lines();
    assert_eq!(lines[3], "turn ends [\"s.cfg.1.m2\"]");
    assert_eq!(lines[4], "> commit loop ends Stopped(Cancelled)");
}
