//! Walks a work tree to find nested repositories and links that lead out of it.

use super::super::bounded_walk::is_dangling_link_error;
use super::git_dir::{EntryKind, entry_kind, has_git_name, may_be_git_dir};
use crate::workspace::canonicalize;
use rustix::fs::Access;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Maximum number of entries of a work tree that are visited.
const MAX_ENTRIES: usize = 100_000;

/// Returns the folders below the work tree that contain a `.git`, relative to the top; `None` if that is
/// uncertain. A command that changes the index or the work tree can turn each of them, even ignored ones,
/// into a submodule and then enter it with its own configuration.
pub(super) fn find_repositories(work_tree: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk_entries(work_tree, MAX_ENTRIES, |path, is_link| {
        if !is_link && entry_kind(&work_tree.join(path).join(".git")) != EntryKind::Absent {
            found.push(path.to_owned());
        }
    })?;
    Some(found)
}

/// Returns true if a link leads out of the work tree and the roots, and also if that is uncertain.
pub(super) fn links_lead_outside(work_tree: &Path, roots: &[PathBuf]) -> bool {
    may_link_to(work_tree, &|target| {
        let mut inside = roots.iter().map(PathBuf::as_path).chain([work_tree]);
        !inside.any(|folder| target.starts_with(folder))
    })
}

/// Returns true if a link leads out of the work tree, into a git folder or nowhere yet, and also if that is uncertain.
pub(super) fn links_lead_astray(work_tree: &Path) -> bool {
    let is_git_dir = |part: &Path| has_git_name(part) || may_be_git_dir(part);
    let is_astray = |target: &Path| {
        let mut parts = target.ancestors().take_while(|part| *part != work_tree);
        !target.starts_with(work_tree) || parts.any(is_git_dir)
    };
    let mut found = false;
    let walked = walk_entries(work_tree, MAX_ENTRIES, |path, is_link| {
        let is_plain = |target: PathBuf| !is_astray(&target);
        found |= is_link && !canonicalize(&work_tree.join(path)).is_ok_and(is_plain);
    });
    found || walked.is_none()
}

/// Returns true if the target of a link in the work tree fulfils `is_met`, and also if that is uncertain.
pub(super) fn may_link_to(work_tree: &Path, is_met: &dyn Fn(&Path) -> bool) -> bool {
    let mut found = false;
    let walked = walk_entries(work_tree, MAX_ENTRIES, |path, is_link| {
        found |= is_link
            && match canonicalize(&work_tree.join(path)) {
                Ok(target) => is_met(&target),
                Err(error) => !is_dangling_link_error(&error),
            };
    });
    found || walked.is_none()
}

/// Calls `look` with each folder and each link below the work tree, relative to the top; `None` if a folder
/// cannot be listed or there are more entries than allowed. Links are not followed and `.git` is not entered.
fn walk_entries(
    work_tree: &Path,
    mut left: usize,
    mut look: impl FnMut(&Path, bool),
) -> Option<()> {
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let place = work_tree.join(&folder);
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            // Git has no permission to enter the folder either.
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
    fn repositories_are_found_at_any_depth_within_budget() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        for part in [".git/x/.git", "a/.git", "a/b/c/.git", "d"] {
            fs::create_dir_all(top.join(part)).unwrap();
        }
        fs::write(top.join("d/.git"), "gitdir: x\n").unwrap();
        std::os::unix::fs::symlink("../a", top.join("d/linked")).unwrap();
        let mut found = find_repositories(top).unwrap();
        found.sort();
        assert_eq!(found, ["a", "a/b/c", "d"].map(PathBuf::from));
        // `.git`, `a`, `d`; `.git`, `b`; `c`; `.git`; `.git`, `linked`.
        assert!(walk_entries(top, 9, |_, _| {}).is_some());
        assert!(walk_entries(top, 8, |_, _| {}).is_none());
    }
}
