//! Recovery: what a loop without a commit leaves behind becomes a record (S5).

use std::sync::Arc;
use turnery_engine::{Event, LoopRecord};

/// Records of the loops with these journals, oldest first, and the greatest number of a loop without one:
/// a journal that does not begin with its loop leaves no record.
pub(crate) fn recover(journals: Vec<Vec<Event>>) -> (Vec<LoopRecord>, u64) {
    let mut lost_number = 0;
    let records = journals.iter().filter_map(|events| {
        let record = turnery_engine::interrupted(events);
        if let (None, Some(first)) = (&record, events.first()) {
            lost_number = lost_number.max(first.loop_id.number().unwrap_or_default());
        }
        record
    });
    (records.collect(), lost_number)
}

/// The greatest number of these loops.
pub(crate) fn last_number(records: &[Arc<LoopRecord>]) -> u64 {
    let numbers = records.iter().filter_map(|record| record.loop_id.number());
    numbers.max().unwrap_or_default()
}
