//! Finds the keys that links in folders of keys lead to: people may keep the files themselves elsewhere.

use std::{
    collections::{HashSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

/// Of all folders of keys together no more than this is looked at, the upper levels first.
const MOST_ENTRIES: usize = 2048;

/// Search for the files and folders to which links in folders of keys lead, directly or further below.
pub(super) struct LinkedKeys<'a> {
    /// Where commands write: nothing there is a key. Without links.
    pub(super) writable: &'a [PathBuf],
    /// Programs and their libraries: nothing there is a key.
    pub(super) programs: &'a [PathBuf],
    /// The person's home folder.
    pub(super) home: Option<&'a Path>,
}

impl LinkedKeys<'_> {
    /// Where the links in `keys` lead, those in folders below and behind links included. Of `profiles`, which
    /// applications fill, only the links that lie in them directly are followed.
    pub(super) fn find(&self, keys: &[PathBuf], profiles: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let deep = keys.iter().filter(|it| !profiles.contains(it));
        let deep = deep.map(|it| (it.clone(), true));
        let shallow = profiles.iter().map(|it| (it.clone(), false));
        let mut folders: VecDeque<(PathBuf, bool)> = deep.chain(shallow).collect();
        let mut seen = HashSet::new();
        let mut left = MOST_ENTRIES;
        while let Some((folder, is_deep)) = folders.pop_front() {
            if left == 0 || !seen.insert(folder.clone()) {
                continue;
            }
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            for entry in entries.take(left).flatten() {
                left -= 1;
                let mut path = entry.path();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_symlink() {
                    let target = path.canonicalize().ok();
                    let Some(target) = target.filter(|it| self.may_be_key(it)) else {
                        continue;
                    };
                    found.push(target.clone());
                    path = target;
                } else if !kind.is_dir() {
                    continue;
                }
                if is_deep {
                    folders.push_back((path, true));
                }
            }
        }
        found
    }

    /// Whether a link may lead to a key here: the place lies in nothing that commands need, and holds nothing such.
    fn may_be_key(&self, target: &Path) -> bool {
        let needed = || self.writable.iter().chain(self.programs);
        let is_in_needed = needed().any(|it| target.starts_with(it));
        let is_above = |it: &Path| it.starts_with(target);
        !is_in_needed && !needed().any(|it| is_above(it)) && !self.home.is_some_and(is_above)
    }
}
