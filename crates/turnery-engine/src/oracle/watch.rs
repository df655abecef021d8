//! Watch: one oracle for each loop, for a test that sees the events of several.

use super::{Oracle, check_history, check_stored};
use crate::{Event, LoopId, LoopRecord, LoopStatus};
use std::collections::BTreeMap;

/// Watches the live events of any number of loops, and keeps the first complaint about them.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    loops: BTreeMap<LoopId, Oracle>,
    complaint: Option<String>,
}

impl Watch {
    /// Take in the next event of whichever loop.
    pub fn see(&mut self, event: &Event) {
        if self.complaint.is_some() {
            return;
        }
        let oracle = self.loops.entry(event.loop_id.clone());
        let seen = oracle.or_insert_with(Oracle::live).see(event);
        self.complaint = seen
            .err()
            .map(|complaint| format!("shown of {:?}: {complaint}", event.loop_id));
    }

    /// The first complaint, if there is one.
    pub fn verdict(&self) -> Result<(), String> {
        self.complaint.clone().map_or(Ok(()), Err)
    }
}

/// Check what a store has kept of a loop: its stream, and that its messages can be sent as they are.
pub fn check_record(record: &LoopRecord) -> Result<(), String> {
    let kept = match record.status {
        // It was cut off by a crash, wherever it was (S5).
        LoopStatus::Aborted | LoopStatus::Pending | LoopStatus::Running => begun(record),
        // From before there were events (LOOP-61).
        LoopStatus::Completed if record.events.is_empty() && record.turns.is_empty() => {
            check_history(&record.messages)
        }
        LoopStatus::Completed | LoopStatus::Rejected => {
            check_stored(&record.events).and_then(|()| check_history(&record.messages))
        }
    };
    kept.map_err(|complaint| format!("stored of {:?}: {complaint}", record.loop_id))
}

fn begun(record: &LoopRecord) -> Result<(), String> {
    let mut oracle = Oracle::stored();
    record.events.iter().try_for_each(|event| oracle.see(event))
}
