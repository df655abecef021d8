//! Fault: what goes wrong in a job, and the sentence that a person reads about it.

use crate::StoreError;
use rusqlite::ErrorCode;
use std::path::Path;

/// How long to wait for another process that writes.
pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Why a job failed, before the path is known.
#[derive(Debug)]
pub(super) enum Fault {
    /// As the caller is to see it.
    Told(StoreError),
    /// From the database.
    Sql(rusqlite::Error),
    /// From the disk, when it was to keep what was written.
    Disk(std::io::Error),
    /// A row that does not read as what it should be, or a value that cannot be written.
    Json(serde_json::Error),
    /// A row that does not read as what it should be.
    Row(String),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl Fault {
    /// Another process is writing.
    pub(super) fn is_busy(&self) -> bool {
        let busy = Some(ErrorCode::DatabaseBusy);
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == busy)
    }

    pub(super) fn at(self, path: &Path) -> StoreError {
        let path = path.display();
        let text = match self {
            Self::Told(error) => return error,
            Self::Json(error) => format!("{path}: a value does not fit its column: {error}"),
            Self::Row(text) => format!("{path}: {text}"),
            Self::Disk(error) => format!(
                "{path} was written, but the disk does not say that it is kept: {error}; look after \
                 the disk, then start again"
            ),
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => format!(
                    "{path} is damaged or not a session database ({error}); move it and its -wal \
                     file elsewhere to start afresh, or put back a copy of it"
                ),
                Some(ErrorCode::DiskFull) => {
                    format!("the disk with {path} is full; free some space and try again")
                }
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
                    "another program has kept {path} locked for {} seconds; close it and try again",
                    PATIENCE.as_secs()
                ),
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                    format!(
                        "{path} cannot be opened for writing ({error}); check that it is a file in a \
                         folder of yours"
                    )
                }
                Some(_) | None => format!("{path}: {error}"),
            },
        };
        StoreError::Broken(text)
    }
}
