//! Reads what is new to a follower.

use super::MemorySession;
use crate::{
    FollowCursor, FollowFrom, FollowPage, StoreError,
    follow::{FOLLOW_PAGE_EVENTS, FollowRead, JournalledEvents, StoredLoop, merge},
};
use std::sync::Arc;

impl MemorySession {
    pub(super) fn follow_page(&self, from: FollowFrom) -> Result<FollowPage, StoreError> {
        let created_at = self.info.creation_text();
        let cursor = match from {
            FollowFrom::Start => FollowCursor::new(&created_at, None),
            FollowFrom::Now => {
                let newest = self.loops.last().map(|(_, record)| record.loop_id.clone());
                FollowCursor::new(&created_at, newest)
            }
            FollowFrom::After(cursor) => {
                cursor.check_session(&created_at)?;
                cursor
            }
        };
        let start = match cursor.after() {
            Some(after) => {
                let mut loops = self.loops.iter();
                let place = loops.position(|(_, record)| record.loop_id == *after);
                place.ok_or_else(|| cursor.error())? + 1
            }
            None => 0,
        };
        let mut read = FollowRead::default();
        let mut events = 0;
        for (version, record) in self.loops.iter().skip(start) {
            if events >= FOLLOW_PAGE_EVENTS {
                read.has_more = true;
                break;
            }
            events += record.events.len();
            read.stored.push(Ok(StoredLoop {
                version: *version,
                record: Arc::clone(record),
            }));
        }
        let journal = self.journal.iter();
        read.journal = journal
            .map(|(loop_id, events)| JournalledEvents {
                loop_id: loop_id.clone(),
                entry: 0,
                events: events.clone(),
            })
            .collect();
        Ok(merge(cursor, read))
    }
}
