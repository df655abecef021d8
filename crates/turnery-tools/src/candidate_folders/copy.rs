//! Lists and copies the files of a folder, within limits.

use super::CandidateFoldersError;
use ignore::WalkBuilder;
use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;

/// Maximum number of files that are copied for each candidate.
pub const MAX_COPIED_FILES: usize = 100_000;
/// Maximum size of the files that are copied for each candidate. Unit: bytes.
pub const MAX_COPIED_BYTES: u64 = 1 << 30;

/// Limits of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyLimits {
    pub(super) files: usize,
    /// Unit: bytes.
    pub(super) bytes: u64,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            files: MAX_COPIED_FILES,
            bytes: MAX_COPIED_BYTES,
        }
    }
}

/// Returns the files and links below `top` that git does not ignore, relative to it, without git's own files.
pub(super) fn walk(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut builder = WalkBuilder::new(top);
    builder
        .hidden(false)
        .ignore(false)
        .parents(false)
        .require_git(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    let mut files = Vec::new();
    for entry in builder.build() {
        let entry = match entry {
            Ok(entry) => entry,
            // It was removed meanwhile, or is not readable and so not git's either.
            Err(error) if error.depth() != Some(0) => continue,
            Err(error) => return Err(io::Error::other(error)),
        };
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_folder && let Ok(path) = entry.path().strip_prefix(top) {
            files.push(path.to_owned());
        }
    }
    Ok(files)
}

/// Returns the files to copy: those found by [`walk`], and those that git tracks although it would ignore them.
pub(super) fn list_files(
    top: &Path,
    tracked: Vec<PathBuf>,
    limits: CopyLimits,
) -> Result<Vec<PathBuf>, CandidateFoldersError> {
    let files: BTreeSet<PathBuf> = walk(top)?.into_iter().chain(tracked).collect();
    match files.len() > limits.files {
        true => Err(CandidateFoldersError::TooLarge),
        false => Ok(files.into_iter().collect()),
    }
}

/// Copies the files and links `files` from one folder to another. Others (pipes, sockets, folders) and those that are
/// gone are skipped.
pub(super) fn copy_files(
    from: &Path,
    to: &Path,
    files: &[PathBuf],
    limits: CopyLimits,
    stop: &CancellationToken,
) -> Result<(), CandidateFoldersError> {
    let mut made = HashSet::new();
    let mut room = limits.bytes;
    fs::create_dir_all(to)?;
    for file in files {
        if stop.is_cancelled() {
            return Err(CandidateFoldersError::Io("it was cancelled".to_owned()));
        }
        let (source, target) = (from.join(file), to.join(file));
        let Ok(found) = source.symlink_metadata() else {
            continue;
        };
        let failed =
            |error: io::Error| CandidateFoldersError::Io(format!("{}: {error}", source.display()));
        if !found.is_file() && !found.is_symlink() {
            continue;
        }
        if let Some(parent) = target.parent()
            && made.insert(parent.to_owned())
        {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        if found.is_symlink() {
            let leads_to = fs::read_link(&source).map_err(failed)?;
            symlink(leads_to, &target).map_err(failed)?;
            continue;
        }
        let left = room.checked_sub(found.len());
        room = left.ok_or(CandidateFoldersError::TooLarge)?;
        fs::copy(&source, &target).map_err(failed)?;
    }
    Ok(())
}
