//! Deletes sessions with their descendants.

use super::{columns::text, job_error::JobError, lanes, transaction::write};
use crate::clock::ClockReading;
use rusqlite::Connection;
use turnery_engine::SessionId;

/// Common table expression of a session and all its descendants.
pub(super) const WITH_FAMILY: &str = "WITH RECURSIVE family (id) AS (VALUES (?1) UNION SELECT session_id FROM sessions \
     JOIN family ON json_valid(spawned_by) AND spawned_by ->> 'session_id' = family.id)";

pub(super) fn delete(db: &Connection, id: &SessionId, now: ClockReading) -> Result<bool, JobError> {
    write(db, |db| {
        lanes::require_free(db, &claimed_family(db, id)?, now)?;
        remove_family(db, id)
    })
}

/// Returns the holders of the revoked lanes; `None` if there was no such session.
pub(super) fn force_delete(
    db: &Connection,
    id: &SessionId,
    now: ClockReading,
) -> Result<Option<Vec<String>>, JobError> {
    write(db, |db| {
        let holders = lanes::active_holders(db, &claimed_family(db, id)?, now)?;
        let holders = holders.into_iter().map(|(_, holder)| holder).collect();
        Ok(remove_family(db, id)?.then_some(holders))
    })
}

/// Returns the sessions of a family whose lane was claimed and not released.
fn claimed_family(db: &Connection, id: &SessionId) -> Result<Vec<SessionId>, JobError> {
    let mut select = db.prepare_cached(&format!(
        "{WITH_FAMILY} SELECT session_id FROM sessions WHERE session_id IN family AND owner_id IS NOT NULL"
    ))?;
    let mut rows = select.query((id.as_str(),))?;
    let mut claimed = Vec::new();
    while let Some(row) = rows.next()? {
        claimed.push(text(row, 0)?.into());
    }
    Ok(claimed)
}

/// Deletes a session and its descendants; dependent tables delete by foreign key.
fn remove_family(db: &Connection, id: &SessionId) -> Result<bool, JobError> {
    let mut delete = db.prepare_cached(&format!(
        "{WITH_FAMILY} DELETE FROM sessions WHERE session_id IN family RETURNING session_id"
    ))?;
    let mut gone = delete.query((id.as_str(),))?;
    let mut found = false;
    while let Some(row) = gone.next()? {
        found |= text(row, 0)? == id.as_str();
    }
    Ok(found)
}
