//! Walks a work tree for repositories in it and for links that lead out of it.

use super::super::walk::leads_nowhere;
use super::git_dir::{EntryKind, kind};
use rustix::fs::Access;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most files and folders of a work tree that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// Folders below the work tree that hold a `.git`, from its top; `None` if that is uncertain. A command that changes
/// the index or the work tree can make a submodule of each, ignored ones too, and then enters it with its own
/// configuration.
pub(super) fn repositories(work_tree: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(work_tree, MOST_ENTRIES, |path, is_link| {
        if !is_link && kind(&work_tree.join(path).join(".git")) != EntryKind::Absent {
            found.push(path.to_owned());
        }
    })?;
    Some(found)
}

/// Whether a link leads out of the work tree and of the roots. Also true when that is uncertain.
pub(super) fn links_lead_outside(work_tree: &Path, roots: &[PathBuf]) -> bool {
    let mut is_led = false;
    let walked = walk(work_tree, MOST_ENTRIES, |path, is_link| {
        is_led |= is_link
            && match work_tree.join(path).canonicalize() {
                Ok(target) => {
                    let mut inside = roots.iter().map(PathBuf::as_path).chain([work_tree]);
                    !inside.any(|folder| target.starts_with(folder))
                }
                Err(error) => !leads_nowhere(&error),
            };
    });
    is_led || walked.is_none()
}

/// Calls `look` with each folder and each link below the work tree, from its top; `None` if there are more than `left`
/// entries, or a folder cannot be listed. No link is followed, and no `.git` entered.
fn walk(work_tree: &Path, mut left: usize, mut look: impl FnMut(&Path, bool)) -> Option<()> {
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let place = work_tree.join(&folder);
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            // Git may not enter it either.
            Err(_) if rustix::fs::access(&place, Access::EXEC_OK).is_err() => continue,
            Err(_) => return None,
        };
        for entry in entries {
            left = left.checked_sub(1)?;
            let entry = entry.ok()?;
            let found = entry.file_type().ok()?;
            let path = folder.join(entry.file_name());
            if found.is_symlink() {
                look(&path, true);
            } else if found.is_dir() && entry.file_name() != ".git" {
                look(&path, false);
                open.push(path);
            }
        }
    }
    Some(())
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
        assert!(walk(top, 9, |_, _| {}).is_some());
        assert!(walk(top, 8, |_, _| {}).is_none());
    }
}
