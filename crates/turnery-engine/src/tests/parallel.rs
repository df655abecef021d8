//! Parallel: calls that may run beside each other do, and are told in call order (C-6, R3).

use super::fixture::prompt;
use super::script::{
    Script, allow, asking, ended, go, parallel_calls, printed, prose, steer, verdict,
};
use crate::{FailureKind, HookSet, Input, LoopSpec, Message, ToolEnvelope, Verdict};

fn done(id: &str) -> Input {
    ended(id, ToolEnvelope::text(id))
}

fn begun(spec: LoopSpec, ids: &[&str], beside: &[&str]) -> Script {
    let mut script = Script::start(spec);
    script.feed(parallel_calls(ids, beside));
    script.lines();
    script
}

/// Gates one after the other; starts in call order; ends as they come; results in call order.
// proves: R3, UP-20, C-6
#[test]
fn safe_calls_run_beside_each_other() {
    let mut script = begun(prompt(), &["a", "b", "c"], &["a", "b"]);
    script.feed_all([allow("a"), asking("b"), printed("a", "1"), allow("b")]);
    script.feed_all([printed("b", "2"), printed("a", "3"), done("b"), done("a")]);
    script.feed_all([allow("c"), done("c")]);
    let expected = [
        "a begins, runs true",
        "> run a",
        "> gate b",
        "b asked",
        "a prints 1",
        "b Allow",
        "b begins, runs true",
        "> run b",
        "b prints 2",
        "a prints 3",
        "b ends Executed",
        "a ends Executed",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error false: a",
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 result b error false: b",
        "> gate c",
        "c begins, runs true",
        "> run c",
        "c ends Executed",
        "s.cfg.1.m4 begins",
        "s.cfg.1.m4 result c error false: c",
        "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\", \"s.cfg.1.m4\"]",
    ];
    assert_eq!(script.lines()[..23], expected);
    script.feed_all([prose("x"), Input::Committed]);
    script.lines();
}

/// JIDO-47: a call that may not run beside others waits for all before it, and holds up all after it.
// proves: C-6, JIDO-47
#[test]
fn other_calls_run_alone() {
    let mut script = begun(prompt(), &["a", "b", "c"], &["a", "c"]);
    script.feed(allow("a"));
    assert_eq!(script.lines(), ["a begins, runs true", "> run a"]);
    script.feed(done("a"));
    assert_eq!(script.lines().last().unwrap(), "> gate b");
    script.feed(allow("b"));
    assert_eq!(script.lines(), ["b begins, runs true", "> run b"]);
}

/// No more than so many at the same time.
#[test]
fn there_is_a_most() {
    let spec = LoopSpec {
        parallel: 2,
        ..prompt()
    };
    let ids = ["a", "b", "c"];
    let mut script = begun(spec, &ids, &ids);
    script.feed_all([allow("a"), allow("b")]);
    assert_eq!(script.lines().last().unwrap(), "> run b");
    script.feed(done("b"));
    assert_eq!(script.lines(), ["b ends Executed", "> gate c"]);
}

/// A refusal closes its own bracket; what runs beside it goes on.
#[test]
fn a_refused_call_stops_no_other() {
    let mut script = begun(prompt(), &["a", "b"], &["a", "b"]);
    let denied = Verdict::Deny("no".to_owned());
    script.feed_all([allow("a"), verdict("b", denied)]);
    let expected = [
        "a begins, runs true",
        "> run a",
        "> gate b",
        "b begins, runs false",
        "b ends Denied",
    ];
    assert_eq!(script.lines(), expected);
    script.feed_all([printed("a", "x"), done("a")]);
    let lines = script.lines();
    assert_eq!(lines[..2], ["a prints x", "a ends Executed"]);
    assert_eq!(lines[5], "s.cfg.1.m3 result b error true: no");
}

/// ACP-51, R1: a cancel reaches all that run, in both tiers, and every call gets its result.
// proves: ACP-51, R1, R2
#[test]
fn a_cancel_reaches_all() {
    let ids = ["a", "b", "c", "d"];
    let mut script = begun(prompt(), &ids, &ids);
    script.feed_all([allow("a"), allow("b"), asking("c")]);
    script.lines();
    let stopped = ToolEnvelope::failed(FailureKind::Cancelled, "stopped");
    script.feed_all([Input::Cancel, ended("b", stopped), Input::GraceOver]);
    let lines = script.lines();
    let expected = [
        "> withdraw c",
        "c Cancelled",
        "c begins, runs false",
        "c ends Cancelled",
        "> stop a",
        "> stop b",
        "> grace",
        "b ends Cancelled",
        "> abort a",
        "a ends Cancelled",
    ];
    assert_eq!(lines[..10], expected);
    let end = "> commit loop ends Stopped(Cancelled)";
    assert_eq!(lines.last().unwrap(), end);
    let results = script
        .messages()
        .iter()
        .filter_map(|it| match &it.message {
            Message::ToolResult { call_id, .. } => Some(call_id.to_string()),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => None,
        })
        .collect::<Vec<_>>();
    assert_eq!(results, ids);
}

/// Cancelled instead of answered: the calls beside it are stopped too.
// proves: ACP-50
#[test]
fn an_answer_that_cancels_reaches_all() {
    let mut script = begun(prompt(), &["a", "b"], &["a", "b"]);
    script.feed_all([allow("a"), asking("b")]);
    script.lines();
    script.feed(verdict("b", Verdict::Cancelled));
    let expected = [
        "b Cancelled",
        "b begins, runs false",
        "b ends Cancelled",
        "> stop a",
        "> grace",
    ];
    assert_eq!(script.lines(), expected);
}

/// Steering lets run what runs, and skips the rest.
// proves: UP-5
#[test]
fn steering_waits_for_all_that_run() {
    let ids = ["a", "b", "c"];
    let spec = LoopSpec {
        parallel: 2,
        ..prompt()
    };
    let mut script = begun(spec, &ids, &ids);
    script.feed_all([allow("a"), allow("b"), steer("stop")]);
    script.lines();
    script.feed(done("b"));
    assert_eq!(script.lines(), ["b ends Executed"]);
    script.feed(done("a"));
    let lines = script.lines();
    assert_eq!(lines[5..7], ["c begins, runs false", "c ends Skipped"]);
}

/// One hook at a time, also when calls run beside each other.
#[test]
fn hooks_of_calls_are_asked_one_at_a_time() {
    let hooks = HookSet {
        before_tool: true,
        after_tool: true,
        ..HookSet::default()
    };
    let spec = LoopSpec { hooks, ..prompt() };
    let mut script = begun(spec, &["a", "b"], &["a", "b"]);
    script.feed_all([allow("a"), go(), allow("b"), done("a"), go()]);
    let expected = [
        "> hook before tool a",
        "a begins, runs true",
        "> run a",
        "> gate b",
        "> hook before tool b",
        "a ends Executed",
        "b begins, runs true",
        "> run b",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error false: a",
        "> hook after tool a",
    ];
    assert_eq!(script.lines(), expected);
    script.feed_all([done("b"), go(), go()]);
    let lines = script.lines();
    assert_eq!(lines[..2], ["b ends Executed", "s.cfg.1.m3 begins"]);
    assert_eq!(lines[3], "> hook after tool b");
    assert_eq!(lines[4], "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\"]");
}
