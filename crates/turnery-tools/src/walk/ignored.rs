//! Ignored: what git ignores, read from the ignore files themselves. A folder may come from anybody,
//! so an ignore file that is a link, a pipe or a device is not opened (git does not follow such links
//! either), and one that is huge is not read.

use crate::workspace::disk;
use ignore::{
    DirEntry, Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{
    fs::{self, Metadata},
    io::Read as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A longer ignore file is left out of account. Unit: bytes.
const LONGEST: u64 = 1024 * 1024;

/// The ignore files that bear on a walk, read as it goes down.
pub(super) struct Ignored {
    /// Whether files whose names begin with a dot are shown.
    hidden: bool,
    /// One per folder, from the outermost to where the walk is.
    levels: Mutex<Vec<Level>>,
    global: Gitignore,
}

struct Level {
    folder: PathBuf,
    /// `.ignore`, `.gitignore`, `.git/info/exclude`: the first that knows a path decides.
    files: [Gitignore; 3],
}

impl Ignored {
    /// For a walk that begins in `start`: files of the folders above it count, up to that of the
    /// repository.
    pub(super) fn new(start: &Path, hidden: bool) -> Self {
        let mut above: Vec<&Path> = Vec::new();
        let mut folder = start;
        while !folder.join(".git").exists() {
            let Some(parent) = folder.parent() else {
                break;
            };
            above.push(parent);
            folder = parent;
        }
        let levels = above.into_iter().rev().map(Level::read).collect();
        Self {
            hidden,
            levels: Mutex::new(levels),
            global: GitignoreBuilder::new(start).build_global().0,
        }
    }

    /// Whether the walk leaves this out. To be asked of each entry once, in the order of the walk.
    pub(super) fn leaves_out(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        while levels
            .last()
            .is_some_and(|level| !folder.starts_with(&level.folder))
        {
            levels.pop();
        }
        if levels.last().is_none_or(|level| level.folder != folder) {
            levels.push(Level::read(folder));
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let by_file = |index: usize| {
            levels
                .iter()
                .rev()
                .map(|level: &Level| level.files[index].matched(path, is_folder))
                .find(|found| !found.is_none())
        };
        let found = (0..3)
            .find_map(by_file)
            .unwrap_or_else(|| self.global.matched(path, is_folder));
        match found {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => !self.hidden && name.as_encoded_bytes().starts_with(b"."),
        }
    }
}

impl Level {
    fn read(folder: &Path) -> Self {
        let file = |name: &str| rules(folder, &folder.join(name));
        Self {
            files: [
                file(".ignore"),
                file(".gitignore"),
                file(".git/info/exclude"),
            ],
            folder: folder.to_owned(),
        }
    }
}

/// The rules of one file about what lies in `folder`; none when it cannot be read.
fn rules(folder: &Path, path: &Path) -> Gitignore {
    let Some(bytes) = read(path) else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&bytes)
        .trim_start_matches('\u{feff}')
        .lines()
    {
        // A line that is no glob hides nothing.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // Most folders have none: one look is cheaper than opening.
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    let file = disk::open(path).ok()?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LONGEST).then_some(bytes)
}
