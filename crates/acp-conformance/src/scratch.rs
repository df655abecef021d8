//! Scratch: the folder in which one runner plays all its cases, and what becomes of it however the runner ends.
//!
//! The runner holds a lock in it as long as it lives. Who starts later ends what a runner that is dead has left
//! running, and removes its folder; a guard process does so at once. On a signal the runner does it itself.

use crate::peer::process::{beginning, end, marked_below};
use std::{
    fs::{self, File},
    io, mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tempfile::{Builder, TempDir};

/// What the names of these folders begin with.
pub(crate) const NAMES: &str = "acp-cases-";
/// The file in each of them that its runner has locked.
const LOCK: &str = "lock";
/// A folder without a lock is one that is just being made, or is left of a runner that got no further.
const MADE: Duration = Duration::from_hours(24);
/// So often is looked for what a process started while it was being ended, and a folder removed that it wrote into.
const ROUNDS: usize = 200;

/// The one of this process, as long as somebody needs it.
static PRESENT: Mutex<Weak<Scratch>> = Mutex::new(Weak::new());

/// The folder of this process. It goes when nobody needs it any more.
#[derive(Debug)]
pub struct Scratch {
    _folder: TempDir,
    path: PathBuf,
    /// Let go of when the process ends, in whatever way.
    _lock: File,
}

impl Scratch {
    /// The folder of this process; the first who asks has it made, and those of dead runners cleared.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn present() -> io::Result<Arc<Self>> {
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scratch) = present.upgrade() {
            return Ok(scratch);
        }
        let within = std::env::temp_dir();
        sweep(&within);
        let scratch = Arc::new(Self::new(&within)?);
        *present = Arc::downgrade(&scratch);
        Ok(scratch)
    }

    fn new(within: &Path) -> io::Result<Self> {
        let folder = TempDir::with_prefix_in(NAMES, within)?;
        let path = folder.path().canonicalize()?;
        // It gets its name when it is locked: nobody sees it otherwise.
        let unnamed = path.join("new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, path.join(LOCK))?;
        Ok(Self {
            _folder: folder,
            path,
            _lock: lock,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for one case in it.
    pub(crate) fn case(&self) -> io::Result<TempDir> {
        Builder::new().prefix("").tempdir_in(&self.path)
    }
}

/// End all that this process has started for its cases, and remove its folder. From here on nothing is started
/// any more, and no case comes to an end: the process must end now.
pub fn close() {
    mem::forget(beginning());
    let present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scratch) = present.upgrade() {
        clear(&scratch.path);
    }
}

/// End all that runs in this folder, and remove it.
pub fn clear(folder: &Path) {
    for _ in 0..ROUNDS {
        let left = marked_below(folder);
        end(&left);
        if left.is_empty() && (fs::remove_dir_all(folder).is_ok() || !folder.exists()) {
            return;
        }
    }
}

/// Clear the folders that no runner holds.
fn sweep(within: &Path) {
    let Ok(entries) = fs::read_dir(within) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(NAMES) {
            continue;
        }
        // The path that its processes bear as their mark. Those of other users cannot be had.
        let Ok(folder) = entry.path().canonicalize() else {
            continue;
        };
        let is_left = match File::open(folder.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound && is_old(&folder),
        };
        if is_left {
            clear(&folder);
        }
    }
}

fn is_old(folder: &Path) -> bool {
    let modified = fs::metadata(folder).and_then(|data| data.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > MADE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::process::MARK;
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Child, Command},
        time::SystemTime,
    };

    /// A process that belongs to a case in this folder.
    fn running(folder: &Path) -> Child {
        let mut command = Command::new("sleep");
        let command = command.arg("1000").env(MARK, folder.join("case"));
        command.spawn().expect("sleep")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_dead_runner_left_is_cleared_and_what_a_live_one_has_is_not() {
        let within = tempfile::tempdir().unwrap();
        let within = within.path().canonicalize().unwrap();
        let alive = Scratch::new(&within).unwrap();
        fs::create_dir(alive.path().join("case")).unwrap();
        let dead = within.join("acp-cases-dead");
        fs::create_dir_all(dead.join("case/home")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::create_dir(within.join("acp-cases-beginning")).unwrap();
        let long_begun = within.join("acp-cases-long-begun");
        fs::create_dir(&long_begun).unwrap();
        let long_ago = SystemTime::now() - 2 * MADE;
        File::open(&long_begun)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        fs::create_dir(within.join("others")).unwrap();
        // Its name begins as that of the dead one.
        let beside = within.join("acp-cases-dead-not");
        let mut left = running(&dead);
        let (mut in_use, mut other) = (running(alive.path()), running(&beside));

        sweep(&within);

        let alive_name = alive.path().file_name().unwrap().to_string_lossy();
        let mut expected = [&alive_name, "acp-cases-beginning", "others"];
        expected.sort_unstable();
        assert_eq!(names(&within), expected);
        assert!(alive.path().join("case").is_dir());
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        for child in [&mut in_use, &mut other] {
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_folder_goes_with_the_last_who_needs_it() {
        let within = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(within.path()).unwrap();
        let case = scratch.case().unwrap();
        assert_eq!(case.path().parent(), Some(scratch.path()));
        assert_eq!(names(within.path()).len(), 1);
        drop(case);
        drop(scratch);
        assert_eq!(names(within.path()), [""; 0]);
    }
}
