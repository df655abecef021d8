//! Where a path leads: links followed by hand, one component at a time, so that a path whose end
//! does not exist yet is followed as far as it does.

use super::PathRefused;
use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// A root with its links resolved. Must be an absolute folder that can be read.
pub(super) fn root(path: &Path) -> Result<PathBuf, PathRefused> {
    let refused = |reason: String| PathRefused {
        path: path.display().to_string(),
        reason,
    };
    if !path.is_absolute() {
        return Err(refused("is not an absolute path".to_owned()));
    }
    let resolved = fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused("does not exist".to_owned()),
        _ => refused(format!("cannot be used: {error}")),
    })?;
    if !resolved.is_dir() {
        return Err(refused("is not a folder".to_owned()));
    }
    fs::read_dir(&resolved).map_err(|error| refused(format!("cannot be read: {error}")))?;
    Ok(resolved)
}

/// Where `path` leads from `base`, which is resolved already. What cannot be looked at is kept as
/// it is written: opening it later tells why. No link in `/proc` is followed: to another process it leads elsewhere.
pub(super) fn follow(base: &Path, path: &str) -> Result<PathBuf, PathRefused> {
    let refused = |reason: &str| PathRefused {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if path.is_empty() {
        return Err(PathRefused {
            path: "the path".to_owned(),
            reason: "is empty".to_owned(),
        });
    }
    if path.contains('\0') {
        return Err(refused("has a NUL character in it"));
    }
    let mut resolved = base.to_owned();
    let mut ahead = VecDeque::new();
    queue(&mut ahead, &mut resolved, Path::new(path));
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        match step {
            Step::Up => {
                resolved.pop();
            }
            Step::Down(name) => {
                resolved.push(name);
                let target = match fs::read_link(&resolved) {
                    Ok(target) => target,
                    // By way of links the system may come here all the same.
                    Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                        return Err(refused("is too long to be followed"));
                    }
                    // No link, nothing there, or not to be looked at: kept as it is written.
                    Err(_) => continue,
                };
                if resolved.starts_with("/proc") {
                    return Err(refused("leads through /proc, elsewhere for each process"));
                }
                links += 1;
                if links > MOST_LINKS {
                    return Err(refused("goes round in circles through links"));
                }
                resolved.pop();
                queue(&mut ahead, &mut resolved, &target);
            }
        }
    }
    Ok(resolved)
}

/// Whether a path leads into a place that fulfils `is_in`. Also true when that is uncertain: nobody can look there now, or
/// its links are more than turnery follows, but not the system.
pub(crate) fn may_lead(path: &Path, is_in: &dyn Fn(&Path) -> bool) -> bool {
    match path.canonicalize() {
        Ok(target) => is_in(&target),
        // It may be there when it is used.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let target = path.to_str().map(|path| follow(Path::new("/"), path));
            target.is_none_or(|target| target.map_or(true, |target| is_in(&target)))
        }
        Err(_) => true,
    }
}

/// `path` with the first link in it replaced by what it holds; `None` if there is none.
pub(super) fn follow_first(path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    above.into_iter().find_map(|link| {
        let target = fs::read_link(link).ok()?;
        let rest = path.strip_prefix(link).ok()?;
        Some(clean(&link.parent()?.join(target).join(rest)))
    })
}

/// `path` without `.` and `..`, by its text alone.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                cleaned.push(component);
            }
        }
    }
    cleaned
}

enum Step {
    Up,
    Down(OsString),
}

/// Put the components of `path` before all that is ahead; an absolute one starts over at the top.
fn queue(ahead: &mut VecDeque<Step>, resolved: &mut PathBuf, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Prefix(_) | Component::RootDir => *resolved = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => ahead.push_front(Step::Up),
            Component::Normal(name) => ahead.push_front(Step::Down(name.to_owned())),
        }
    }
}

/// Makes a folder in `folder` that is reached through links, by a path without links that is too long to be looked up.
#[cfg(test)]
pub(crate) fn beyond_lookup(folder: &Path) -> PathBuf {
    let deep: PathBuf = std::iter::repeat_n("d".repeat(200), 9).collect();
    (0..3).fold(folder.to_owned(), |at, _| {
        fs::create_dir_all(at.join(&deep)).unwrap();
        std::os::unix::fs::symlink(&deep, at.join("l")).unwrap();
        at.join("l")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn path_that_is_too_long_to_be_looked_up_may_lead_anywhere() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [root, outside] = folders
            .each_ref()
            .map(|folder| folder.path().canonicalize().unwrap());
        fs::write(outside.join("secret"), "content").unwrap();
        let deep = beyond_lookup(&root);
        symlink(outside.join("secret"), deep.join("linked")).unwrap();
        // The system reads it.
        assert_eq!(fs::read_to_string(deep.join("linked")).unwrap(), "content");
        assert!(follow(&root, "l/l/l/linked").is_err());
        assert_eq!(
            follow(&root, "l").unwrap().parent(),
            root.join("l").canonicalize().unwrap().parent()
        );
        let is_in_root = |path: &Path| path.starts_with(&root);
        symlink(&deep, outside.join("into")).unwrap();
        symlink(root.join("absent"), outside.join("later")).unwrap();
        for (name, may) in [
            ("into", true),
            ("later/x", true),
            ("absent", false),
            ("secret", false),
        ] {
            assert_eq!(may_lead(&outside.join(name), &is_in_root), may, "{name}");
        }
    }
}
