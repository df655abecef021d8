//! Computes the checksums of rows that SQLite returns.

use super::job_error::JobError;
pub(super) use crate::encoding::checksum::{Checksum, ChecksumVerdict};
use rusqlite::{Row, types::ValueRef};

impl Checksum {
    pub(super) fn value(self, value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => self.optional(None),
            ValueRef::Integer(number) => self.integer(number),
            ValueRef::Real(number) => self.column(b'r', &number.to_le_bytes()),
            ValueRef::Text(text) => self.column(b't', text),
            ValueRef::Blob(bytes) => self.column(b'b', bytes),
        }
    }

    /// Adds these columns of a row, in this order.
    pub(super) fn columns(
        self,
        row: &Row<'_>,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<Self, JobError> {
        columns
            .into_iter()
            .try_fold(self, |sum, column| Ok(sum.value(row.get_ref(column)?)))
    }

    /// Compares with the stored checksum in a column of the same row.
    pub(super) fn verify(self, stored: ValueRef<'_>) -> ChecksumVerdict {
        match stored {
            ValueRef::Null => self.verify_integer(None),
            ValueRef::Integer(stored) => self.verify_integer(Some(stored)),
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => ChecksumVerdict::Differs,
        }
    }
}
