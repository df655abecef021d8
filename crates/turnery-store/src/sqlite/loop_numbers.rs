//! Tracks the greatest loop number of a session.

use super::{columns::text, job_error::JobError};
use crate::{SessionInfo, recovery};
use rusqlite::Connection;
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, Timestamp};

/// Loop numbers of a session. Numbers may have gaps, so the last one cannot be derived from the count; cached
/// between claims, to avoid reading a long session at each.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopNumbers {
    /// Distinguishes a session from an earlier one with the same id.
    created_at: Timestamp,
    /// Loop count of the session when the numbers were read, which rises with each commit of any process.
    /// `None` if unreadable.
    count: Option<i64>,
    /// Greatest number of a stored loop.
    pub(super) last: u64,
}

impl LoopNumbers {
    /// Returns true if no loop was stored in the session since the numbers were read.
    pub(super) fn is_current(&self, created_at: Timestamp, count: Option<i64>) -> bool {
        self.count.is_some() && self.count == count && self.created_at == created_at
    }

    /// Reads the ids of all loops from their index. An id that is not text has no number.
    pub(super) fn read(
        db: &Connection,
        session: &SessionInfo,
        count: Option<i64>,
    ) -> Result<Self, JobError> {
        let mut last = 0;
        let mut select = db.prepare_cached("SELECT loop_id FROM loops WHERE session_id = ?1")?;
        let mut rows = select.query((session.id.as_str(),))?;
        while let Some(row) = rows.next()? {
            let number = text(row, 0).ok().and_then(|id| LoopId::from(id).number());
            last = last.max(number.unwrap_or_default());
        }
        Ok(Self {
            created_at: session.created_at,
            count,
            last,
        })
    }

    /// Adds loops that a commit has stored.
    pub(super) fn add_loops(&mut self, records: &[Arc<LoopRecord>]) {
        let added = i64::try_from(records.len()).ok();
        self.count = self
            .count
            .zip(added)
            .and_then(|(count, added)| count.checked_add(added));
        self.last = self.last.max(recovery::last_loop_number(records));
    }
}
