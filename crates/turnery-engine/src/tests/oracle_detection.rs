//! Tests of the oracle itself, with streams that are wrong in one place.

use super::fixtures::{prompt_spec, spec_with_limits};
use super::harness::{
    LoopHarness, allow, calls_answer, child_usage, compaction_result, control_envelope, follow_up,
    hook_continue, hook_stop, model_failed, model_retried, parallel_calls, permission_requested,
    steer, text_answer, text_delta, tool_ended, tool_output, verdict,
};
use crate::{
    CallId, ContextBudget, ContextSize, ContinuationKind, Event, EventKind, HookSet, Input, Limits,
    LoopSpec, ModelErrorKind, ToolControl, ToolEnvelope, Usage, Verdict, oracle,
};
use serde_json::json;

fn run(spec: LoopSpec, inputs: impl IntoIterator<Item = Input>) -> Vec<Event> {
    let mut script = LoopHarness::start(spec);
    script.feed_all(inputs).feed(Input::Committed);
    assert!(script.machine.is_over(), "{:?}", script.lines());
    script.published_events
}

fn full_context_spec() -> LoopSpec {
    let context = ContextBudget {
        size: ContextSize {
            tokens: 95,
            messages: 1,
        },
        window: Some(100),
        compact_at: 90,
    };
    LoopSpec {
        context,
        ..prompt_spec()
    }
}

/// Returns one stream of each kind, with a name.
fn streams() -> Vec<(&'static str, Vec<Event>)> {
    let denied = || verdict("b", Verdict::Deny("no".to_owned()));
    let asked = [
        text_delta(0, "x"),
        calls_answer(&["a", "b"]),
        permission_requested("a"),
        allow("a"),
    ];
    let asked = asked.into_iter().chain([
        tool_output("a", "out"),
        tool_ended("a", ToolEnvelope::text("r")),
        denied(),
        text_answer("done"),
    ]);
    let beside = [
        parallel_calls(&["a", "b", "c"], &["a", "b", "c"]),
        allow("a"),
        permission_requested("b"),
        tool_output("a", "1"),
        allow("b"),
        child_usage("b", "child", None, Usage::default()),
        tool_ended("b", ToolEnvelope::text("r")),
        allow("c"),
        tool_ended("a", control_envelope("x", ToolControl::Submit(json!(1)))),
        tool_ended("c", ToolEnvelope::text("r")),
    ];
    let overflow = [
        model_retried(),
        model_failed(ModelErrorKind::ContextOverflow),
        compaction_result(true, ContextSize::default(), None),
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", control_envelope("x", ToolControl::Finish(json!(1)))),
    ];
    let mut roomy = full_context_spec();
    roomy.context.size.tokens = 1;
    let hooks = HookSet {
        input: true,
        ..HookSet::default()
    };
    let filtered = || LoopSpec {
        hooks,
        ..prompt_spec()
    };
    let limited = LoopSpec {
        forced_reply: true,
        ..spec_with_limits(Limits {
            turns: 1,
            ..Limits::default()
        })
    };
    let heard = [
        hook_continue(),
        steer("rude"),
        follow_up("then"),
        text_answer("a"),
        hook_stop("rude"),
        hook_continue(),
        text_answer("b"),
    ];
    let pass = LoopSpec {
        continuation_kind: ContinuationKind::Compaction,
        input: Vec::new(),
        ..full_context_spec()
    };
    let done = || tool_ended("a", ToolEnvelope::text("r"));
    vec![
        ("asked", run(prompt_spec(), asked)),
        ("beside", run(prompt_spec(), beside)),
        ("overflow", run(roomy, overflow)),
        (
            "full",
            run(
                full_context_spec(),
                [
                    compaction_result(false, ContextSize::default(), None),
                    text_answer("a"),
                ],
            ),
        ),
        ("rejected", run(filtered(), [hook_stop("rude")])),
        ("heard", run(filtered(), heard)),
        (
            "limited",
            run(
                limited,
                [calls_answer(&["a"]), allow("a"), done(), text_answer("a")],
            ),
        ),
        (
            "pass",
            run(
                pass,
                [compaction_result(true, ContextSize::default(), None)],
            ),
        ),
        (
            "failed",
            run(prompt_spec(), [model_failed(ModelErrorKind::Auth)]),
        ),
        (
            "cancelled",
            run(prompt_spec(), [calls_answer(&["a"]), Input::Cancel]),
        ),
    ]
}

fn renumber(events: &mut [Event]) {
    for (seq, event) in (0..).zip(events) {
        event.seq = seq;
    }
}

/// Returns true for events that may be absent or repeated.
fn is_optional(event: &Event) -> bool {
    match event.kind {
        EventKind::Delta { .. }
        | EventKind::ToolExecutionUpdate { .. }
        | EventKind::ToolExecutionOutput { .. }
        | EventKind::ToolProgress { .. }
        | EventKind::ChildUsageReported { .. }
        | EventKind::PlanUpdated { .. }
        | EventKind::ModelRetried { .. }
        | EventKind::ModelSilent { .. }
        | EventKind::Issue { .. } => true,
        // A rejected steering message is optional; a rejected prompt is not.
        EventKind::InputRejected { ref reason } => reason == "rude" && event.seq > 3,
        EventKind::LoopStart { .. }
        | EventKind::TurnStart { .. }
        | EventKind::CompactionStarted { .. }
        | EventKind::CompactionEnded { .. }
        | EventKind::MessageStart { .. }
        | EventKind::MessageEnd { .. }
        | EventKind::UsageReported { .. }
        | EventKind::ToolCallRequested { .. }
        | EventKind::PermissionRequested { .. }
        | EventKind::PermissionResolved { .. }
        | EventKind::ToolExecutionStart { .. }
        | EventKind::ToolExecutionEnd { .. }
        | EventKind::FinalValue { .. }
        | EventKind::ToolValue { .. }
        | EventKind::TurnEnd { .. }
        | EventKind::ParallelStart { .. }
        | EventKind::ParallelEnd { .. }
        | EventKind::LoopEnd { .. } => false,
    }
}

/// Returns the call of an event of a started call, and whether the event starts it.
fn call_of_event(event: &Event) -> Option<(&CallId, bool)> {
    match &event.kind {
        EventKind::PermissionRequested { call_id, .. }
        | EventKind::ToolExecutionStart { call_id, .. } => Some((call_id, true)),
        EventKind::PermissionResolved { call_id, .. }
        | EventKind::ToolExecutionOutput { call_id, .. }
        | EventKind::ChildUsageReported { call_id, .. }
        | EventKind::ToolExecutionEnd { call_id, .. } => Some((call_id, false)),
        _ => None,
    }
}

/// R3: events of two parallel calls may be swapped, except for their start events.
fn can_swap(one: &Event, other: &Event) -> bool {
    match (call_of_event(one), call_of_event(other)) {
        (Some((a, opens)), Some((b, also_opens))) => a != b && !(opens && also_opens),
        _ => false,
    }
}

#[test]
fn every_missing_event_is_detected() {
    for (name, whole) in streams() {
        assert_eq!(oracle::check_live(&whole), Ok(()), "{name}");
        // A lost loop has no `LoopEnd`, which is not a violation (R4).
        for missing in 0..whole.len() - 1 {
            let mut cut = whole.clone();
            let event = cut.remove(missing);
            renumber(&mut cut);
            let verdict = oracle::check_live(&cut);
            assert_eq!(
                verdict.is_ok(),
                is_optional(&event),
                "{name} without {event:?}"
            );
        }
    }
}

#[test]
fn every_duplicated_event_is_detected() {
    for (name, whole) in streams() {
        for doubled in 0..whole.len() {
            let mut long = whole.clone();
            let event = long[doubled].clone();
            long.insert(doubled, event.clone());
            renumber(&mut long);
            let verdict = oracle::check_live(&long);
            assert_eq!(
                verdict.is_ok(),
                is_optional(&event),
                "{name}, twice {event:?}"
            );
        }
    }
}

/// R1 to R3: only events of parallel calls may be swapped.
// proves: R3
#[test]
fn every_swapped_event_is_detected() {
    for (name, whole) in streams() {
        for first in 0..whole.len() - 1 {
            let mut swapped = whole.clone();
            swapped.swap(first, first + 1);
            let may = can_swap(&swapped[first], &swapped[first + 1]);
            renumber(&mut swapped);
            let verdict = oracle::check_live(&swapped);
            assert_eq!(
                verdict.is_ok(),
                may,
                "{name}: {:?}",
                &swapped[first..=first + 1]
            );
        }
    }
}

// proves: TURN-40
#[test]
fn every_wrong_tool_name_is_detected() {
    for (name, whole) in streams() {
        for at in 0..whole.len() {
            let mut events = whole.clone();
            match &mut events[at].kind {
                EventKind::ToolExecutionStart { tool_name, .. }
                | EventKind::ToolExecutionEnd { tool_name, .. } => *tool_name = "other".to_owned(),
                _ => continue,
            }
            assert!(oracle::check_live(&events).is_err(), "{name}: {at}");
        }
    }
}

/// LOOP-80: a gap violates the rules of a live stream, but not of a stored one.
#[test]
fn gaps_are_allowed_in_stored_streams_only() {
    for (name, mut events) in streams() {
        let before = events.len();
        events.retain(|event| !is_optional(event));
        assert_eq!(oracle::check_stored(&events), Ok(()), "{name}");
        let gaps = events.len() < before;
        assert_eq!(oracle::check_live(&events).is_err(), gaps, "{name}");
    }
}

/// An outcome taken from another stream is detected.
// proves: C-2, LASH-119
#[test]
fn every_wrong_outcome_is_detected() {
    let streams = streams();
    for (name, whole) in &streams {
        for (other, foreign) in &streams {
            let (Some(end), Some(theirs)) = (whole.last(), foreign.last()) else {
                panic!("{name} or {other} is empty");
            };
            let EventKind::LoopEnd { usage, .. } = end.kind else {
                panic!("{name} does not end");
            };
            let mut forged = theirs.clone();
            if let EventKind::LoopEnd { usage: spent, .. } = &mut forged.kind {
                *spent = usage;
            }
            (forged.seq, forged.at) = (end.seq, end.at);
            let mut events = whole.clone();
            let last = events.len() - 1;
            events[last] = forged;
            // A cancel may come after any event, and any text is a valid final text.
            let prose = ["asked", "full", "heard", "limited", "pass"];
            let may = name == other
                || *other == "cancelled"
                || (prose.contains(name) && prose.contains(other));
            let verdict = oracle::check_live(&events);
            assert_eq!(
                verdict.is_ok(),
                may,
                "{name} that ends as {other}: {verdict:?}"
            );
        }
    }
}
