//! Manages the folder in which one runner plays all its cases, and removes it however the runner ends.
//!
//! The runner holds a lock in the folder while it lives. A later runner kills the processes of a dead runner
//! and removes its folder; a guard process does so at once. On a signal the runner cleans up itself.

use crate::peer::process::{kill_all, lock_spawning, marked_processes_below};
use std::{
    fs::{self, File},
    io, mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tempfile::{Builder, TempDir};

/// Prefix of the folder names.
pub const FOLDER_PREFIX: &str = "acp-cases-";
/// File in each folder that its runner has locked.
const LOCK_FILE: &str = "lock";
/// Age at which a folder without a lock counts as left behind, rather than as being created.
const STALE_AGE: Duration = Duration::from_hours(24);
/// Maximum number of rounds of killing processes, which may start others meanwhile, and removing their folder.
const CLEANUP_ROUNDS: usize = 200;

/// Folder of this process, while in use.
static CURRENT: Mutex<Weak<ScratchFolder>> = Mutex::new(Weak::new());

/// Folder of this process, removed when it is no longer in use.
#[derive(Debug)]
pub struct ScratchFolder {
    _folder: TempDir,
    path: PathBuf,
    /// Lock that is released however the process ends.
    _lock: File,
}

impl ScratchFolder {
    /// Returns the folder of this process. The first call creates the folder and removes those of dead runners.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn current() -> io::Result<Arc<Self>> {
        let mut present = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scratch) = present.upgrade() {
            return Ok(scratch);
        }
        let within = std::env::temp_dir();
        sweep_stale_folders(&within);
        let scratch = Arc::new(Self::new(&within)?);
        *present = Arc::downgrade(&scratch);
        Ok(scratch)
    }

    fn new(within: &Path) -> io::Result<Self> {
        let folder = TempDir::with_prefix_in(FOLDER_PREFIX, within)?;
        let path = folder.path().canonicalize()?;
        // The file gets its name only when locked, so that no other runner sees it unlocked.
        let unnamed = path.join("new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, path.join(LOCK_FILE))?;
        Ok(Self {
            _folder: folder,
            path,
            _lock: lock,
        })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder for one case.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create_case_folder(&self) -> io::Result<TempDir> {
        Builder::new().prefix("").tempdir_in(&self.path)
    }
}

/// Kills all processes of the cases and removes the folder. Afterwards nothing can be started and no case can
/// finish: the process must exit now.
pub fn close_current() {
    mem::forget(lock_spawning());
    let present = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scratch) = present.upgrade() {
        clean_up(&scratch.path);
    }
}

/// Kills all processes of the cases in a folder and removes the folder.
pub fn clean_up(folder: &Path) {
    for _ in 0..CLEANUP_ROUNDS {
        let left = marked_processes_below(folder);
        kill_all(&left);
        if left.is_empty() && (fs::remove_dir_all(folder).is_ok() || !folder.exists()) {
            return;
        }
    }
}

/// Removes the folders that no runner holds.
fn sweep_stale_folders(within: &Path) {
    let Ok(entries) = fs::read_dir(within) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry
            .file_name()
            .to_string_lossy()
            .starts_with(FOLDER_PREFIX)
        {
            continue;
        }
        // Processes are marked with the canonical path. Folders of other users are out of reach.
        let Ok(folder) = entry.path().canonicalize() else {
            continue;
        };
        let is_left = match File::open(folder.join(LOCK_FILE)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound && is_stale(&folder),
        };
        if is_left {
            clean_up(&folder);
        }
    }
}

fn is_stale(folder: &Path) -> bool {
    let modified = fs::metadata(folder).and_then(|data| data.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE_AGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::process::MARK_VARIABLE;
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Child, Command},
        time::SystemTime,
    };

    /// Starts a process that belongs to a case in this folder.
    fn spawn_case_process(folder: &Path) -> Child {
        let mut command = Command::new("sleep");
        let command = command.arg("1000").env(MARK_VARIABLE, folder.join("case"));
        command.spawn().expect("sleep")
    }

    fn entry_names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_folders_of_dead_runners_are_removed() {
        let within = tempfile::tempdir().unwrap();
        let within = within.path().canonicalize().unwrap();
        let alive = ScratchFolder::new(&within).unwrap();
        fs::create_dir(alive.path().join("case")).unwrap();
        let dead = within.join("acp-cases-dead");
        fs::create_dir_all(dead.join("case/home")).unwrap();
        fs::write(dead.join(LOCK_FILE), "").unwrap();
        fs::create_dir(within.join("acp-cases-beginning")).unwrap();
        let long_begun = within.join("acp-cases-long-begun");
        fs::create_dir(&long_begun).unwrap();
        let long_ago = SystemTime::now() - 2 * STALE_AGE;
        File::open(&long_begun)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        fs::create_dir(within.join("others")).unwrap();
        // This name begins with the name of the dead runner's folder.
        let beside = within.join("acp-cases-dead-not");
        let mut left = spawn_case_process(&dead);
        let (mut in_use, mut other) = (
            spawn_case_process(alive.path()),
            spawn_case_process(&beside),
        );

        sweep_stale_folders(&within);

        let alive_name = alive.path().file_name().unwrap().to_string_lossy();
        let mut expected = [&alive_name, "acp-cases-beginning", "others"];
        expected.sort_unstable();
        assert_eq!(entry_names(&within), expected);
        assert!(alive.path().join("case").is_dir());
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        for child in [&mut in_use, &mut other] {
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn folder_is_removed_with_its_last_user() {
        let within = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(within.path()).unwrap();
        let case = scratch.create_case_folder().unwrap();
        assert_eq!(case.path().parent(), Some(scratch.path()));
        assert_eq!(entry_names(within.path()).len(), 1);
        drop(case);
        drop(scratch);
        assert_eq!(entry_names(within.path()), [""; 0]);
    }
}
