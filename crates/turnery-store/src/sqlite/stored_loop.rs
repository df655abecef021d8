//! Reads a row of the table `loops`; [`super::loop_row`] writes it.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::{optional_text_column, text},
    job_error::JobError,
    long_texts::expand_references,
};
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

/// Returns true if the id cannot belong to a loop of this session.
pub(super) fn is_foreign(id: &SessionId, loop_id: &str) -> bool {
    let own = loop_id.strip_prefix(id.as_str());
    !own.is_some_and(|rest| rest.starts_with('.'))
}

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
    whole.clear();
    whole.push('{');
    push_string_field(whole, "session_id", session.as_str())?;
    push_string_field(whole, "loop_id", text(row, 1)?)?;
    if let Some(parent) = optional_text_column(row, PARENT_COLUMN)? {
        push_string_field(whole, "parent_loop_id", parent)?;
    }
    push_enum_field(whole, "continuation_kind", text(row, 3)?)?;
    push_enum_field(whole, "status", text(row, 4)?)?;
    push_raw_field(
        whole,
        "on_chain",
        if row.get(ON_CHAIN_COLUMN)? {
            "true"
        } else {
            "false"
        },
    );
    push_string_field(whole, "started_at", text(row, 6)?)?;
    if let Some(ended_at) = optional_text_column(row, 7)? {
        push_string_field(whole, "ended_at", ended_at)?;
    }
    push_raw_field(whole, "messages", "[]");
    let rest = expand_references(db, session, text(row, 8)?)?;
    let rest = rest.strip_prefix('{').unwrap_or_default();
    if rest == "}" {
        whole.pop();
    }
    whole.push_str(rest);
    let mut record: LoopRecord = serde_json::from_str(whole)?;
    // Parsed separately, because messages are the largest part.
    record.messages = serde_json::from_str(&expand_references(db, session, text(row, 9)?)?)?;
    Ok(record)
}

/// Appends a field of a JSON object that has more fields to follow.
fn push_raw_field(whole: &mut String, name: &str, json: &str) {
    for part in ["\"", name, "\":", json, ","] {
        whole.push_str(part);
    }
}

fn push_string_field(whole: &mut String, name: &str, text: &str) -> Result<(), JobError> {
    push_raw_field(whole, name, &serde_json::to_string(text)?);
    Ok(())
}

/// Appends an enum stored by `loop_row`.
fn push_enum_field(whole: &mut String, name: &str, json: &str) -> Result<(), JobError> {
    if json.starts_with('{') {
        push_raw_field(whole, name, json);
        return Ok(());
    }
    push_string_field(whole, name, json)
}
