//! Reads the cases of a folder, or the built-in ones.

use crate::{case::Case, embedded};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Lists the case files of a folder, sorted by name.
///
/// # Errors
/// If the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "case") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads the cases of a folder; without a folder, the built-in cases.
///
/// # Errors
/// If a file cannot be read or is malformed.
pub fn cases(folder: Option<&Path>) -> Result<Vec<Case>, String> {
    let Some(folder) = folder else {
        return embedded::cases().map_err(|error| error.to_string());
    };
    let files = files(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let read = |file: &PathBuf| Case::read(file).map_err(|error| error.to_string());
    files.iter().map(read).collect()
}
