//! Checksums of rows: computed when a row is written, compared when it is read.
//!
//! A CRC-32 detects every single-bit change and every burst of up to 32 bits, and misses one in four billion
//! other changes. Rows written before checksums were introduced have none.

/// CRC-32 over the columns of a row. Each column is hashed with its type and length, so that moving bytes
/// between columns changes the sum.
#[derive(Clone, Default)]
pub(crate) struct Checksum(crc32fast::Hasher);

/// Result of comparing a row with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChecksumVerdict {
    /// The row is unchanged.
    Matches,
    /// The row or its checksum was changed by something other than this store.
    Differs,
    /// The row was written before checksums were introduced.
    Unknown,
}

impl Checksum {
    pub(crate) fn text(self, text: &str) -> Self {
        self.column(b't', text.as_bytes())
    }

    pub(crate) fn optional(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.column(b'n', &[]),
        }
    }

    pub(crate) fn integer(self, number: i64) -> Self {
        self.column(b'i', &number.to_le_bytes())
    }

    pub(crate) fn finish(self) -> i64 {
        self.0.finalize().into()
    }

    /// Compares with the stored checksum.
    pub(crate) fn verify_integer(self, stored: Option<i64>) -> ChecksumVerdict {
        match stored {
            None => ChecksumVerdict::Unknown,
            Some(stored) if stored == self.finish() => ChecksumVerdict::Matches,
            Some(_) => ChecksumVerdict::Differs,
        }
    }

    /// Adds a column of this type.
    pub(crate) fn column(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.0.update(&[kind]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }
}
