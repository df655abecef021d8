//! The private folder that holds the candidates' folders, and the removal of those that killed processes have left
//! behind.

use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use turnery_engine::SessionId;

/// Beginning of the names of private folders.
const PREFIX: &str = "turnery-candidates-";
/// Name of the file that is locked while the folder is in use.
const LOCK: &str = "lock";
/// Name of the file that lists git's records of the work trees, one path on each line.
const RECORDS: &str = "records";
/// Number of characters of the session's id in the name of its folder.
const MAX_ID_CHARS: usize = 40;
/// Number of attempts to remove a folder in which processes that are being killed may still write.
const REMOVAL_ATTEMPTS: usize = 3;

/// Folder that only this user can read. Removed on drop, with git's records of the work trees in it.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    /// Locked until this is dropped, or the process is gone.
    _lock: File,
    /// Git's folders about the work trees: `.git/worktrees/NAME`.
    records: Vec<PathBuf>,
}

impl PrivateFolder {
    /// Creates the folder for the candidates of a session. Blocks.
    pub(super) fn create(parent: &Path, session_id: &SessionId) -> io::Result<Self> {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let id: String = session_id
            .as_str()
            .chars()
            .filter(is_plain)
            .take(MAX_ID_CHARS)
            .collect();
        // Links in the path would make git and the sandbox see different names.
        let parent = parent.canonicalize()?;
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{id}-"))
            .tempdir_in(parent)?;
        // Nobody takes an unlocked folder for a leftover: the lock gets its name once it is locked.
        let unnamed = folder.path().join("lock.new");
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        Ok(Self {
            path: folder.keep(),
            _lock: lock,
            records: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers git's record of a work tree, to be removed with the folder.
    pub(super) fn remember_record(&mut self, record: PathBuf) -> io::Result<()> {
        let list = self.path.join(RECORDS);
        let mut list = OpenOptions::new().create(true).append(true).open(list)?;
        writeln!(list, "{}", record.display())?;
        self.records.push(record);
        Ok(())
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        remove(&self.path, &self.records);
    }
}

/// Removes all private folders in `parent` that are not in use. Errors are logged. Blocks.
pub(super) fn remove_all(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_private = name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_private && let Some(_lock) = lock_leftover(&entry.path()) {
            let list = fs::read_to_string(entry.path().join(RECORDS)).unwrap_or_default();
            let records: Vec<PathBuf> = list.lines().map(PathBuf::from).collect();
            remove(&entry.path(), &records);
        }
    }
}

/// Locks a folder of this user that no process uses; `None` if there is none, or it is in use.
fn lock_leftover(path: &Path) -> Option<File> {
    let own = rustix::process::getuid().as_raw();
    let found = path.symlink_metadata().ok()?;
    if !found.is_dir() || found.uid() != own {
        return None;
    }
    let lock = File::open(path.join(LOCK)).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(lock)
}

/// Removes a private folder and git's records of the work trees in it.
fn remove(path: &Path, records: &[PathBuf]) {
    for record in records.iter().filter(|record| is_record(record, path)) {
        if let Err(error) = fs::remove_dir_all(record) {
            tracing::warn!("git's record {} is not removed: {error}", record.display());
        }
        // As git does once there is no other.
        let _ = record.parent().map(fs::remove_dir);
    }
    let mut attempts = (0..REMOVAL_ATTEMPTS).map(|_| fs::remove_dir_all(path));
    let removed = attempts.find(|removed| match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    });
    if removed.is_none() {
        tracing::warn!("the candidates' folder {} is not removed", path.display());
    }
}

/// Returns true if git's folder `record` is about a work tree in the private folder `path`.
fn is_record(record: &Path, path: &Path) -> bool {
    let named = fs::read_to_string(record.join("gitdir")).unwrap_or_default();
    record.parent().and_then(Path::file_name) == Some("worktrees".as_ref())
        && Path::new(named.trim_end()).starts_with(path)
}
