//! Reads the columns of rows.

use super::pg_error::PgError;
use crate::encoding::row_error::RowError;
use chrono::DateTime;
use tokio_postgres::{Row, types::FromSql};
use turnery_engine::Timestamp;

/// Columns of a row, by index.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a>(pub(super) &'a Row);

impl<'a> Columns<'a> {
    fn get<T: FromSql<'a>>(self, column: usize) -> Result<T, PgError> {
        let value = self.0.try_get(column);
        value.map_err(|error| {
            RowError::Invalid(format!("column {column} cannot be read: {error}")).into()
        })
    }

    pub(super) fn text(self, column: usize) -> Result<&'a str, PgError> {
        self.get(column)
    }

    pub(super) fn optional_text(self, column: usize) -> Result<Option<&'a str>, PgError> {
        self.get(column)
    }

    pub(super) fn integer(self, column: usize) -> Result<i64, PgError> {
        self.get(column)
    }

    pub(super) fn optional_integer(self, column: usize) -> Result<Option<i64>, PgError> {
        self.get(column)
    }

    /// Reads a version, number or fence, which are never negative.
    pub(super) fn count(self, column: usize) -> Result<u64, PgError> {
        let number = self.integer(column)?;
        u64::try_from(number)
            .map_err(|_| RowError::Invalid(format!("column {column} is {number}")).into())
    }

    pub(super) fn boolean(self, column: usize) -> Result<bool, PgError> {
        self.get(column)
    }

    pub(super) fn time(self, column: usize) -> Result<Timestamp, PgError> {
        self.get(column)
    }

    pub(super) fn optional_time(self, column: usize) -> Result<Option<Timestamp>, PgError> {
        self.get(column)
    }
}

/// Converts a version, number or fence for a statement.
pub(super) fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Parses a time that is stored as text.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, RowError> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|error| RowError::Invalid(format!("{text:?} is not a time: {error}")))
}
