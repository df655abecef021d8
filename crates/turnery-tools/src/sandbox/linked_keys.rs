//! Finds the keys that links in key folders lead to, since users may keep the files themselves elsewhere.

use super::{
    known_paths,
    links::{ResolvedPath, links_within},
    unreadable_folders,
};
use std::{
    cell::OnceCell,
    collections::{HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

/// Maximum number of entries examined in all key folders together, upper levels first.
const MAX_ENTRIES: usize = 2048;

/// Searches for the files and folders to which links in key folders lead, directly or further below.
pub(super) struct LinkedKeys<'a> {
    /// Paths that commands can write, links resolved; they contain no keys.
    writable: &'a [PathBuf],
    /// Additional folders of programs.
    toolchains: &'a [PathBuf],
    /// The user's home folder.
    home: Option<&'a Path>,
    /// Programs and their libraries, which contain no keys. Determined at the first link.
    programs: OnceCell<Vec<PathBuf>>,
}

impl<'a> LinkedKeys<'a> {
    pub(super) fn new(
        writable: &'a [PathBuf],
        toolchains: &'a [PathBuf],
        home: Option<&'a Path>,
    ) -> Self {
        Self {
            writable,
            toolchains,
            home,
            programs: OnceCell::new(),
        }
    }

    /// Returns the targets of links in `keys`, including links in subfolders and behind links. In `profiles`,
    /// which applications fill, only direct links are followed.
    ///
    /// # Errors
    ///
    /// Fails if links cannot be found because a folder is closed to its owner.
    pub(super) fn find_targets(
        &self,
        keys: &[PathBuf],
        profiles: &[PathBuf],
    ) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let deep = keys.iter().filter(|it| !profiles.contains(it));
        let deep = deep.map(|it| (it.clone(), true));
        let shallow = profiles.iter().map(|it| (it.clone(), false));
        let mut folders: VecDeque<(PathBuf, bool)> = deep.chain(shallow).collect();
        let mut seen = HashSet::new();
        let mut left = MAX_ENTRIES;
        while let Some((folder, is_deep)) = folders.pop_front() {
            if left == 0 || !seen.insert(folder.clone()) {
                continue;
            }
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    unreadable_folders::check_listing(&folder, &error)?;
                    continue;
                }
            };
            for entry in entries.take(left).flatten() {
                left -= 1;
                let mut path = entry.path();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_symlink() {
                    let followed = unreadable_folders::follow_link(&path)?;
                    let Some(ResolvedPath { target, links }) =
                        followed.filter(|it| self.may_be_key(&it.target))
                    else {
                        continue;
                    };
                    // A command could remove the link that leads here.
                    found.extend(links_within(links, self.writable));
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
        Ok(found)
    }

    /// Returns true if a link's target may be a key: it neither is in a folder that commands need nor
    /// contains one.
    fn may_be_key(&self, target: &Path) -> bool {
        let programs = self.programs.get_or_init(|| self.program_folders());
        let needed = || self.writable.iter().chain(programs);
        let is_in_needed = needed().any(|it| target.starts_with(it));
        let is_above = |it: &Path| it.starts_with(target);
        !is_in_needed && !needed().any(|it| is_above(it)) && !self.home.is_some_and(is_above)
    }

    /// Returns the folders of programs and their libraries, except those that contain the home folder.
    fn program_folders(&self) -> Vec<PathBuf> {
        let system = known_paths::SYSTEM_FOLDERS
            .iter()
            .filter(|it| **it != known_paths::SYSTEM_CONFIG);
        let toolchains = self
            .toolchains
            .iter()
            .filter_map(|it| it.canonicalize().ok());
        let all = system.map(PathBuf::from).chain(toolchains);
        all.filter(|it| !self.home.is_some_and(|home| home.starts_with(it)))
            .collect()
    }
}
