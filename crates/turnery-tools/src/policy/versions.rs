//! Versions: files of a project with which version managers pick the programs that run by a name.

use super::harmless::exists;
use crate::workspace::disk;
use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

/// Files with which asdf, mise, pyenv, nodenv and Volta pick programs, which may be in a folder of the project.
const VERSION_MANAGERS: &[&str] = &[
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

/// Folders in which mise looks for files of its own.
const OF_MISE: &[&str] = &["", ".config"];

/// Files with nothing but a version, which may be a path.
const VERSIONS: &[&str] = &[".go-version", ".nvmrc"];
/// Longer ones hold more than a version. Unit: bytes.
const LONGEST_VERSION: u64 = 64;

/// Recognises the name of such a file, in small letters.
pub(super) fn is_version_file(name: &str) -> bool {
    VERSION_MANAGERS.contains(&name) || VERSIONS.contains(&name) || is_of_mise(name)
}

/// Recognises `mise.toml`, `.miserc.toml` and `.rtx.toml`, also of one environment: `mise.ci.toml`.
fn is_of_mise(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let begins = ["mise.", "miserc.", "rtx."];
    begins.iter().any(|it| name.starts_with(it)) && name.ends_with(".toml")
}

/// Whether a file in the folder may have a version manager pick a program of the project.
pub(super) fn picks_version(folder: &Path) -> bool {
    let is_path = |name: &&str| match disk::open(&folder.join(name)) {
        Ok(file) => {
            let mut text = String::new();
            let read = file.take(LONGEST_VERSION + 1).read_to_string(&mut text);
            read.is_err() || text.len() as u64 > LONGEST_VERSION || text.contains(['/', ':'])
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let holds_file_of_mise = |inner: &&str| {
        let is_found = |entry: fs::DirEntry| is_of_mise(&entry.file_name().to_string_lossy());
        let entries = folder.join(inner).read_dir();
        entries.is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_found)))
    };
    VERSION_MANAGERS.iter().any(|name| exists(folder, name))
        || VERSIONS.iter().any(is_path)
        || OF_MISE.iter().any(holds_file_of_mise)
}
