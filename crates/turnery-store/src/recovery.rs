//! Recovery: what a loop without a commit leaves behind becomes a record (S5).

use turnery_engine::{Event, LoopRecord};

/// Records of the loops with these journals, oldest first, and the greatest number of a journalled
/// loop. A journal that does not begin with its loop leaves no record.
pub(crate) fn recover(journals: Vec<Vec<Event>>) -> (Vec<LoopRecord>, u64) {
    let first = journals.iter().filter_map(|events| events.first());
    let numbers = first.filter_map(|event| event.loop_id.number());
    let last_number = numbers.max().unwrap_or_default();
    let records = journals
        .iter()
        .filter_map(|events| turnery_engine::interrupted(events))
        .collect();
    (records, last_number)
}
