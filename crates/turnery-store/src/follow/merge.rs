//! Turns what a store has read after a cursor into updates.

use super::{
    FollowCursor, FollowItem, FollowPage, FollowUpdate,
    cursor::{is_journalled, is_sent},
};
use crate::{Damage, DamagedPart};
use std::{collections::HashSet, fmt::Display, sync::Arc};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId};

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

/// Rows of a store after a cursor. The journal was read before the loops, or at the same moment, so that a loop that is
/// in neither was given up.
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

impl FollowRead {
    /// Adds a stored loop, or the damage for which it cannot be read.
    pub(crate) fn add_loop(
        &mut self,
        session: &SessionId,
        loop_id: LoopId,
        found: Result<StoredLoop, impl Display>,
    ) {
        self.stored.push(match found {
            Ok(stored) => Ok(stored),
            Err(reason) => {
                let part = DamagedPart::Loop {
                    loop_id: loop_id.clone(),
                };
                let damage = Damage::new(session, part, format!("cannot be read: {reason}"));
                Err((loop_id, damage))
            }
        });
    }
}

/// Returns true if the rows of an open loop go on behind the last event that was sent of it.
pub(crate) fn is_journal_continued(
    cursor: &FollowCursor,
    loop_id: &LoopId,
    rows: &[JournalledEvents],
) -> bool {
    let mut of_loop = rows.iter().filter(|row| row.loop_id == *loop_id).peekable();
    of_loop.peek().is_some() && cursor.is_continued(loop_id, of_loop.flat_map(|row| &row.events))
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
            if !is_journal_continued(&self.cursor, loop_id, rows) {
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
