//! Recovery: what a loop without a commit leaves behind becomes a record (S5).

use std::sync::Arc;
use turnery_engine::{Event, LoopRecord};

/// Records of the loops with these journals, oldest first, and the greatest number of a loop without one:
/// a journal that does not begin with its loop leaves no record.
pub(crate) fn recover(journals: &[Vec<Event>]) -> (Vec<LoopRecord>, u64) {
    let records = turnery_engine::interrupted_loops(journals);
    let ids = journals.iter().filter_map(|events| events.first());
    let lost = ids.filter(|event| records.iter().all(|record| record.loop_id != event.loop_id));
    let lost_number = lost.filter_map(|event| event.loop_id.number()).max();
    (records, lost_number.unwrap_or_default())
}

/// The greatest number of these loops.
pub(crate) fn last_number(records: &[Arc<LoopRecord>]) -> u64 {
    let numbers = records.iter().filter_map(|record| record.loop_id.number());
    numbers.max().unwrap_or_default()
}
