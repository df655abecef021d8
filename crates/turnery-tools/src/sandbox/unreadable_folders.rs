//! Finds folders that are closed to their owner, on the way to keys or as key folders.
//!
//! Keys in them cannot be found, so they would not be excluded, and a command could open the folders for the
//! next command.

use super::links::{self, ResolvedPath};
use rustix::process::geteuid;
use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Checks that the path exists, even as a dangling link.
///
/// # Errors
///
/// Fails if a folder on the way is closed to its owner.
pub(super) fn exists(path: &Path) -> io::Result<bool> {
    check_metadata(path, |_| true)
}

/// Checks that the path is a link. A path in another user's closed folder is taken for a link.
///
/// # Errors
///
/// Fails if a folder on the way is closed to its owner.
pub(super) fn is_link(path: &Path) -> io::Result<bool> {
    check_metadata(path, fs::Metadata::is_symlink)
}

fn check_metadata(path: &Path, is_met: impl FnOnce(&fs::Metadata) -> bool) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(is_met(&metadata)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => check_access(path, &error).map(|()| true),
    }
}

/// Fails if `error`, met when examining `path`, means that a folder on the way is closed to its owner; other
/// reasons are ignored.
///
/// # Errors
///
/// Names the folder that its owner, the current user, may not enter, and how to open it; or reports that the
/// path was closed meanwhile by a command that runs at the same time.
pub(super) fn check_access(path: &Path, error: &io::Error) -> io::Result<()> {
    if error.kind() != ErrorKind::PermissionDenied {
        return Ok(());
    }
    let mut above = path.ancestors();
    let seen = above.find_map(|it| Some((it, fs::symlink_metadata(it).ok()?)));
    let opened = |place: &Path| {
        let place = place.display();
        Err(io::Error::other(format!(
            "{place} was closed to its owner a moment ago, so keys in it could not be kept from the command: try again"
        )))
    };
    match seen {
        Some((place, _)) if place == path => opened(place),
        Some((link, metadata)) if metadata.is_symlink() => match links::try_follow_links(link, &[])
        {
            // The path contains no links.
            Err((at, error)) => check_access(&at, &error),
            Ok(_) => opened(link),
        },
        Some((folder, metadata)) => check_owner(folder, &metadata),
        None => Ok(()),
    }
}

/// Fails if `error`, met when listing `folder`, means that it or a folder on the way is closed to its owner;
/// other reasons are ignored.
///
/// # Errors
///
/// Fails if a folder on the way is closed to its owner.
pub(super) fn check_listing(folder: &Path, error: &io::Error) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(metadata) if error.kind() == ErrorKind::PermissionDenied => {
            check_owner(folder, &metadata)
        }
        Ok(_) => Ok(()),
        Err(error) => check_access(folder, &error),
    }
}

fn check_owner(folder: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let folder = folder.display();
    Err(io::Error::other(format!(
        "{folder} is closed to its owner, so keys in it could not be kept from the command: run `chmod u+rx {folder}`"
    )))
}

/// Follows a link; `None` if it leads nowhere.
///
/// # Errors
///
/// Fails if a folder on the way is closed to its owner.
pub(super) fn follow_link(link: &Path) -> io::Result<Option<ResolvedPath>> {
    match links::try_follow_links(link, &[]) {
        Ok(followed) => Ok(Some(followed)),
        Err((at, error)) => check_access(&at, &error).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Another command may open a folder between the two checks.
    #[test]
    fn path_reopened_meanwhile_is_still_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        for path in [file.clone(), link.clone(), link.join("absent")] {
            let error = check_access(&path, &denied).unwrap_err().to_string();
            assert!(error.contains("a moment ago"), "{error}");
        }
        let error = check_access(&folder.path().join("absent"), &denied).unwrap_err();
        assert!(error.to_string().contains("chmod u+rx"), "{error}");
        let absent = io::Error::from(ErrorKind::NotFound);
        assert!(check_access(&file, &absent).is_ok());
    }
}
