//! Turns the journals of uncommitted loops into records (S5).

use std::sync::Arc;
use turnery_engine::{Event, LoopRecord};

/// Recovers the records of uncommitted loops, oldest first. Also returns the greatest number of a loop that
/// has no record because its journal lacks the start event, or 0, so that the number is not reused (LOOP-10).
pub(crate) fn recover_loops(journals: &[Vec<Event>]) -> (Vec<LoopRecord>, u64) {
    let records = turnery_engine::recover_interrupted_loops(journals);
    let ids = journals.iter().filter_map(|events| events.first());
    let lost = ids.filter(|event| records.iter().all(|record| record.loop_id != event.loop_id));
    let lost_number = lost.filter_map(|event| event.loop_id.number()).max();
    (records, lost_number.unwrap_or_default())
}

/// Returns the greatest loop number of these records.
pub(crate) fn last_loop_number(records: &[Arc<LoopRecord>]) -> u64 {
    let numbers = records.iter().filter_map(|record| record.loop_id.number());
    numbers.max().unwrap_or_default()
}
