//! Finds the repositories that lie in a work tree. A command that changes the index or the work tree can make a
//! submodule of each, ignored ones too, and then enters it with its own configuration.

use super::git_dir::{Kind, kind};
use rustix::fs::Access;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most files and folders of a work tree that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// Folders below the work tree that hold a `.git`, from its top; `None` if that is uncertain: there are more than
/// [`MOST_ENTRIES`], or a folder cannot be listed.
pub(super) fn repositories(work_tree: &Path) -> Option<Vec<PathBuf>> {
    repositories_within(work_tree, MOST_ENTRIES)
}

fn repositories_within(work_tree: &Path, mut left: usize) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let place = work_tree.join(&folder);
        let is_top = folder.as_os_str().is_empty();
        if !is_top && kind(&place.join(".git")) != Kind::Absent {
            found.push(folder.clone());
        }
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            // Git may not enter it either.
            Err(_) if rustix::fs::access(&place, Access::EXEC_OK).is_err() => continue,
            Err(_) => return None,
        };
        for entry in entries {
            left = left.checked_sub(1)?;
            let entry = entry.ok()?;
            if entry.file_type().ok()?.is_dir() && entry.file_name() != ".git" {
                open.push(folder.join(entry.file_name()));
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_found_at_every_depth_within_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        for part in [".git/x/.git", "a/.git", "a/b/c/.git", "d"] {
            fs::create_dir_all(top.join(part)).unwrap();
        }
        fs::write(top.join("d/.git"), "gitdir: x\n").unwrap();
        std::os::unix::fs::symlink("../a", top.join("d/linked")).unwrap();
        let mut found = repositories(top).unwrap();
        found.sort();
        assert_eq!(found, ["a", "a/b/c", "d"].map(PathBuf::from));
        // `.git`, `a`, `d`; `.git`, `b`; `c`; `.git`; `.git`, `linked`.
        assert!(repositories_within(top, 9).is_some());
        assert!(repositories_within(top, 8).is_none());
    }
}
