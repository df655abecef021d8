//! Finds folders that are closed to their owner, on the way to keys or as folders of keys.
//!
//! What lies in them cannot be found, so it would not be left out, and a command could open them for the next one.

use super::links;
use rustix::process::geteuid;
use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Whether something is at the path, a link that leads nowhere included.
///
/// # Errors
///
/// Those of [`check`].
pub(super) fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => check(path, &error).map(|()| true),
    }
}

/// Looks at what kept a path from being looked at.
///
/// # Errors
///
/// The folder that its owner, who runs this, may not look into, and how to open it.
pub(super) fn check(path: &Path, error: &io::Error) -> io::Result<()> {
    if error.kind() != ErrorKind::PermissionDenied {
        return Ok(());
    }
    let mut above = path.ancestors();
    let closed = above.find_map(|it| Some((it, fs::symlink_metadata(it).ok()?)));
    match closed {
        Some((link, metadata)) if metadata.is_symlink() => match links::try_follow(link) {
            // No link is on the way to that place.
            Err((at, error)) => check(&at, &error),
            Ok(_) => Ok(()),
        },
        Some((folder, metadata)) if metadata.uid() == geteuid().as_raw() => {
            Err(io::Error::other(format!(
                "{folder} is closed to its owner, so keys in it could not be kept from the command: run `chmod u+rx {folder}`",
                folder = folder.display()
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Where a link leads, if it leads anywhere.
///
/// # Errors
///
/// Those of [`check`], for folders on the way.
pub(super) fn target(link: &Path) -> io::Result<Option<PathBuf>> {
    match links::try_follow(link) {
        Ok(target) => Ok(Some(target)),
        Err((at, error)) => check(&at, &error).map(|()| None),
    }
}
