//! Runs one oracle per loop, for tests that observe several loops.

use super::{Oracle, check_history, check_stored};
use crate::{Event, EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus, Message};
use std::{collections::BTreeMap, sync::Arc};

/// Checks the live events of any number of loops, and keeps the first violation.
#[derive(Clone, Debug, Default)]
pub struct LoopOracles {
    oracles: BTreeMap<LoopId, Oracle>,
    first_violation: Option<String>,
}

impl LoopOracles {
    /// Checks the next event of any loop.
    pub fn observe(&mut self, event: &Event) {
        if self.first_violation.is_some() {
            return;
        }
        let oracle = self.oracles.entry(event.loop_id.clone());
        let seen = oracle
            .or_insert_with(Oracle::for_live_stream)
            .observe(event);
        self.first_violation = seen
            .err()
            .map(|complaint| format!("shown of {:?}: {complaint}", event.loop_id));
    }

    /// Returns the first violation as an error.
    pub fn result(&self) -> Result<(), String> {
        self.first_violation.clone().map_or(Ok(()), Err)
    }
}

/// Checks a stored record: its stream, and that its messages can be sent unchanged.
pub fn check_record(record: &LoopRecord) -> Result<(), String> {
    let kept = match record.status {
        // A crash may have ended the stream anywhere (S5).
        LoopStatus::Aborted | LoopStatus::Pending | LoopStatus::Running => check_unfinished(record),
        // Records from before events existed (LOOP-61).
        LoopStatus::Completed if record.events.is_empty() && record.turns.is_empty() => {
            check_history(&record.messages)
        }
        LoopStatus::Completed | LoopStatus::Rejected => {
            check_stored(&record.events).and_then(|()| check_history(&record.messages))
        }
    };
    kept.map_err(|complaint| format!("stored of {:?}: {complaint}", record.loop_id))
}

/// Checks the record of an unfinished loop. If the loop stays in the conversation, its last message is the
/// notice of the interruption, and nothing is open before that notice.
fn check_unfinished(record: &LoopRecord) -> Result<(), String> {
    let mut oracle = Oracle::for_stored_stream();
    if !record.on_chain {
        return record
            .events
            .iter()
            .try_for_each(|event| oracle.observe(event));
    }
    let is_notice = |message: &Arc<LlmMessage>| matches!(message.message, Message::System { .. });
    let notice = record.messages.last().filter(|it| is_notice(it));
    let notice = notice.ok_or("S5: no notice at the end of an interrupted loop")?;
    let begins = |event: &Event| {
        matches!(&event.kind, EventKind::MessageStart { message_id }
            if *message_id == notice.message_id)
    };
    let before = record.events.iter().take_while(|event| !begins(event));
    before
        .into_iter()
        .try_for_each(|event| oracle.observe(event))?;
    oracle.check_closed()?;
    check_history(&record.messages)
}
