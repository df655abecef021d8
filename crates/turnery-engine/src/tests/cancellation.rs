//! Tests of cancellation in two tiers, of time limits during a turn, and of losing the session.

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, calls_answer, permission_requested, text_answer, text_delta, tool_ended,
    verdict,
};
use crate::{Input, ToolEnvelope, ToolErrorKind, Verdict};

const CANCELLED: &str = "> commit loop ends Stopped(Cancelled)";

/// Returns the lines produced by the inputs `then`, after `before`.
fn after(before: Vec<Input>, then: Vec<Input>) -> Vec<String> {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all(before);
    script.lines();
    script.feed_all(then);
    script.lines()
}

/// C-34, ACP-51: text already shown stays, the unfinished call does not.
// proves: ACP-51, LASH-87, LASH-88, LASH-90, R1, R5, D-16, C-34
#[test]
fn cancel_while_the_model_answers() {
    let args = Input::ModelDelta(crate::ModelDelta::ToolCallArgs {
        block: 1,
        name: "tool".to_owned(),
        fragment: "{\"pa".to_owned(),
    });
    let before = vec![text_delta(0, "let "), text_delta(0, "me"), args];
    let lines = after(
        before,
        vec![Input::Cancel, text_answer("late"), Input::Committed],
    );
    let expected = [
        "> stop model",
        "s.cfg.1.m1 assistant Aborted: let me",
        "usage None of 0",
        "turn ends []",
        CANCELLED,
        "publish loop ends Stopped(Cancelled)",
        "> done",
    ];
    assert_eq!(lines, expected);
}

/// ACP-50, ACP-52: a pending permission request is cancelled, and every call still gets its result.
// proves: ACP-52, LASH-87, R1, R2
#[test]
fn cancel_while_permission_is_pending() {
    let before = vec![calls_answer(&["a", "b"]), permission_requested("a")];
    let lines = after(before, vec![Input::Cancel, allow("a")]);
    let expected = [
        "> cancel gate a",
        "a Cancelled",
        "a begins, runs false",
        "a ends Cancelled",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error true: cancelled: the prompt was cancelled before this call ran",
        "b begins, runs false",
        "b ends Cancelled",
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 result b error true: cancelled: the prompt was cancelled before this call ran",
        "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\"]",
        CANCELLED,
    ];
    assert_eq!(lines, expected);
}

/// PERM-4: the verdict `cancelled` cancels the prompt; it does not deny the call.
// proves: ACP-50
#[test]
fn permission_answer_can_cancel_prompt() {
    let then = vec![verdict("a", Verdict::Cancelled)];
    let lines = after(vec![calls_answer(&["a"]), permission_requested("a")], then);
    assert_eq!(lines[..2], ["a Cancelled", "a begins, runs false"]);
    assert_eq!(lines.last().unwrap(), CANCELLED);
}

/// ACP-53, ACP-54: a running call is first requested to stop; its further output is kept, and the outcome is
/// cancelled.
// proves: ACP-51, ACP-53, LASH-87
#[test]
fn tool_stopped_within_grace_keeps_result() {
    let stopped = ToolEnvelope::failed(ToolErrorKind::Cancelled, "stopped half-way");
    let printed = Input::ToolOutput {
        call_id: "a".into(),
        text: "last".to_owned(),
    };
    let then = vec![
        Input::Cancel,
        printed,
        tool_ended("a", stopped),
        Input::GraceOver,
    ];
    let lines = after(vec![calls_answer(&["a"]), allow("a")], then);
    let expected = [
        "> stop a",
        "> grace",
        "a prints last",
        "a ends Cancelled",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error true: stopped half-way",
        "turn ends [\"s.cfg.1.m2\"]",
        CANCELLED,
    ];
    assert_eq!(lines, expected);
}

/// R1, R2, LASH-15: a call that does not stop is killed, and gets its end event.
// proves: LASH-15, R1, R2, R5
#[test]
fn tool_running_after_grace_is_aborted() {
    let late = tool_ended("a", ToolEnvelope::text("late"));
    let lines = after(
        vec![calls_answer(&["a"]), allow("a"), Input::Cancel],
        vec![Input::GraceOver, late],
    );
    let expected = [
        "> abort a",
        "a ends Cancelled",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error true: cancelled: the prompt was cancelled while this call ran; part of its work may be done",
        "turn ends [\"s.cfg.1.m2\"]",
        CANCELLED,
    ];
    assert_eq!(lines, expected);
}

/// UP-1: reaching the time limit during a turn stops the loop like a cancel, but reports the limit; a cancel
/// still outranks it.
// proves: TURN-69
#[test]
fn time_limit_during_turn() {
    let before = || vec![calls_answer(&["a"]), allow("a"), Input::TimeUp];
    let lines = after(before(), vec![Input::GraceOver]);
    assert_eq!(lines[..2], ["> abort a", "a ends Cancelled"]);
    let notice = "s.cfg.1.m3 system: [Agent stopped: Max duration reached (4s/600s)]";
    assert_eq!(lines[6..], [notice, "> commit loop ends Stopped(MaxTurns)"]);
    let lines = after(before(), vec![Input::Cancel, Input::GraceOver]);
    assert_eq!(lines.last().unwrap(), CANCELLED);
}

/// LASH-35, S8: after losing the session everything stops at once, and nothing is stored.
// proves: LASH-35
#[test]
fn lost_lane_finishes_without_commit() {
    let lost = "> lost LaneLost".to_owned();
    let running = vec![calls_answer(&["a"]), allow("a")];
    let lines = after(running.clone(), vec![Input::LaneLost]);
    assert_eq!(lines[..3], ["> stop a", "> abort a", "a ends Cancelled"]);
    assert_eq!(lines.last(), Some(&lost));
    let lines = after(
        [running, vec![Input::Cancel]].concat(),
        vec![Input::LaneLost],
    );
    assert_eq!(lines[..2], ["> abort a", "a ends Cancelled"]);
    assert_eq!(lines.last(), Some(&lost));
    let lines = after(Vec::new(), vec![Input::LaneLost]);
    assert_eq!(lines.first().unwrap(), "> stop model");
    assert_eq!(lines.last(), Some(&lost));
}

/// Section 6.5: a cancel after the commit decision changes nothing; one before it has won.
// proves: R4, C-11
#[test]
fn cancel_after_commit_effect_changes_nothing() {
    let late = vec![
        Input::Cancel,
        Input::TimeUp,
        Input::LaneLost,
        Input::GraceOver,
    ];
    let lines = after(
        vec![text_answer("done")],
        [late, vec![Input::Committed]].concat(),
    );
    let end = "loop ends Finished(AssistantMessage { text: \"done\" })";
    assert_eq!(lines, [format!("publish {end}"), "> done".to_owned()]);
}
