//! Turns what a store has read after a cursor into updates.

use super::{
    FollowCursor, FollowItem, FollowPage, FollowUpdate,
    cursor::{is_journalled, is_sent},
};
use crate::Damage;
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{Event, LoopId, LoopRecord};

/// Stored loop with its events.
pub(crate) struct StoredLoop {
    pub(crate) version: u64,
    pub(crate) record: Arc<LoopRecord>,
}

/// Row of the journal: events of a loop that were written together.
pub(crate) struct JournalledEvents {
    pub(crate) loop_id: LoopId,
    /// Key of the row, by which its store finds it again; 0 if it needs none.
    pub(crate) entry: i64,
    pub(crate) events: Vec<Event>,
}

/// What a store has read after a cursor. The journal was read before the loops, or at the same moment, so that a loop
/// that is in neither was given up.
#[derive(Default)]
pub(crate) struct FollowRead {
    /// Rows of running loops, in the order in which they were written within each loop. Of an open loop, at least the
    /// row of its last event and all later ones.
    pub(crate) journal: Vec<JournalledEvents>,
    /// Next stored loops, oldest first; those that cannot be read are named instead.
    pub(crate) stored: Vec<Result<StoredLoop, (LoopId, Damage)>>,
    /// True if there are more stored loops.
    pub(crate) has_more: bool,
}

/// Returns the updates after `cursor`.
pub(crate) fn merge(cursor: FollowCursor, read: FollowRead) -> FollowPage {
    let mut merger = Merger {
        cursor,
        items: Vec::new(),
    };
    let mut stored = HashSet::new();
    for found in read.stored {
        match found {
            Ok(found) => {
                stored.insert(found.record.loop_id.clone());
                merger.add_stored(&found);
            }
            Err((loop_id, damage)) => {
                merger.withdraw(&loop_id);
                merger.cursor.after = Some(loop_id.clone());
                merger.push(FollowUpdate::Damaged(damage));
                stored.insert(loop_id);
            }
        }
    }
    if !read.has_more {
        let mut journal = read.journal;
        journal.retain(|row| !stored.contains(&row.loop_id));
        merger.add_journal(&journal);
    }
    FollowPage {
        items: merger.items,
        cursor: merger.cursor,
        has_more: read.has_more,
    }
}

struct Merger {
    /// Place after the last item.
    cursor: FollowCursor,
    items: Vec<FollowItem>,
}

impl Merger {
    fn push(&mut self, update: FollowUpdate) {
        let cursor = self.cursor.clone();
        self.items.push(FollowItem { update, cursor });
    }

    /// Adds an event of a row unless it was sent.
    fn push_event(&mut self, entry: i64, row: &[Event], event: &Event) {
        let open = self.cursor.open_loop(&event.loop_id);
        if open.is_some_and(|open| event.seq <= open.last) {
            return;
        }
        self.cursor.advance(entry, row, event);
        self.push(FollowUpdate::Event(Box::new(event.clone())));
    }

    fn withdraw(&mut self, loop_id: &LoopId) {
        if self.cursor.close_loop(loop_id) {
            let loop_id = loop_id.clone();
            self.push(FollowUpdate::Withdrawn { loop_id });
        }
    }

    fn add_stored(&mut self, stored: &StoredLoop) {
        let record = &stored.record;
        let loop_id = &record.loop_id;
        if !self.cursor.is_continued(loop_id, record.events.iter()) {
            self.withdraw(loop_id);
        }
        for event in record.events.iter().filter(|event| is_sent(event)) {
            self.push_event(0, std::slice::from_ref(event), event);
        }
        self.cursor.close_loop(loop_id);
        self.cursor.after = Some(loop_id.clone());
        self.push(FollowUpdate::LoopStored {
            loop_id: loop_id.clone(),
            version: stored.version,
            status: record.status,
            on_chain: record.on_chain,
        });
    }

    fn add_journal(&mut self, rows: &[JournalledEvents]) {
        let opened: Vec<LoopId> = self.cursor.open_loops().cloned().collect();
        for loop_id in &opened {
            let mut of_loop = rows.iter().filter(|row| row.loop_id == *loop_id);
            let is_journalled = of_loop.clone().next().is_some();
            let events = of_loop.by_ref().flat_map(|row| &row.events);
            if !is_journalled || !self.cursor.is_continued(loop_id, events) {
                self.withdraw(loop_id);
            }
        }
        for row in rows {
            for event in row.events.iter().filter(|event| is_journalled(event)) {
                self.push_event(row.entry, &row.events, event);
            }
        }
    }
}
