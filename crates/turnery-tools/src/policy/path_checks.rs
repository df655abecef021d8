//! Checks of a path on the disk that several parts of the policy share.

use crate::Workspace;
use std::path::Path;

/// Returns true if a path resolves to a place inside the roots.
pub(super) fn is_inside_roots(path: &Path, workspace: &Workspace) -> bool {
    path.to_str()
        .is_some_and(|path| workspace.resolve(path).is_ok())
}

/// Returns true if the entry exists, even as a dangling link.
pub(super) fn entry_exists(folder: &Path, name: &str) -> bool {
    folder.join(name).symlink_metadata().is_ok()
}
