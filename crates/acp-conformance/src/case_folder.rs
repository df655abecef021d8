//! Reads the cases of files and folders, or the built-in ones.

use crate::{case::Case, embedded};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Reads the cases of these files and folders, sorted by path; without any, the built-in cases.
///
/// # Errors
/// If a file cannot be read or is malformed, or there is no case.
pub fn cases(paths: &[PathBuf]) -> Result<Vec<Case>, String> {
    if paths.is_empty() {
        return embedded::cases().map_err(|error| error.to_string());
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = case_files(path);
            files.extend(found.map_err(|error| format!("{}: {error}", path.display()))?);
        } else {
            files.push(path.clone());
        }
    }
    if files.is_empty() {
        return Err(format!("there is no case in {paths:?}"));
    }
    files.sort();
    let read = |file: &PathBuf| Case::read(file).map_err(|error| error.to_string());
    files.iter().map(read).collect()
}

/// Lists the case files of a folder.
fn case_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "case") {
            files.push(path);
        }
    }
    Ok(files)
}
