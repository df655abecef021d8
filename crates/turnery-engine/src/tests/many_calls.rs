//! Tests that the work for a response with many calls is linear in their number.

use super::fixtures::spec_with_limits;
use crate::{
    CallAnnouncement, Content, Effect, EventKind, Input, Limits, Loop, LoopFinish, ModelStop,
    Outcome, Response, ResponseLimits, TextValue, Timestamp, ToolCall, ToolEnvelope, TurnStop,
    Verdict, recover_interrupted_loops, visits::visit_count,
};

fn many(count: usize) -> Input {
    let call = |at| {
        Content::ToolCall(ToolCall::new(
            format!("c{at}"),
            "tool",
            serde_json::Value::Null,
        ))
    };
    let response = Response {
        content: (0..count).map(call).collect(),
        stop: ModelStop::ToolUse,
        raw_stop: None,
        usage: None,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        tool_results: Vec::new(),
        request: None,
    };
    let parallel = CallAnnouncement {
        is_parallel: true,
        ..CallAnnouncement::default()
    };
    let calls = vec![parallel; count];
    Input::ModelAnswered {
        response,
        calls,
        value: TextValue::Absent,
    }
}

fn start() -> Loop {
    let limits = Limits {
        response: ResponseLimits {
            bytes: u64::MAX,
            calls: u64::MAX,
        },
        ..Limits::default()
    };
    Loop::start(
        spec_with_limits(limits),
        Timestamp::default(),
        &mut Vec::new(),
    )
}

/// Feeds inputs; returns the number of call accesses and the effects.
fn feed(machine: &mut Loop, inputs: Vec<Input>) -> (u64, Vec<Effect>) {
    let before = visit_count();
    let mut out = Vec::new();
    for input in inputs {
        machine.handle_input(Timestamp::default(), input, &mut out);
    }
    (visit_count() - before, out)
}

fn ended(at: usize) -> Input {
    Input::ToolEnded {
        call_id: format!("c{at}").into(),
        envelope: ToolEnvelope::text("x"),
    }
}

fn allow(at: usize) -> Input {
    Input::Verdict {
        call_id: format!("c{at}").into(),
        verdict: Verdict::Allow,
    }
}

/// Returns the call accesses when a prompt is cancelled while the first of `count` calls runs.
fn visits_of_cancel(count: usize) -> u64 {
    let mut machine = start();
    let inputs = vec![
        many(count),
        allow(0),
        Input::Cancel,
        ended(0),
        Input::Committed,
    ];
    let (visits, out) = feed(&mut machine, inputs);
    let closed = |effect: &&Effect| match effect {
        Effect::Emit(event) => matches!(event.kind, EventKind::ToolExecutionEnd { .. }),
        _ => false,
    };
    assert_eq!(out.iter().filter(closed).count(), count);
    assert!(matches!(
        out.last(),
        Some(Effect::Finish(LoopFinish::Committed {
            outcome: Outcome::Stopped(TurnStop::Cancelled),
            ..
        }))
    ));
    visits
}

/// Returns the call accesses when all of `count` calls run to their end.
fn visits_of_running(count: usize) -> u64 {
    let mut machine = start();
    let mut inputs = vec![many(count)];
    for at in 0..count {
        inputs.extend([allow(at), ended(at)]);
    }
    feed(&mut machine, inputs).0
}

// proves: ACP-51
#[test]
fn cancel_of_many_calls_is_linear() {
    let (few, many) = (visits_of_cancel(500), visits_of_cancel(5_000));
    assert!(many <= few * 11, "{few} looks became {many}");
}

#[test]
fn running_many_calls_is_linear() {
    let (few, many) = (visits_of_running(500), visits_of_running(5_000));
    assert!(many <= few * 11, "{few} looks became {many}");
}

/// Returns the call accesses when the journal of a turn with `count` calls is closed, half of which have run.
fn visits_of_closing(count: usize) -> u64 {
    let mut out = Vec::new();
    let limits = Limits {
        response: ResponseLimits {
            bytes: u64::MAX,
            calls: u64::MAX,
        },
        ..Limits::default()
    };
    let mut machine = Loop::start(spec_with_limits(limits), Timestamp::default(), &mut out);
    let mut inputs = vec![many(count)];
    for at in 0..count / 2 {
        inputs.extend([allow(at), ended(at)]);
    }
    out.extend(feed(&mut machine, inputs).1);
    let journal: Vec<_> = out
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        })
        .collect();
    let before = visit_count();
    let record = recover_interrupted_loops(&[journal])
        .pop()
        .expect("the journal begins with a loop");
    let results = &record
        .turns
        .last()
        .expect("the loop has a turn")
        .tool_results;
    assert_eq!(results.len(), count);
    visit_count() - before
}

#[test]
fn closing_a_journal_of_many_calls_is_linear() {
    let (few, many) = (visits_of_closing(500), visits_of_closing(5_000));
    assert!(many <= few * 11, "{few} looks became {many}");
}
