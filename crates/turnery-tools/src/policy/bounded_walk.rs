//! Walks the folders that a command may read, up to a maximum number of entries.

use crate::workspace::canonicalize;
use rustix::io::Errno;
use std::{collections::HashSet, io, path::Path};

/// Maximum number of entries visited for one command line.
pub(crate) const MAX_ENTRIES: usize = 5_000;

/// Returns true if an entry below the folder, or the target of a link there, fulfils `is_met`. Also true if
/// that is uncertain: a folder cannot be read, or there are more entries than the budget allows. Links to
/// folders are followed.
pub(crate) fn may_contain(
    folder: &Path,
    entry_budget: &mut usize,
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    may_contain_where(folder, entry_budget, &|_| true, is_met)
}

/// Like [`may_contain`], but skips the subfolders that `enters` rejects. Links to folders are followed
/// whatever `enters` says.
pub(crate) fn may_contain_where(
    folder: &Path,
    entry_budget: &mut usize,
    enters: &dyn Fn(&Path) -> bool,
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    let mut followed = HashSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            return true;
        };
        for entry in entries {
            let Ok((path, kind)) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))
            else {
                return true;
            };
            if *entry_budget == 0 || is_met(&path) {
                return true;
            }
            *entry_budget -= 1;
            if kind.is_dir() {
                if enters(&path) {
                    open.push(path);
                }
            } else if kind.is_symlink() {
                let target = match canonicalize(&path) {
                    Ok(target) => target,
                    Err(error) if is_dangling_link_error(&error) => continue,
                    Err(_) => return true,
                };
                if is_met(&target) {
                    return true;
                }
                if target.is_dir() && followed.insert(target.clone()) {
                    open.push(target);
                }
            }
        }
    }
    false
}

/// Returns true for the error of a link without a target. Other errors may mean a path that is too long for
/// the lookup but not for programs.
pub(crate) fn is_dangling_link_error(error: &io::Error) -> bool {
    let is_loop = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_loop || error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_once_within_budget() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("other")).unwrap();
        std::fs::write(root.join("other/file"), "").unwrap();
        std::os::unix::fs::symlink("..", root.join("a/b/up")).unwrap();
        let is_file = |path: &Path| path.ends_with("other/file");
        assert!(!may_contain(&root.join("a"), &mut 100, &is_file));
        assert!(may_contain(&root.join("a"), &mut 1, &is_file));
        std::os::unix::fs::symlink("../../other", root.join("a/b/link")).unwrap();
        assert!(may_contain(&root.join("a"), &mut 100, &is_file));
        assert!(may_contain(&root.join("missing"), &mut 100, &is_file));
    }

    #[test]
    fn unresolvable_link_counts_as_match() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a")).unwrap();
        let never = |_: &Path| false;
        for target in ["absent", "turns"] {
            std::os::unix::fs::symlink(target, root.join("a/turns")).unwrap();
            assert!(!may_contain(&root.join("a"), &mut 100, &never), "{target}");
            std::fs::remove_file(root.join("a/turns")).unwrap();
        }
        // For the program that opens it, this may exist.
        let link = root.join("a/link");
        std::os::unix::fs::symlink("/proc/self/cwd/absent", &link).unwrap();
        assert!(may_contain(&root.join("a"), &mut 100, &never));
        std::fs::remove_file(&link).unwrap();
        let deep = crate::workspace::make_path_too_long_to_look_up(&root);
        std::fs::write(deep.join("file"), "").unwrap();
        std::os::unix::fs::symlink(deep.join("file"), &link).unwrap();
        assert!(root.join("a/link").exists());
        assert!(may_contain(&root.join("a"), &mut 100, &never));
    }
}
