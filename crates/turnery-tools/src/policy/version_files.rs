//! Recognises project files with which version managers select the programs that run by a name.

use super::read_only::exists;
use crate::workspace::disk;
use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

/// Files with which asdf, mise, pyenv, nodenv and Volta select programs, which may be in a folder of the
/// project.
const VERSION_MANAGER_FILES: &[&str] = &[
    ".config/mise",
    ".config/mise.toml",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".node-version",
    ".prototools",
    ".python-version",
    ".rtx.toml",
    ".tool-versions",
    ".volta",
    "mise",
];

/// Folders in which mise looks for its files.
const MISE_FOLDERS: &[&str] = &["", ".config"];

/// Files that contain only a version, which may be a path.
const PLAIN_VERSION_FILES: &[&str] = &[".go-version", ".nvmrc"];
/// Maximum size of such a file; longer ones contain more than a version. Unit: bytes.
const MAX_VERSION_BYTES: u64 = 64;

/// Returns true for the lowercase name of a version manager's file.
pub(super) fn is_version_file(name: &str) -> bool {
    VERSION_MANAGER_FILES.contains(&name)
        || PLAIN_VERSION_FILES.contains(&name)
        || is_mise_file(name)
}

/// Returns true for `mise.toml`, `.miserc.toml` and `.rtx.toml`, including those of one environment:
/// `mise.ci.toml`.
fn is_mise_file(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let begins = ["mise.", "miserc.", "rtx."];
    begins.iter().any(|it| name.starts_with(it)) && name.ends_with(".toml")
}

/// Returns true if a file in the folder may make a version manager select a program of the project.
pub(super) fn picks_project_version(folder: &Path) -> bool {
    let is_path = |name: &&str| match disk::open(&folder.join(name)) {
        Ok(file) => {
            let mut text = String::new();
            let read = file.take(MAX_VERSION_BYTES + 1).read_to_string(&mut text);
            read.is_err() || text.len() as u64 > MAX_VERSION_BYTES || text.contains(['/', ':'])
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let holds_file_of_mise = |inner: &&str| {
        let is_found = |entry: fs::DirEntry| is_mise_file(&entry.file_name().to_string_lossy());
        let entries = folder.join(inner).read_dir();
        entries.is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_found)))
    };
    VERSION_MANAGER_FILES
        .iter()
        .any(|name| exists(folder, name))
        || PLAIN_VERSION_FILES.iter().any(is_path)
        || MISE_FOLDERS.iter().any(holds_file_of_mise)
}
