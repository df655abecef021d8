//! Cancels: the two tiers, the limit in mid-turn, and the loss of the lane (section 6.5).

use super::fixture::prompt;
use super::script::{Script, allow, asking, calls, ended, prose, text, verdict};
use crate::{FailureKind, Input, ToolEnvelope, Verdict};

const CANCELLED: &str = "> commit loop ends Stopped(Cancelled)";

/// What is said after `before`, on the inputs of `then`.
fn after(before: Vec<Input>, then: Vec<Input>) -> Vec<String> {
    let mut script = Script::start(prompt());
    script.feed_all(before);
    script.lines();
    script.feed_all(then);
    script.lines()
}

/// C-34, ACP-51: the text that was shown stays, the unfinished call does not.
// proves: ACP-51, LASH-87, LASH-88, LASH-90, R1, R5, D-16, C-34
#[test]
fn cancel_while_the_model_answers() {
    let args = Input::Delta(crate::ModelDelta::ToolCallArgs {
        block: 1,
        name: "tool".to_owned(),
        fragment: "{\"pa".to_owned(),
    });
    let before = vec![text(0, "let "), text(0, "me"), args];
    let lines = after(before, vec![Input::Cancel, prose("late"), Input::Committed]);
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

/// ACP-50, ACP-52: a question is taken back, and every call still gets its result.
// proves: ACP-52, LASH-87, R1, R2
#[test]
fn cancel_while_a_person_is_asked() {
    let before = vec![calls(&["a", "b"]), asking("a")];
    let lines = after(before, vec![Input::Cancel, allow("a")]);
    let expected = [
        "> withdraw a",
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

/// PERM-4: the answer `cancelled` is a cancel of the prompt, not a refusal of the call.
// proves: ACP-50
#[test]
fn a_person_may_cancel_instead_of_answering() {
    let then = vec![verdict("a", Verdict::Cancelled)];
    let lines = after(vec![calls(&["a"]), asking("a")], then);
    assert_eq!(lines[..2], ["a Cancelled", "a begins, runs false"]);
    assert_eq!(lines.last().unwrap(), CANCELLED);
}

/// ACP-53, ACP-54: a running call is asked first; what it still says is kept, and the outcome is cancelled.
// proves: ACP-51, ACP-53, LASH-87
#[test]
fn a_tool_that_stops_in_time_keeps_its_result() {
    let stopped = ToolEnvelope::failed(FailureKind::Cancelled, "stopped half-way");
    let printed = Input::Printed {
        call_id: "a".into(),
        text: "last".to_owned(),
    };
    let then = vec![
        Input::Cancel,
        printed,
        ended("a", stopped),
        Input::GraceOver,
    ];
    let lines = after(vec![calls(&["a"]), allow("a")], then);
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

/// R1, R2, LASH-15: what does not stop is killed, and its bracket closed for it.
// proves: LASH-15, R1, R2, R5
#[test]
fn a_tool_that_does_not_stop_is_killed() {
    let late = ended("a", ToolEnvelope::text("late"));
    let lines = after(
        vec![calls(&["a"]), allow("a"), Input::Cancel],
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

/// UP-1: time that runs out in mid-turn stops like a cancel, but says so; a cancel still outranks it.
// proves: TURN-69
#[test]
fn time_up_in_mid_turn() {
    let before = || vec![calls(&["a"]), allow("a"), Input::TimeUp];
    let lines = after(before(), vec![Input::GraceOver]);
    assert_eq!(lines[..2], ["> abort a", "a ends Cancelled"]);
    let notice = "s.cfg.1.m3 system: [Agent stopped: Max duration reached (4s/600s)]";
    assert_eq!(lines[6..], [notice, "> commit loop ends Stopped(MaxTurns)"]);
    let lines = after(before(), vec![Input::Cancel, Input::GraceOver]);
    assert_eq!(lines.last().unwrap(), CANCELLED);
}

/// LASH-35, S8: without the lane everything stops at once, and nothing is stored.
// proves: LASH-35
#[test]
fn the_lane_is_lost() {
    let lost = "> lost LaneLost".to_owned();
    let running = vec![calls(&["a"]), allow("a")];
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
fn the_commit_decision_seals_the_outcome() {
    let late = vec![
        Input::Cancel,
        Input::TimeUp,
        Input::LaneLost,
        Input::GraceOver,
    ];
    let lines = after(vec![prose("done")], [late, vec![Input::Committed]].concat());
    let end = "loop ends Finished(AssistantMessage { text: \"done\" })";
    assert_eq!(lines, [format!("publish {end}"), "> done".to_owned()]);
}
