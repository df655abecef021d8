//! Resolves links one component at a time, so that a path whose end does not exist yet is resolved as far as
//! it exists.

use super::PathError;
use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Maximum number of links, as in Linux.
const MAX_LINKS: usize = 40;

/// Resolves the links of a root. Fails unless it is an absolute, readable folder.
pub(super) fn resolve_root(path: &Path) -> Result<PathBuf, PathError> {
    let refused = |reason: String| PathError {
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

/// Resolves `path` from `base`, which is resolved already. Components that cannot be examined are kept as
/// written; opening the path later reports why. Links in `/proc` are not followed, since they lead elsewhere
/// for another process.
pub(crate) fn resolve_path(base: &Path, path: &str) -> Result<PathBuf, PathError> {
    let refused = |reason: &str| PathError {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if path.is_empty() {
        return Err(PathError {
            path: "the path".to_owned(),
            reason: "is empty".to_owned(),
        });
    }
    if path.contains('\0') {
        return Err(refused("has a NUL character in it"));
    }
    walk_links(base, Path::new(path), false, &mut Vec::new())
        .map_err(|error| refused(error.reason()))
}

/// Returns the other paths of a file, one for each link that `path` leads through: the location of the link,
/// then the components still to come. Replacing one of the links replaces the file. `path` is absolute.
pub(crate) fn names_through_links(path: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    let resolved = walk_links(Path::new("/"), path, false, &mut names);
    names.extend(resolved.ok());
    names
}

/// Returns the path of an existing file with its links resolved, as [`Path::canonicalize`] does, except that a path that
/// leads through a link of a process in `/proc` (`/proc/self/cwd`) is an error of another kind than `NotFound`: turnery
/// and the program that opens the path would find different files. `path` is absolute.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match walk_links(Path::new("/"), path, true, &mut Vec::new()) {
        Err(error @ LinkError::Process) => Err(io::Error::other(error.reason())),
        // The system tells what else is wrong.
        Ok(_) | Err(LinkError::TooLong | LinkError::Loop) => path.canonicalize(),
    }
}

/// Returns true for a link in `/proc`, or in another place where that is mounted, as in containers.
fn is_of_process(link: &Path) -> bool {
    link.starts_with("/proc") || is_on_procfs(link.parent().unwrap_or(link))
}

#[cfg(target_os = "linux")]
fn is_on_procfs(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|it| it.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_on_procfs(_folder: &Path) -> bool {
    false
}

/// Reason why the links of a path are not followed.
enum LinkError {
    TooLong,
    Process,
    Loop,
}

impl LinkError {
    fn reason(&self) -> &'static str {
        match self {
            Self::TooLong => "is too long to be followed",
            Self::Process => "leads through /proc, elsewhere for each process",
            Self::Loop => "leads through a loop of links",
        }
    }
}

/// Resolves the links of `path`, which is relative to the resolved folder `base` or absolute. Adds to
/// `names` the path of the file at each link. Links in `/proc` are an error, except, if `follows_proc`,
/// those directly in it, such as `/proc/self`.
fn walk_links(
    base: &Path,
    path: &Path,
    follows_proc: bool,
    names: &mut Vec<PathBuf>,
) -> Result<PathBuf, LinkError> {
    let mut resolved = base.to_owned();
    let mut ahead = VecDeque::new();
    push_components(&mut ahead, &mut resolved, path);
    let mut links = 0;
    // Number of components of `resolved` that do not exist. What would be below them is not looked up.
    let mut missing = 0_usize;
    while let Some(step) = ahead.pop_front() {
        match step {
            PathStep::Up => {
                resolved.pop();
                missing = missing.saturating_sub(1);
            }
            PathStep::Down(name) if missing > 0 => {
                resolved.push(name);
                missing += 1;
            }
            PathStep::Down(name) => {
                resolved.push(name);
                let target = match fs::read_link(&resolved) {
                    Ok(target) => target,
                    // The system may still reach the file through links.
                    Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                        return Err(LinkError::TooLong);
                    }
                    // Not a link.
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => continue,
                    // A process that begins later may have it.
                    Err(_) if is_of_process(&resolved) => return Err(LinkError::Process),
                    // Does not exist, or cannot be examined: kept as written.
                    Err(error) => {
                        missing = usize::from(error.kind() == io::ErrorKind::NotFound);
                        continue;
                    }
                };
                let is_top = follows_proc && resolved.parent() == Some(Path::new("/proc"));
                if is_of_process(&resolved) && !is_top {
                    return Err(LinkError::Process);
                }
                links += 1;
                if links > MAX_LINKS {
                    return Err(LinkError::Loop);
                }
                let rest = ahead.iter().map(|step| match step {
                    PathStep::Up => OsStr::new(".."),
                    PathStep::Down(name) => name,
                });
                let name = resolved.join(rest.collect::<PathBuf>());
                names.push(normalise_lexically(&name));
                resolved.pop();
                push_components(&mut ahead, &mut resolved, &target);
            }
        }
    }
    Ok(resolved)
}

/// Returns true if a path leads, or may lead, to a place for which `is_in` holds. It may if it cannot be
/// examined now, or if it has more links than turnery, but not the system, follows.
pub(crate) fn may_lead_into(path: &Path, is_in: &dyn Fn(&Path) -> bool) -> bool {
    match canonicalize(path) {
        Ok(target) => is_in(&target),
        // The target may exist by the time it is used.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let target = path.to_str().map(|path| resolve_path(Path::new("/"), path));
            target.is_none_or(|target| target.map_or(true, |target| is_in(&target)))
        }
        Err(_) => true,
    }
}

/// Removes `.` and `..` from `path` by its text alone.
pub(crate) fn normalise_lexically(path: &Path) -> PathBuf {
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

enum PathStep {
    Up,
    Down(OsString),
}

/// Puts the components of `path` before the remaining ones; an absolute path restarts at the top.
fn push_components(ahead: &mut VecDeque<PathStep>, resolved: &mut PathBuf, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Prefix(_) | Component::RootDir => *resolved = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => ahead.push_front(PathStep::Up),
            Component::Normal(name) => ahead.push_front(PathStep::Down(name.to_owned())),
        }
    }
}

/// Creates a folder deep below `folder` whose link-free path is too long to look up, and returns a short
/// path to it that leads through links.
#[cfg(test)]
pub(crate) fn make_path_too_long_to_look_up(folder: &Path) -> PathBuf {
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

    #[cfg(target_os = "linux")]
    #[test]
    fn links_of_processes_are_known_by_their_file_system() {
        assert!(is_on_procfs(Path::new("/proc/self/task")));
        assert!(!is_on_procfs(Path::new("/")));
        assert!(canonicalize(Path::new("/proc/self/cwd/.")).is_err());
        assert!(canonicalize(Path::new("/proc/self/cmdline")).is_ok());
        // No process has this number.
        assert!(resolve_path(Path::new("/"), "/proc/4194305/cwd/x").is_err());
        let later = canonicalize(Path::new("/proc/4194305/cwd/x")).unwrap_err();
        assert_ne!(later.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn link_whose_name_is_no_text_is_followed() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let link = top.join(OsStr::from_bytes(b"a\xff.fish"));
        symlink("target", &link).unwrap();
        assert_eq!(names_through_links(&link), [link, top.join("target")]);
    }

    #[test]
    fn path_too_long_to_look_up_may_lead_anywhere() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [root, outside] = folders
            .each_ref()
            .map(|folder| folder.path().canonicalize().unwrap());
        fs::write(outside.join("secret"), "content").unwrap();
        let deep = make_path_too_long_to_look_up(&root);
        symlink(outside.join("secret"), deep.join("linked")).unwrap();
        // The system can read the file.
        assert_eq!(fs::read_to_string(deep.join("linked")).unwrap(), "content");
        assert!(resolve_path(&root, "l/l/l/linked").is_err());
        assert_eq!(
            resolve_path(&root, "l").unwrap().parent(),
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
            assert_eq!(
                may_lead_into(&outside.join(name), &is_in_root),
                may,
                "{name}"
            );
        }
    }
}
