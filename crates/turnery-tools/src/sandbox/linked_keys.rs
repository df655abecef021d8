//! Finds the keys that links in folders of keys lead to: people may keep the files themselves elsewhere.

use super::{
    closed,
    links::{ResolvedPath, links_within},
    places,
};
use std::{
    cell::OnceCell,
    collections::{HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

/// Of all folders of keys together no more than this is looked at, the upper levels first.
const MOST_ENTRIES: usize = 2048;

/// Search for the files and folders to which links in folders of keys lead, directly or further below.
pub(super) struct LinkedKeys<'a> {
    /// Where commands write: nothing there is a key. Without links.
    writable: &'a [PathBuf],
    /// Further folders of programs.
    toolchains: &'a [PathBuf],
    /// The person's home folder.
    home: Option<&'a Path>,
    /// Programs and their libraries: nothing there is a key. Found with the first link.
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

    /// Where the links in `keys` lead, those in folders below and behind links included. Of `profiles`, which
    /// applications fill, only the links that lie in them directly are followed.
    ///
    /// # Errors
    ///
    /// A folder whose links cannot be found because it is closed to its owner.
    pub(super) fn find(&self, keys: &[PathBuf], profiles: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
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
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    closed::check_listed(&folder, &error)?;
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
                    let followed = closed::follow(&path)?;
                    let Some(ResolvedPath { target, links }) =
                        followed.filter(|it| self.may_be_key(&it.target))
                    else {
                        continue;
                    };
                    // A command could remove the way that leads here.
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

    /// Whether a link may lead to a key here: the place lies in nothing that commands need, and holds nothing such.
    fn may_be_key(&self, target: &Path) -> bool {
        let programs = self.programs.get_or_init(|| self.programs());
        let needed = || self.writable.iter().chain(programs);
        let is_in_needed = needed().any(|it| target.starts_with(it));
        let is_above = |it: &Path| it.starts_with(target);
        !is_in_needed && !needed().any(|it| is_above(it)) && !self.home.is_some_and(is_above)
    }

    /// The folders of programs and their libraries. One that holds the home folder is left out, since it holds more.
    fn programs(&self) -> Vec<PathBuf> {
        let system = places::SYSTEM.iter().filter(|it| **it != places::SETTINGS);
        let toolchains = self
            .toolchains
            .iter()
            .filter_map(|it| it.canonicalize().ok());
        let all = system.map(PathBuf::from).chain(toolchains);
        all.filter(|it| !self.home.is_some_and(|home| home.starts_with(it)))
            .collect()
    }
}
