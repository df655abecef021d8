//! Reads the lane of a session: who may commit to it, and for how long (UP-27).

use super::{
    columns::{text, time},
    job_error::JobError,
    journal,
    loop_numbers::LoopNumbers,
    sessions::{self, UnreadableColumn},
};
use crate::{
    SessionInfo, StoreError, clock::ClockReading, lease::LaneHolder, owner::describe_holder,
};
use rusqlite::{CachedStatement, Connection, Row, types::ValueRef};
use turnery_engine::SessionId;

/// Row of a session with its lane.
pub(super) struct LaneRow {
    pub(super) info: SessionInfo,
    /// Number of loops; `None` if unreadable.
    pub(super) loop_count: Option<i64>,
    /// Greatest number of a loop that was shown but not stored; 0 if unreadable.
    lost_number: u64,
    pub(super) fence: u64,
    pub(super) holder: Option<LaneHolder>,
    pub(super) has_journal: bool,
}

impl LaneRow {
    /// Returns the greatest number of a loop that was ever stored or shown.
    pub(super) fn last_number(&self, numbers: &LoopNumbers) -> u64 {
        numbers.last.max(self.lost_number)
    }

    /// Returns the number of the next loop; `None` on overflow.
    pub(super) fn next_number(&self, numbers: &LoopNumbers) -> Option<u64> {
        self.last_number(numbers).checked_add(1)
    }
}

/// Index of the loop count in [`select_lane`], after the columns of the session.
const LOOP_COUNT_COLUMN: usize = sessions::COLUMN_COUNT;
const FENCE_COLUMN: usize = sessions::COLUMN_COUNT + 1;
const OWNER_COLUMN: usize = sessions::COLUMN_COUNT + 2;
const PROCESS_COLUMN: usize = sessions::COLUMN_COUNT + 3;
const EXPIRES_AT_COLUMN: usize = sessions::COLUMN_COUNT + 4;
const LOST_NUMBER_COLUMN: usize = sessions::COLUMN_COUNT + 5;
const HAS_JOURNAL_COLUMN: usize = sessions::COLUMN_COUNT + 6;

/// Selects a session's row with its lane, and whether it has journalled events.
fn select_lane(db: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    db.prepare_cached(&format!(
        "SELECT {}, loop_count, fence, owner_id, process, expires_at, lost_number, \
         {} FROM sessions WHERE session_id = ?1",
        sessions::COLUMNS,
        journal::HAS_JOURNAL
    ))
}

pub(super) fn read_lane_row(db: &Connection, id: &SessionId) -> Result<LaneRow, JobError> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    Ok(LaneRow {
        info: sessions::session_from_row(row),
        loop_count: row.get(LOOP_COUNT_COLUMN).ok(),
        lost_number: row.get(LOST_NUMBER_COLUMN).unwrap_or_default(),
        fence: fence_from_row(row).unwrap_or_default(),
        holder: holder_from_row(row)?,
        has_journal: row.get(HAS_JOURNAL_COLUMN)?,
    })
}

/// Returns the fence, if it can still rise.
fn fence_from_row(row: &Row<'_>) -> Result<u64, JobError> {
    let fence: i64 = row.get(FENCE_COLUMN)?;
    match u64::try_from(fence) {
        Ok(known) if fence < i64::MAX => Ok(known),
        Ok(_) | Err(_) => Err(JobError::InvalidRow(format!("{fence} is out of range"))),
    }
}

/// Returns the holder; `None` if the lane is free. An unreadable process is empty and an unreadable end of the
/// lease has passed, since the session could otherwise never be claimed.
fn holder_from_row(row: &Row<'_>) -> Result<Option<LaneHolder>, JobError> {
    if row.get_ref(OWNER_COLUMN)? == ValueRef::Null {
        return Ok(None);
    }
    let text = |column| text(row, column).unwrap_or_default();
    Ok(Some(LaneHolder {
        owner_id: text(OWNER_COLUMN).to_owned(),
        process: text(PROCESS_COLUMN).to_owned(),
        expires_at: time(text(EXPIRES_AT_COLUMN)).unwrap_or_default(),
    }))
}

/// Returns the unreadable columns of a session's row.
pub(super) fn unreadable_columns(
    db: &Connection,
    id: &SessionId,
) -> Result<Vec<UnreadableColumn>, JobError> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    let is_held = row.get_ref(OWNER_COLUMN)? != ValueRef::Null;
    let holder = |read: Result<(), JobError>| if is_held { read } else { Ok(()) };
    let columns = [
        ("loop_count", check_non_negative(row, LOOP_COUNT_COLUMN)),
        ("lost_number", check_non_negative(row, LOST_NUMBER_COLUMN)),
        ("fence", fence_from_row(row).map(drop)),
        ("owner_id", holder(text(row, OWNER_COLUMN).map(drop))),
        ("process", holder(text(row, PROCESS_COLUMN).map(drop))),
        (
            "expires_at",
            holder(text(row, EXPIRES_AT_COLUMN).and_then(time).map(drop)),
        ),
    ];
    let mut unreadable = sessions::read_columns(row).1;
    unreadable.extend(columns.into_iter().filter_map(|(column, read)| {
        let reason = read.err()?.to_string();
        Some(UnreadableColumn { column, reason })
    }));
    Ok(unreadable)
}

fn check_non_negative(row: &Row<'_>, column: usize) -> Result<(), JobError> {
    match row.get(column)? {
        0_i64.. => Ok(()),
        number => Err(JobError::InvalidRow(format!("{number} is out of range"))),
    }
}

/// Returns those of `sessions` whose holder may be active, even after its lease expired, with the holder described
/// for the user.
pub(super) fn active_holders(
    db: &Connection,
    sessions: &[SessionId],
    now: ClockReading,
) -> Result<Vec<(SessionId, String)>, JobError> {
    let mut holders = Vec::new();
    for id in sessions {
        let held = read_lane_row(db, id)?
            .holder
            .filter(|held| held.may_be_active(now));
        holders.extend(held.map(|held| (id.clone(), describe_holder(&held.process))));
    }
    Ok(holders)
}

/// Fails with [`StoreError::Busy`] if the lane of one of these sessions is held.
pub(super) fn require_free(
    db: &Connection,
    sessions: &[SessionId],
    now: ClockReading,
) -> Result<(), JobError> {
    match active_holders(db, sessions, now)?.into_iter().next() {
        Some((session, holder)) => Err(StoreError::Busy { session, holder }.into()),
        None => Ok(()),
    }
}
