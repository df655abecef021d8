//! Reads columns as text and time.

use super::job_error::JobError;
use chrono::DateTime;
use rusqlite::{Row, types::ValueRef};
use turnery_engine::Timestamp;

/// Reads a text column.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, JobError> {
    let value = row.get_ref(column)?.as_str();
    value.map_err(|error| JobError::InvalidRow(format!("column {column} is not text: {error}")))
}

pub(super) fn optional_text_column<'a>(
    row: &'a Row<'_>,
    column: usize,
) -> Result<Option<&'a str>, JobError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            text(row, column).map(Some)
        }
    }
}

pub(super) fn time(text: &str) -> Result<Timestamp, JobError> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|error| JobError::InvalidRow(format!("{text:?} is not a time: {error}")))
}
