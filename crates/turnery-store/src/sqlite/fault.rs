//! Fault: what goes wrong in a job, and the sentence that a person reads about it.

use crate::StoreError;
use rusqlite::ErrorCode;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a job may wait for another process that writes, or for a disk that does not answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The same for a check or a repair, which reads all of a database: as long as it may take.
pub(super) const CHECK_PATIENCE: Duration = Duration::from_secs(3600);

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
    /// This file is not the one any more that was opened.
    Moved(PathBuf),
    /// Nothing came back for so long.
    Stuck(Duration),
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
        self.has_code(ErrorCode::DatabaseBusy)
    }

    /// It was interrupted to make way for another job.
    pub(super) fn is_interrupt(&self) -> bool {
        self.has_code(ErrorCode::OperationInterrupted)
    }

    /// The same may succeed later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Sql(_) => {
                self.is_busy()
                    || self.has_code(ErrorCode::DiskFull)
                    || self.has_code(ErrorCode::SystemIoFailure)
            }
            Self::Moved(_) | Self::Stuck(_) | Self::Disk(_) => true,
            Self::Told(_) | Self::Json(_) | Self::Row(_) => false,
        }
    }

    /// A claim that failed in this way may succeed without a journal.
    pub(super) fn may_spare_journal(&self) -> bool {
        !matches!(self, Self::Told(_)) && !self.is_busy()
    }

    fn has_code(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(code))
    }

    /// What was read is not what this store writes: other rows may be sound.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Json(_) | Self::Row(_) => true,
            Self::Told(_) | Self::Disk(_) | Self::Moved(_) | Self::Stuck(_) => false,
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(code) => code == ErrorCode::DatabaseCorrupt,
                // A value of another type than its column's.
                None => true,
            },
        }
    }

    /// The same in words, without the path.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Told(error) => error.to_string(),
            Self::Json(error) => {
                format!("{error}; if a newer turnery has written it, use that one")
            }
            Self::Sql(error) => error.to_string(),
            Self::Disk(error) => error.to_string(),
            Self::Row(text) => text.clone(),
            Self::Moved(file) => format!("{} was moved, removed or replaced", file.display()),
            Self::Stuck(waited) => format!("no answer within {} s", waited.as_secs()),
        }
    }

    pub(super) fn at(self, path: &Path) -> StoreError {
        let path = path.display();
        let text = match self {
            Self::Told(error) => return error,
            Self::Json(error) => format!("{path}: a value does not fit its column: {error}"),
            Self::Row(text) => format!("{path}: {text}"),
            Self::Disk(error) => format!(
                "{path} was written, but the disk did not confirm that it is kept: {error}; check \
                 the disk and its free space, then try again"
            ),
            Self::Moved(file) => format!(
                "{} was moved, removed or replaced while it was in use, so nothing is stored any \
                 more; put the file back, or restart turnery to use what is at {path} now",
                file.display()
            ),
            Self::Stuck(patience) => format!(
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
                         folder of yours"
                    )
                }
                Some(_) | None => format!("{path}: {error}"),
            },
        };
        StoreError::Broken(text)
    }
}
