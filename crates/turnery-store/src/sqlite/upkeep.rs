//! Describes the database, and adds up what its sessions use.

use super::{columns::text, job_error::JobError, open::SCHEMA_VERSION, stored_loop::read_record};
use crate::{DailyUsage, StoreDescription, list_cursor::format_time, upkeep::UsageByDay};
use rusqlite::Connection;
use std::{
    fs,
    iter::once,
    path::{Path, PathBuf},
};
use turnery_engine::{SessionId, Timestamp};

/// Files of a database beside its own: the log, its index, the index of the search.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-search"];

pub(super) fn describe(db: &Connection, path: &Path) -> Result<StoreDescription, JobError> {
    let free: u64 = db.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let page: u64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(StoreDescription {
        kind: "SQLite",
        location: path.display().to_string(),
        bytes: Some(size_on_disk(path)),
        free_bytes: free.saturating_mul(page),
        sessions: db.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))?,
        format: u64::try_from(SCHEMA_VERSION).ok(),
    })
}

/// Returns the size of a database with its companions. Unit: bytes.
pub(super) fn size_on_disk(path: &Path) -> u64 {
    let size = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    files(path).map(size).sum()
}

/// Returns the paths of a database and its companions.
pub(super) fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
    once("").chain(COMPANIONS).map(|suffix| {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        PathBuf::from(file)
    })
}

/// Returns the size of the texts of a session and of its child sessions. Unit: bytes.
pub(super) fn session_size(db: &Connection, id: &SessionId) -> Result<u64, JobError> {
    super::sessions::get(db, id)?;
    // `octet_length` reads no text.
    let mut select = db.prepare_cached(&format!(
        "{} SELECT coalesce(sum(bytes), 0) FROM (
             SELECT octet_length(record) + octet_length(messages) + octet_length(log) AS bytes FROM loops
             WHERE session_id IN family
             UNION ALL SELECT octet_length(body) FROM texts WHERE session_id IN family
             UNION ALL SELECT octet_length(body) FROM journal WHERE session_id IN family
             UNION ALL SELECT octet_length(body) FROM remarks WHERE session_id IN family)",
        super::deletion::WITH_FAMILY
    ))?;
    Ok(select.query_row((id.as_str(),), |row| row.get(0))?)
}

/// Adds up the usage of all sessions from the records of their loops, without messages and events.
pub(super) fn daily_usage(
    db: &Connection,
    since: Option<Timestamp>,
) -> Result<Vec<DailyUsage>, JobError> {
    let mut sessions = db.prepare_cached("SELECT session_id FROM sessions ORDER BY session_id")?;
    // The columns of `SELECT_LOOP`. A loop that goes on after its start may have turns since.
    let mut select = db.prepare_cached(
        "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, started_at, ended_at, \
         record, '[]' FROM loops WHERE session_id = ?1 AND coalesce(ended_at, started_at) >= ?2",
    )?;
    let since_text = since.map(format_time).unwrap_or_default();
    let mut whole = String::new();
    let mut usage_rows = Vec::new();
    let mut ids = sessions.query([])?;
    while let Some(row) = ids.next()? {
        let id = SessionId::from(text(row, 0)?);
        let mut usage = UsageByDay::default();
        let mut rows = select.query((id.as_str(), &since_text))?;
        while let Some(row) = rows.next()? {
            match read_record(db, row, &id, &mut whole) {
                Ok(record) => usage.add(&record, since),
                Err(error) if error.is_damage() => {
                    tracing::warn!(session = %id, %error, "the usage of a damaged loop is left out");
                }
                Err(error) => return Err(error),
            }
        }
        usage_rows.extend(usage.into_rows(&id));
    }
    Ok(usage_rows)
}
