//! Resolves links, except those that a command may have created.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Maximum number of links in one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Returns an absolute path without links. Returns `None` if the path does not exist, or if a link on the way
/// is in `writable` or below, since a command could lead turnery anywhere with it. `writable` contains no
/// links.
pub(super) fn follow_links(path: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    try_follow_links(path, writable).ok().map(|it| it.target)
}

/// A path without links, and the links on the way to it.
#[derive(Clone)]
pub(super) struct ResolvedPath {
    pub(super) target: PathBuf,
    /// Each named by its link-free folder and its own name.
    pub(super) links: Vec<PathBuf>,
}

/// Returns the links that are in one of `folders` or below.
pub(super) fn links_within(
    links: Vec<PathBuf>,
    folders: &[PathBuf],
) -> impl Iterator<Item = PathBuf> {
    let is_within = move |link: &PathBuf| folders.iter().any(|it| link.starts_with(it));
    links.into_iter().filter(is_within)
}

/// Resolves a path like [`follow_links`], and returns the links on the way too, or why it cannot be resolved.
///
/// # Errors
///
/// The path on the way that cannot be examined or is such a link, and the reason.
pub(super) fn try_follow_links(
    path: &Path,
    writable: &[PathBuf],
) -> Result<ResolvedPath, (PathBuf, io::Error)> {
    let mut resolved = PathBuf::from("/");
    let mut rest = reversed_names(path);
    let mut links = Vec::new();
    while let Some(name) = rest.pop() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(name);
        let found = fs::symlink_metadata(&next);
        let target = match found.map(|found| found.is_symlink()) {
            Ok(false) => {
                resolved = next;
                continue;
            }
            Ok(true) => fs::read_link(&next),
            Err(error) => Err(error),
        };
        if links.len() == MAX_LINKS || writable.iter().any(|it| resolved.starts_with(it)) {
            return Err((next, io::ErrorKind::InvalidInput.into()));
        }
        let target = match target {
            Ok(target) => target,
            Err(error) => return Err((next, error)),
        };
        links.push(next);
        if target.is_absolute() {
            resolved = PathBuf::from("/");
        }
        rest.extend(reversed_names(&target));
    }
    Ok(ResolvedPath {
        target: resolved,
        links,
    })
}

/// Returns the components of a path, last one first.
fn reversed_names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_writable_folders_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for name in ["project/d", "target/inner", "mine"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        symlink(top.join("target"), top.join("project/link")).unwrap();
        symlink("../target/inner", top.join("mine/link")).unwrap();
        symlink("loop", top.join("mine/loop")).unwrap();
        let project = [top.join("project")];
        let expected: [(&str, Option<&str>, Option<&str>); 7] = [
            ("project/link", Some("target"), None),
            ("project/link/inner", Some("target/inner"), None),
            ("project/link/..", Some(""), None),
            ("project/./d", Some("project/d"), Some("project/d")),
            ("mine/link", Some("target/inner"), Some("target/inner")),
            ("mine/loop", None, None),
            ("mine/absent", None, None),
        ];
        for (path, freely, within) in expected {
            let wanted = |it: Option<&str>| it.map(|it| top.join(it));
            let path = top.join(path);
            assert_eq!(follow_links(&path, &[]), wanted(freely), "{path:?}");
            assert_eq!(follow_links(&path, &project), wanted(within), "{path:?}");
        }
    }
}
