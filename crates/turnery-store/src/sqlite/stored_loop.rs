//! Reads a row of the table `loops`.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::{optional_text_column, text},
    job_error::JobError,
    long_texts::expand_references,
};
use crate::encoding::loop_columns::LoopColumns;
use rusqlite::{Connection, Row, types::ValueRef};
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Columns of a loop, in the order of its checksum.
pub(super) const SELECT_LOOP: &str = "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, record, messages, log, checksum, set_aside FROM loops WHERE loop = ?1";

/// Index of the parent in [`SELECT_LOOP`].
pub(super) const PARENT_COLUMN: usize = 2;
pub(super) const ON_CHAIN_COLUMN: usize = 5;
pub(super) const LOG_COLUMN: usize = 10;
pub(super) const CHECKSUM_COLUMN: usize = 11;
pub(super) const SET_ASIDE_COLUMN: usize = 12;

pub(super) fn is_set_aside(row: &Row<'_>) -> Result<bool, JobError> {
    Ok(!matches!(row.get_ref(SET_ASIDE_COLUMN)?, ValueRef::Null))
}

/// Compares a row with its checksum.
pub(super) fn verify(row: &Row<'_>, id: &SessionId) -> Result<ChecksumVerdict, JobError> {
    let stored = row.get_ref(CHECKSUM_COLUMN)?;
    if stored == ValueRef::Null {
        return Ok(ChecksumVerdict::Unknown);
    }
    let sum = Checksum::default().text(id.as_str());
    Ok(sum.columns(row, 0..=LOG_COLUMN)?.verify(stored))
}

/// Returns true if the loop was committed.
pub(super) fn is_stored(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<bool, JobError> {
    let mut select =
        db.prepare_cached("SELECT 1 FROM loops WHERE session_id = ?1 AND loop_id = ?2")?;
    Ok(select.exists((session.as_str(), loop_id.as_str()))?)
}

/// Returns the record without its events. `whole` is a reusable buffer in which the columns are joined.
pub(super) fn read_record(
    db: &Connection,
    row: &Row<'_>,
    session: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, JobError> {
    let columns = LoopColumns {
        loop_id: text(row, 1)?,
        parent_loop_id: optional_text_column(row, PARENT_COLUMN)?,
        continuation_kind: text(row, 3)?,
        status: text(row, 4)?,
        on_chain: row.get(ON_CHAIN_COLUMN)?,
        started_at: text(row, 6)?,
        ended_at: optional_text_column(row, 7)?,
        record: text(row, 8)?,
        messages: text(row, 9)?,
    };
    columns.read_record(session, whole, |json| expand_references(db, session, json))
}
