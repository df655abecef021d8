//! Determines what git ignores. A folder may come from an untrusted source, so an ignore file that is a link,
//! a pipe or a device is not opened (git does not follow such links either), and a huge one is not read.

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

/// A longer ignore file is disregarded. Unit: bytes.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// The ignore files that apply to a walk, read on the way down.
pub(super) struct IgnoreFiles {
    /// Files whose names begin with a dot are shown.
    show_hidden: bool,
    /// One per folder, from the outermost to the current one.
    levels: Mutex<Vec<FolderIgnoreFiles>>,
    global: Gitignore,
}

struct FolderIgnoreFiles {
    folder: PathBuf,
    /// `.ignore`, `.gitignore`, `.git/info/exclude`: the first that matches a path decides.
    files: [Gitignore; 3],
}

impl IgnoreFiles {
    /// Creates the rules for a walk from `start`. Ignore files of the folders above apply too, up to the top
    /// of the repository.
    pub(super) fn new(start: &Path, show_hidden: bool) -> Self {
        let mut above: Vec<&Path> = Vec::new();
        let mut folder = start;
        while !folder.join(".git").exists() {
            let Some(parent) = folder.parent() else {
                break;
            };
            above.push(parent);
            folder = parent;
        }
        let levels = above
            .into_iter()
            .rev()
            .map(FolderIgnoreFiles::read)
            .collect();
        Self {
            show_hidden,
            levels: Mutex::new(levels),
            global: GitignoreBuilder::new(start).build_global().0,
        }
    }

    /// Returns true if the walk skips this entry. Must be called once for each entry, in the order of the
    /// walk.
    pub(super) fn is_ignored(&self, entry: &DirEntry) -> bool {
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
            levels.push(FolderIgnoreFiles::read(folder));
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let by_file = |index: usize| {
            levels
                .iter()
                .rev()
                .map(|level: &FolderIgnoreFiles| level.files[index].matched(path, is_folder))
                .find(|found| !found.is_none())
        };
        let found = (0..3)
            .find_map(by_file)
            .unwrap_or_else(|| self.global.matched(path, is_folder));
        match found {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => !self.show_hidden && name.as_encoded_bytes().starts_with(b"."),
        }
    }
}

impl FolderIgnoreFiles {
    fn read(folder: &Path) -> Self {
        let file = |name: &str| parse_ignore_file(folder, &folder.join(name));
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

/// Returns the rules of one file for what is in `folder`; no rules if it cannot be read.
fn parse_ignore_file(folder: &Path, path: &Path) -> Gitignore {
    let Some(bytes) = read_bounded(path) else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&bytes)
        .trim_start_matches('\u{feff}')
        .lines()
    {
        // A line that is not a glob has no effect.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    // Most folders have none, and checking is cheaper than opening.
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    let file = disk::open(path).ok()?;
    file.take(MAX_IGNORE_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 <= MAX_IGNORE_FILE_BYTES).then_some(bytes)
}
