//! Judged: the oracle itself is put to the test with streams that are wrong in one place.

use super::fixture::{prompt, spec};
use super::script::{
    Script, allow, asking, calls, deciding, ended, failed, follow_up, go, no, parallel_calls,
    printed, prose, steer, text, verdict,
};
use crate::{
    CallId, ChildUsage, CompactionBlock, Context, ContextSize, ContinuationKind, Event, EventKind,
    FaultKind, HookSet, Input, Limits, LoopSpec, ModelFault, Timestamp, ToolControl, ToolEnvelope,
    Usage, Verdict, oracle,
};
use serde_json::json;

fn run(spec: LoopSpec, inputs: impl IntoIterator<Item = Input>) -> Vec<Event> {
    let mut script = Script::start(spec);
    script.feed_all(inputs).feed(Input::Committed);
    assert!(script.machine.is_over(), "{:?}", script.lines());
    script.shown
}

fn compacted(block: bool) -> Input {
    let whole = CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: Vec::new(),
        keep_recent: Vec::new(),
        through: "s.cfg.0.m0".into(),
        created_at: Timestamp::default(),
    };
    Input::Compacted {
        block: block.then_some(whole).ok_or_else(|| "no".to_owned()),
        after: ContextSize::default(),
        usage: None,
    }
}

fn full() -> LoopSpec {
    let context = Context {
        size: ContextSize {
            tokens: 95,
            messages: 1,
        },
        window: Some(100),
        compact_at: 90,
    };
    LoopSpec {
        context,
        ..prompt()
    }
}

fn spent(id: &str) -> Input {
    Input::ChildSpent {
        call_id: id.into(),
        child: ChildUsage {
            session_id: "child".into(),
            source: "subagent".to_owned(),
            model: "p/m".to_owned(),
            iteration: 0,
            usage: None,
            cumulative: Usage::default(),
        },
    }
}

fn retried() -> Input {
    Input::Retried {
        attempt: 1,
        fault: ModelFault {
            kind: FaultKind::Network,
            message: "reset".to_owned(),
            status: None,
            retry_after: None,
        },
        wait_ms: 1,
    }
}

/// One stream of each sort that there is, with a name.
fn streams() -> Vec<(&'static str, Vec<Event>)> {
    let denied = || verdict("b", Verdict::Deny("no".to_owned()));
    let asked = [text(0, "x"), calls(&["a", "b"]), asking("a"), allow("a")];
    let asked = asked.into_iter().chain([
        printed("a", "out"),
        ended("a", ToolEnvelope::text("r")),
        denied(),
        prose("done"),
    ]);
    let beside = [
        parallel_calls(&["a", "b", "c"], &["a", "b", "c"]),
        allow("a"),
        asking("b"),
        printed("a", "1"),
        allow("b"),
        spent("b"),
        ended("b", ToolEnvelope::text("r")),
        allow("c"),
        ended("a", deciding("x", ToolControl::Submit(json!(1)))),
        ended("c", ToolEnvelope::text("r")),
    ];
    let overflow = [
        retried(),
        failed(FaultKind::ContextOverflow),
        compacted(true),
        calls(&["a"]),
        allow("a"),
        ended("a", deciding("x", ToolControl::Finish(json!(1)))),
    ];
    let mut roomy = full();
    roomy.context.size.tokens = 1;
    let hooks = HookSet {
        input: true,
        ..HookSet::default()
    };
    let filtered = || LoopSpec { hooks, ..prompt() };
    let limited = LoopSpec {
        forced_reply: true,
        ..spec(Limits {
            turns: 1,
            ..Limits::default()
        })
    };
    let heard = [
        go(),
        steer("rude"),
        follow_up("then"),
        prose("a"),
        no("rude"),
        go(),
        prose("b"),
    ];
    let pass = LoopSpec {
        continuation_kind: ContinuationKind::Compaction,
        input: Vec::new(),
        ..full()
    };
    let done = || ended("a", ToolEnvelope::text("r"));
    vec![
        ("asked", run(prompt(), asked)),
        ("beside", run(prompt(), beside)),
        ("overflow", run(roomy, overflow)),
        ("full", run(full(), [compacted(false), prose("a")])),
        ("rejected", run(filtered(), [no("rude")])),
        ("heard", run(filtered(), heard)),
        (
            "limited",
            run(limited, [calls(&["a"]), allow("a"), done(), prose("a")]),
        ),
        ("pass", run(pass, [compacted(true)])),
        ("failed", run(prompt(), [failed(FaultKind::Auth)])),
        ("cancelled", run(prompt(), [calls(&["a"]), Input::Cancel])),
    ]
}

fn renumber(events: &mut [Event]) {
    for (seq, event) in (0..).zip(events) {
        event.seq = seq;
    }
}

/// Events that may be there any number of times.
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
        // A refused steering is as if it had never been said; a refused prompt is not.
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

/// The call that an event is about, once its bracket may be open, and whether it opens it.
fn of_call(event: &Event) -> Option<(&CallId, bool)> {
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

/// R3: what two calls beside each other say may change places, but for their beginnings.
fn may_swap(one: &Event, other: &Event) -> bool {
    match (of_call(one), of_call(other)) {
        (Some((a, opens)), Some((b, also_opens))) => a != b && !(opens && also_opens),
        _ => false,
    }
}

#[test]
fn every_missing_event_is_noticed() {
    for (name, whole) in streams() {
        assert_eq!(oracle::check(&whole), Ok(()), "{name}");
        // A loop that was lost has no LoopEnd, and that is no fault (R4).
        for missing in 0..whole.len() - 1 {
            let mut cut = whole.clone();
            let event = cut.remove(missing);
            renumber(&mut cut);
            let verdict = oracle::check(&cut);
            assert_eq!(
                verdict.is_ok(),
                is_optional(&event),
                "{name} without {event:?}"
            );
        }
    }
}

#[test]
fn every_doubled_event_is_noticed() {
    for (name, whole) in streams() {
        for doubled in 0..whole.len() {
            let mut long = whole.clone();
            let event = long[doubled].clone();
            long.insert(doubled, event.clone());
            renumber(&mut long);
            let verdict = oracle::check(&long);
            assert_eq!(
                verdict.is_ok(),
                is_optional(&event),
                "{name}, twice {event:?}"
            );
        }
    }
}

/// R1 to R3: only what calls beside each other say may change places.
// proves: R3
#[test]
fn every_swap_is_noticed() {
    for (name, whole) in streams() {
        for first in 0..whole.len() - 1 {
            let mut swapped = whole.clone();
            swapped.swap(first, first + 1);
            let may = may_swap(&swapped[first], &swapped[first + 1]);
            renumber(&mut swapped);
            let verdict = oracle::check(&swapped);
            assert_eq!(
                verdict.is_ok(),
                may,
                "{name}: {:?}",
                &swapped[first..=first + 1]
            );
        }
    }
}

/// LOOP-80: a gap is a fault in a live stream and none in a stored one.
#[test]
fn gaps_are_for_stored_streams() {
    for (name, mut events) in streams() {
        let before = events.len();
        events.retain(|event| !is_optional(event));
        assert_eq!(oracle::check_stored(&events), Ok(()), "{name}");
        let gaps = events.len() < before;
        assert_eq!(oracle::check(&events).is_err(), gaps, "{name}");
    }
}

/// What a loop did not do, it cannot end with: an outcome of another stream is noticed.
// proves: C-2, LASH-119
#[test]
fn every_foreign_outcome_is_noticed() {
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
            // A cancel may come after anything, and prose is prose, whatever it says.
            let prose = ["asked", "full", "heard", "limited", "pass"];
            let may = name == other
                || *other == "cancelled"
                || (prose.contains(name) && prose.contains(other));
            let verdict = oracle::check(&events);
            assert_eq!(
                verdict.is_ok(),
                may,
                "{name} that ends as {other}: {verdict:?}"
            );
        }
    }
}
