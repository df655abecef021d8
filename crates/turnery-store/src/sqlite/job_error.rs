//! Defines the errors of jobs, and the messages shown to users.

use crate::{StoreError, encoding::row_error::RowError};
use rusqlite::ErrorCode;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Longest time that a job waits for another writing process or for a disk that does not respond.
pub(super) const JOB_TIMEOUT: Duration = Duration::from_secs(10);

/// Like [`JOB_TIMEOUT`], for a check or a repair, which reads the whole database.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(3600);

/// Error of a job. Its message lacks the path of the database, which [`JobError::into_store_error`] adds.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    /// Error that is passed to the caller unchanged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Error of SQLite.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// Error of the disk while flushing the log, or while writing or listing copies of the database.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
    /// Malformed JSON in a row, or a value that cannot be serialized.
    #[error("{0}; if a newer turnery has written it, use that one")]
    Json(#[from] serde_json::Error),
    /// Malformed row.
    #[error("{0}")]
    InvalidRow(String),
    /// The database file was moved, removed or replaced.
    #[error("{} was moved, removed or replaced", .0.display())]
    Moved(PathBuf),
    /// The job did not finish within this time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl From<RowError> for JobError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Json(error) => Self::Json(error),
            RowError::Invalid(reason) => Self::InvalidRow(reason),
        }
    }
}

impl JobError {
    /// Returns true if another process holds the lock.
    pub(super) fn is_busy(&self) -> bool {
        self.has_code(ErrorCode::DatabaseBusy)
    }

    /// Returns true if the job was interrupted in favour of another one.
    pub(super) fn is_interrupted(&self) -> bool {
        self.has_code(ErrorCode::OperationInterrupted)
    }

    /// Returns true if the same job may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Sql(_) => {
                self.is_busy()
                    || self.has_code(ErrorCode::DiskFull)
                    || self.has_code(ErrorCode::SystemIoFailure)
            }
            Self::Moved(_) | Self::TimedOut(_) | Self::Disk(_) => true,
            Self::Store(_) | Self::Json(_) | Self::InvalidRow(_) => false,
        }
    }

    /// Returns true if a failed claim may succeed without journalling.
    pub(super) fn can_retry_without_journal(&self) -> bool {
        !matches!(self, Self::Store(_)) && !self.is_busy()
    }

    fn has_code(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(code))
    }

    /// Returns true if the stored data is malformed; other rows may be intact.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Json(_) | Self::InvalidRow(_) => true,
            Self::Store(_) | Self::Disk(_) | Self::Moved(_) | Self::TimedOut(_) => false,
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(code) => code == ErrorCode::DatabaseCorrupt,
                // The value has another type than its column.
                None => true,
            },
        }
    }

    pub(super) fn into_store_error(self, path: &Path) -> StoreError {
        let path = path.display();
        let text = match self {
            Self::Store(error) => return error,
            Self::Json(error) => format!("{path}: a value does not fit its column: {error}"),
            Self::InvalidRow(text) => format!("{path}: {text}"),
            Self::Disk(error) => format!(
                "{path} was written, but the disk did not confirm that it is kept: {error}; check \
                 the disk and its free space, then try again"
            ),
            Self::Moved(file) => format!(
                "{} was moved, removed or replaced while it was in use, so nothing is stored any \
                 more; put the file back, or restart turnery to use what is at {path} now",
                file.display()
            ),
            Self::TimedOut(patience) => format!(
                "{path} did not respond within {} seconds; check its disk, and whether another \
                 program keeps it locked, then try again",
                patience.as_secs()
            ),
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => format!(
                    "{path} is damaged or not a session database ({error}); move it and its -wal \
                     file elsewhere to start afresh, or put back a copy of it"
                ),
                Some(ErrorCode::DiskFull) => {
                    format!("the disk with {path} is full; free some space and try again")
                }
                Some(
                    ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::FileLockingProtocolFailed,
                ) => {
                    format!("another program keeps {path} locked; close it and try again")
                }
                Some(ErrorCode::SystemIoFailure) => format!(
                    "the disk failed to read or write {path} ({error}); check the disk and its free \
                     space, then try again"
                ),
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                    format!(
                        "{path} cannot be opened for writing ({error}); check that it is a file in a \
                         folder of yours, and that its disk has free space"
                    )
                }
                Some(_) | None => format!("{path}: {error}"),
            },
        };
        StoreError::Broken(text)
    }
}

/// Returns the reason in place of an error that reports a damaged row.
pub(super) fn reason_if_damaged<T>(
    read: Result<T, JobError>,
) -> Result<Result<T, String>, JobError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) if error.is_damage() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns `None` in place of an error that reports a damaged row.
pub(super) fn none_if_damaged<T>(read: Result<T, JobError>) -> Result<Option<T>, JobError> {
    Ok(reason_if_damaged(read)?.ok())
}
