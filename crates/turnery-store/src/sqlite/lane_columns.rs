//! Reads and changes the columns of a session's row that hold its lane.

use super::job_error::JobError;
use crate::{Lane, StoreError, clock::ClockReading, lease::LeaseEnd, list_cursor::format_time};
use rusqlite::{Connection, params};
use turnery_engine::SessionId;

/// Assignments that leave a row of `sessions` without a holder.
macro_rules! no_holder {
    () => {
        "owner_id = NULL, process = NULL, expires_at = NULL"
    };
}
pub(super) use no_holder;

pub(super) fn renew(db: &Connection, lane: &Lane, now: ClockReading) -> Result<(), JobError> {
    let mut update = db.prepare_cached(
        "UPDATE sessions SET expires_at = ?4, \
         process = 'until=' || ?5 || substr(process, instr(process, ' ')) \
         WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    let end = LeaseEnd::after(now);
    let held = update.execute(params![
        lane.session_id.as_str(),
        lane.owner_id,
        lane.fence,
        format_time(end.wall),
        end.monotonic_ms
    ])?;
    if held == 0 {
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    Ok(())
}

/// Releases the lane. The fence stays, so that the next holder gets a higher one.
pub(super) fn release(db: &Connection, lane: &Lane) -> Result<(), JobError> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_holder!(),
        " WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3"
    ))?;
    update.execute(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?;
    Ok(())
}

/// Removes the holder without reading its columns; for holders that are unreadable.
pub(super) fn free(db: &Connection, id: &SessionId) -> Result<(), JobError> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_holder!(),
        " WHERE session_id = ?1"
    ))?;
    update.execute((id.as_str(),))?;
    Ok(())
}

/// Records the number of a loop that was shown but is neither stored nor journalled any more, so that it is
/// never reused (LOOP-10).
pub(super) fn note_lost_number(
    db: &Connection,
    id: &SessionId,
    number: u64,
) -> Result<(), JobError> {
    if number > 0 {
        let mut update = db.prepare_cached(
            "UPDATE sessions SET lost_number = ?2 WHERE session_id = ?1 AND lost_number < ?2",
        )?;
        update.execute(params![
            id.as_str(),
            i64::try_from(number).unwrap_or(i64::MAX)
        ])?;
    }
    Ok(())
}
