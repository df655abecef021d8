//! Checksums of rows: computed when a row is written, compared when it is read.
//!
//! A CRC-32 detects every single-bit change and every burst of up to 32 bits, and misses one in four billion
//! other changes. Rows written before checksums were introduced have none.

use super::job_error::JobError;
use rusqlite::{Row, types::ValueRef};

/// CRC-32 over the columns of a row. Each column is hashed with its type and length, so that moving bytes
/// between columns changes the sum.
#[derive(Clone, Default)]
pub(super) struct Checksum(crc32fast::Hasher);

/// Result of comparing a row with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChecksumVerdict {
    /// The row is unchanged.
    Matches,
    /// The row or its checksum was changed by something other than this store.
    Differs,
    /// The row was written before checksums were introduced.
    Unknown,
}

impl Checksum {
    pub(super) fn text(self, text: &str) -> Self {
        self.column(b't', text.as_bytes())
    }

    pub(super) fn optional(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.column(b'n', &[]),
        }
    }

    pub(super) fn integer(self, number: i64) -> Self {
        self.column(b'i', &number.to_le_bytes())
    }

    pub(super) fn value(self, value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => self.column(b'n', &[]),
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

    pub(super) fn finish(self) -> i64 {
        self.0.finalize().into()
    }

    /// Compares with the stored checksum in a column of the same row.
    pub(super) fn verify(self, stored: ValueRef<'_>) -> ChecksumVerdict {
        match stored {
            ValueRef::Null => ChecksumVerdict::Unknown,
            ValueRef::Integer(stored) if stored == self.finish() => ChecksumVerdict::Matches,
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                ChecksumVerdict::Differs
            }
        }
    }

    fn column(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.0.update(&[kind]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }
}
