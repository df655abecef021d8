//! Recovery: what a loop without a commit leaves behind becomes an aborted record (S5).

use std::collections::HashMap;
use turnery_engine::{
    CallId, Disposition, Event, EventKind, FailureKind, LoopRecord, LoopStatus, Recorder,
    ToolEnvelope,
};

/// The record of a loop whose process went away, from its journal. `None` if its `LoopStart` is not there.
pub(crate) fn aborted(events: &[Event]) -> Option<LoopRecord> {
    let mut recorder = Recorder::new();
    for event in events {
        recorder.fold(event);
    }
    let last = events.last()?;
    close_calls(events, &mut recorder);
    let mut record = recorder.into_record()?;
    record.status = LoopStatus::Aborted;
    record.outcome = None;
    record.detail = None;
    record.on_chain = false;
    record.ended_at.get_or_insert(last.at);
    Some(record)
}

/// No call looks as if it were running after a load (LOAD-7): each open one gets its end.
fn close_calls(events: &[Event], recorder: &mut Recorder) {
    let mut open: Vec<&CallId> = Vec::new();
    let mut names: HashMap<&CallId, &str> = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::ToolCallRequested { call, .. } => {
                names.insert(&call.call_id, &call.name);
                open.push(&call.call_id);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => open.retain(|other| *other != call_id),
            EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta { .. }
            | EventKind::MessageEnd { .. }
            | EventKind::UsageReported { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => {}
        }
    }
    let Some(last) = events.last() else { return };
    for (seq, call_id) in (last.seq + 1..).zip(open) {
        recorder.fold(&Event {
            seq,
            kind: EventKind::ToolExecutionEnd {
                call_id: call_id.clone(),
                tool_name: names.get(call_id).copied().unwrap_or_default().to_owned(),
                envelope: ToolEnvelope::failed(
                    FailureKind::Cancelled,
                    "the process ended before this call did",
                ),
                disposition: Disposition::Cancelled,
            },
            ..last.clone()
        });
    }
}
