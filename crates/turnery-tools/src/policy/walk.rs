//! Walks the folders that a command may read, within a bound.

use std::{collections::HashSet, path::Path};

/// Most entries that are looked at for one command line.
pub(crate) const MOST_ENTRIES: usize = 5_000;

/// Whether an entry below the folder, or the target of a link there, fulfils `is_met`. Also true when that is
/// uncertain: a folder cannot be read, or there are more than `left` entries. Links to folders are followed.
pub(crate) fn may_contain(folder: &Path, left: &mut usize, is_met: &dyn Fn(&Path) -> bool) -> bool {
    may_contain_where(folder, left, &|_| true, is_met)
}

/// Like [`may_contain`], in those folders that fulfil `enters`.
pub(crate) fn may_contain_where(
    folder: &Path,
    left: &mut usize,
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
            if *left == 0 || is_met(&path) {
                return true;
            }
            *left -= 1;
            if kind.is_dir() {
                if enters(&path) {
                    open.push(path);
                }
            } else if kind.is_symlink() {
                // Links that lead nowhere show nothing.
                let Ok(target) = path.canonicalize() else {
                    continue;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_once_and_the_bound_is_kept() {
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
}
