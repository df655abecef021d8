//! Recovery: what a loop without a commit leaves behind becomes an aborted record (S5).

use turnery_engine::{
    Disposition, Event, EventKind, FailureKind, LoopRecord, Recorder, ToolCall, ToolEnvelope,
};

/// The record of a loop whose process went away, from its journal. `None` if the journal does not
/// begin with its `LoopStart` or the announcement of its group. A `LoopEnd` does not count: the commit
/// that it needs was not made (R4).
pub(crate) fn aborted(mut events: Vec<Event>) -> Option<LoopRecord> {
    events.retain(|event| {
        !matches!(
            event.kind,
            EventKind::LoopEnd { .. } | EventKind::ParallelEnd { .. }
        )
    });
    let mut recorder = Recorder::new();
    for event in events.iter().chain(&closing(&events)) {
        recorder.fold(event);
    }
    recorder.aborted()
}

/// A call that has been asked for and has not ended.
struct Open<'a> {
    call: &'a ToolCall,
    asked: &'a Event,
    started: bool,
}

/// No call looks as if it were running after a load (LOAD-7): each open one gets its end.
fn closing(events: &[Event]) -> Vec<Event> {
    let mut open: Vec<Open<'_>> = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::ToolCallRequested { call, .. } => open.push(Open {
                call,
                asked: event,
                started: false,
            }),
            EventKind::ToolExecutionStart { call_id, .. } => {
                let started = open.iter_mut().find(|open| open.call.call_id == *call_id);
                if let Some(open) = started {
                    open.started = true;
                }
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                open.retain(|open| open.call.call_id != *call_id);
            }
            EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta { .. }
            | EventKind::MessageEnd { .. }
            | EventKind::UsageReported { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::Issue { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::LoopEnd { .. } => {}
        }
    }
    let Some(last) = events.last() else {
        return Vec::new();
    };
    let kinds = open.iter().flat_map(|open| {
        let bracket = (!open.started).then(|| start_of(open.call));
        let both = bracket.into_iter().chain([end_of(open.call)]);
        both.map(|kind| (open.asked.turn_index, kind))
    });
    (last.seq + 1..)
        .zip(kinds)
        .map(|(seq, (turn_index, kind))| Event {
            session_id: last.session_id.clone(),
            loop_id: last.loop_id.clone(),
            seq,
            turn_index,
            at: last.at,
            kind,
        })
        .collect()
}

fn start_of(call: &ToolCall) -> EventKind {
    EventKind::ToolExecutionStart {
        call_id: call.call_id.clone(),
        tool_name: call.name.clone(),
        runs: false,
    }
}

fn end_of(call: &ToolCall) -> EventKind {
    EventKind::ToolExecutionEnd {
        call_id: call.call_id.clone(),
        tool_name: call.name.clone(),
        envelope: ToolEnvelope::failed(
            FailureKind::Cancelled,
            "the process ended before this call did",
        ),
        disposition: Disposition::Cancelled,
        child_loop_id: None,
    }
}
