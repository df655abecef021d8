//! Detects that the database was moved, removed or replaced while open.
//!
//! SQLite keeps writing to the file that it opened, wherever that is now, so data stored there would be lost.

use super::job_error::JobError;
use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// Device and inode of a file.
type FileId = (u64, u64);

/// File that the first connection of a store opened. All others must open the same.
#[derive(Debug, Default)]
pub(super) struct DatabaseIdentity(OnceLock<FileId>);

impl DatabaseIdentity {
    /// Fails if the path leads to another file, or to none.
    pub(super) fn check(&self, path: &Path) -> Result<(), JobError> {
        match self.0.get() {
            Some(known) if file_id(path).ok() != Some(*known) => {
                Err(JobError::Moved(path.to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records the file of the first connection. Fails if it is not that of this one.
    pub(super) fn record(&self, files: &OpenFiles) -> Result<(), JobError> {
        let (path, id) = &files.database;
        match self.0.get_or_init(|| *id) == id {
            true => Ok(()),
            false => Err(JobError::Moved(path.clone())),
        }
    }
}

/// Identities of the database, log and shared memory when they were opened.
pub(super) struct OpenFiles {
    database: (PathBuf, FileId),
    sidecars: [(PathBuf, Option<FileId>); 2],
}

impl OpenFiles {
    /// Records the file at the path before SQLite opens it.
    pub(super) fn before_open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            database: (path.to_owned(), file_id(path)?),
            sidecars: [(wal_path(path), None), (with_suffix(path, "-shm"), None)],
        })
    }

    /// Compares the paths with the open files. The files beside the database are recorded when they first
    /// exist: SQLite keeps them while there is a connection.
    pub(super) fn check(&mut self) -> Result<(), JobError> {
        let (path, id) = &self.database;
        if file_id(path).ok() != Some(*id) {
            return Err(JobError::Moved(path.clone()));
        }
        for (path, known) in &mut self.sidecars {
            let found = file_id(path).ok();
            if known.is_some() && found != *known {
                return Err(JobError::Moved(path.clone()));
            }
            *known = found;
        }
        Ok(())
    }
}

/// Path of the write-ahead log of a database.
pub(super) fn wal_path(database: &Path) -> PathBuf {
    with_suffix(database, "-wal")
}

fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(suffix);
    path.into()
}

#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// An open file can be neither removed nor replaced on this platform.
#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::metadata(path).map(|_| (0, 0))
}
