//! Notices that the database was moved, removed or replaced while it is open.
//!
//! SQLite goes on writing to the file that it has opened, wherever that is by now. Nobody would find
//! again what is stored there.

use super::fault::Fault;
use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

/// Device and inode of a file.
type FileId = (u64, u64);

/// Database, log and shared memory as they were when they were opened.
pub(super) struct OpenFiles {
    database: (PathBuf, FileId),
    beside: [(PathBuf, Option<FileId>); 2],
}

impl OpenFiles {
    /// Looks at the path before SQLite opens it.
    pub(super) fn before_open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            database: (path.to_owned(), file_id(path)?),
            beside: [(log_of(path), None), (with_suffix(path, "-shm"), None)],
        })
    }

    /// Compares the paths with the files that are open. Those beside the database are known from the
    /// first time that they are there: SQLite keeps them while there is a connection.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        let (path, id) = &self.database;
        if file_id(path).ok() != Some(*id) {
            return Err(Fault::Moved(path.clone()));
        }
        for (path, known) in &mut self.beside {
            let found = file_id(path).ok();
            if known.is_some() && found != *known {
                return Err(Fault::Moved(path.clone()));
            }
            *known = found;
        }
        Ok(())
    }
}

/// Path of the write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
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

/// An open file can be neither removed nor replaced there.
#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::metadata(path).map(|_| (0, 0))
}
