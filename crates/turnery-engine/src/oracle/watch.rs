//! Watch: one oracle for each loop, for a test that sees the events of several.

use super::{Oracle, check_history, check_stored};
use crate::{Event, EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus, Message};
use std::{collections::BTreeMap, sync::Arc};

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

/// One that stays in the conversation is whole, and a notice comes last; it may be the second one after
/// that of a limit.
fn begun(record: &LoopRecord) -> Result<(), String> {
    let mut oracle = Oracle::stored();
    if !record.on_chain {
        return record.events.iter().try_for_each(|event| oracle.see(event));
    }
    let is_notice = |message: &Arc<LlmMessage>| matches!(message.message, Message::System { .. });
    let notice = record.messages.last().filter(|it| is_notice(it));
    let notice = notice.ok_or("S5: no notice at the end of an interrupted loop")?;
    let begins = |event: &Event| {
        matches!(&event.kind, EventKind::MessageStart { message_id }
            if *message_id == notice.message_id)
    };
    let before = record.events.iter().take_while(|event| !begins(event));
    before.into_iter().try_for_each(|event| oracle.see(event))?;
    oracle.closed()?;
    check_history(&record.messages)
}
