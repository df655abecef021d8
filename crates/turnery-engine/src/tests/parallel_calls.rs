//! Tests of parallel calls, and of their results in call order (C-6, R3).

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, hook_continue, parallel_calls, permission_requested, steer, text_answer,
    tool_ended, tool_output, verdict,
};
use crate::{HookSet, Input, LoopSpec, Message, ToolEnvelope, ToolErrorKind, Verdict};

fn tool_done(id: &str) -> Input {
    tool_ended(id, ToolEnvelope::text(id))
}

fn started_calls(spec: LoopSpec, ids: &[&str], beside: &[&str]) -> LoopHarness {
    let mut script = LoopHarness::start(spec);
    script.feed(parallel_calls(ids, beside));
    script.lines();
    script
}

/// Permissions one at a time; starts in call order; ends in any order; results in call order.
// proves: R3, UP-20, C-6
#[test]
fn parallel_calls_run_concurrently() {
    let mut script = started_calls(prompt_spec(), &["a", "b", "c"], &["a", "b"]);
    script.feed_all([
        allow("a"),
        permission_requested("b"),
        tool_output("a", "1"),
        allow("b"),
    ]);
    script.feed_all([
        tool_output("b", "2"),
        tool_output("a", "3"),
        tool_done("b"),
        tool_done("a"),
    ]);
    script.feed_all([allow("c"), tool_done("c")]);
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
    script.feed_all([text_answer("x"), Input::Committed]);
    script.lines();
}

/// JIDO-47: an exclusive call waits for all calls before it, and delays all after it.
// proves: C-6, JIDO-47
#[test]
fn exclusive_calls_run_alone() {
    let mut script = started_calls(prompt_spec(), &["a", "b", "c"], &["a", "c"]);
    script.feed(allow("a"));
    assert_eq!(script.lines(), ["a begins, runs true", "> run a"]);
    script.feed(tool_done("a"));
    assert_eq!(script.lines().last().unwrap(), "> gate b");
    script.feed(allow("b"));
    assert_eq!(script.lines(), ["b begins, runs true", "> run b"]);
}

/// At most the configured number run at the same time.
#[test]
fn parallel_calls_are_limited() {
    let spec = LoopSpec {
        max_parallel_calls: 2,
        ..prompt_spec()
    };
    let ids = ["a", "b", "c"];
    let mut script = started_calls(spec, &ids, &ids);
    script.feed_all([allow("a"), allow("b")]);
    assert_eq!(script.lines().last().unwrap(), "> run b");
    script.feed(tool_done("b"));
    assert_eq!(script.lines(), ["b ends Executed", "> gate c"]);
}

/// A denied call ends alone; parallel calls continue.
#[test]
fn refused_call_does_not_stop_others() {
    let mut script = started_calls(prompt_spec(), &["a", "b"], &["a", "b"]);
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
    script.feed_all([tool_output("a", "x"), tool_done("a")]);
    let lines = script.lines();
    assert_eq!(lines[..2], ["a prints x", "a ends Executed"]);
    assert_eq!(lines[5], "s.cfg.1.m3 result b error true: no");
}

/// ACP-51, R1: a cancel reaches all that run, in both tiers, and every call gets its result.
// proves: ACP-51, R1, R2
#[test]
fn cancel_reaches_all_running_calls() {
    let ids = ["a", "b", "c", "d"];
    let mut script = started_calls(prompt_spec(), &ids, &ids);
    script.feed_all([allow("a"), allow("b"), permission_requested("c")]);
    script.lines();
    let stopped = ToolEnvelope::failed(ToolErrorKind::Cancelled, "stopped");
    script.feed_all([Input::Cancel, tool_ended("b", stopped), Input::GraceOver]);
    let lines = script.lines();
    let expected = [
        "> cancel gate c",
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

/// A cancelling verdict also stops the parallel calls.
// proves: ACP-50
#[test]
fn cancelling_verdict_reaches_all_calls() {
    let mut script = started_calls(prompt_spec(), &["a", "b"], &["a", "b"]);
    script.feed_all([allow("a"), permission_requested("b")]);
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

/// Steering lets running calls finish, and skips the rest.
// proves: UP-5
#[test]
fn steering_waits_for_all_running_calls() {
    let ids = ["a", "b", "c"];
    let spec = LoopSpec {
        max_parallel_calls: 2,
        ..prompt_spec()
    };
    let mut script = started_calls(spec, &ids, &ids);
    script.feed_all([allow("a"), allow("b"), steer("stop")]);
    script.lines();
    script.feed(tool_done("b"));
    assert_eq!(script.lines(), ["b ends Executed"]);
    script.feed(tool_done("a"));
    let lines = script.lines();
    assert_eq!(lines[5..7], ["c begins, runs false", "c ends Skipped"]);
}

/// One hook at a time, also when calls run beside each other.
#[test]
fn call_hooks_are_asked_one_at_a_time() {
    let hooks = HookSet {
        before_tool: true,
        after_tool: true,
        ..HookSet::default()
    };
    let spec = LoopSpec {
        hooks,
        ..prompt_spec()
    };
    let mut script = started_calls(spec, &["a", "b"], &["a", "b"]);
    script.feed_all([
        allow("a"),
        hook_continue(),
        allow("b"),
        tool_done("a"),
        hook_continue(),
    ]);
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
    script.feed_all([tool_done("b"), hook_continue(), hook_continue()]);
    let lines = script.lines();
    assert_eq!(lines[..2], ["b ends Executed", "s.cfg.1.m3 begins"]);
    assert_eq!(lines[3], "> hook after tool b");
    assert_eq!(lines[4], "turn ends [\"s.cfg.1.m2\", \"s.cfg.1.m3\"]");
}
