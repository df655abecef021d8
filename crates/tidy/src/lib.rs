//! Reads the files of the repository, for the checks in `tests/`.

pub mod imports;
mod source;
pub mod types;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .map_or_else(|| here.to_owned(), Path::to_owned)
}

/// A file of the repository.
#[derive(Debug)]
pub struct RepoFile {
    /// Path relative to the root of the repository.
    pub path: String,
    /// Contents of the file; empty if not UTF-8.
    pub text: String,
}

/// Returns all files of the repository: tracked, or untracked and not ignored.
///
/// # Panics
/// Panics if git fails.
#[must_use]
pub fn files() -> Vec<RepoFile> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(listed.status.success(), "git ls-files failed");
    let mut files: Vec<RepoFile> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter(|path| root().join(path).is_file())
        .map(|path| RepoFile {
            path: path.to_owned(),
            text: fs::read_to_string(root().join(path)).unwrap_or_default(),
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    assert!(files.len() > 20, "git listed only {} files", files.len());
    files
}

/// Returns the names of the crates of the workspace.
///
/// # Panics
/// Panics if there are too few, because then the files were not found.
#[must_use]
pub fn crate_names(files: &[RepoFile]) -> BTreeSet<&str> {
    let folders = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/"));
    let names: BTreeSet<&str> = folders.filter_map(|path| path.split('/').next()).collect();
    assert!(names.len() > 8, "{names:?}");
    names
}

/// Returns all Rust files of the repository: tracked, or untracked and not ignored.
#[must_use]
pub fn rust_files() -> Vec<RepoFile> {
    let mut files = files();
    files.retain(|file| {
        Path::new(&file.path)
            .extension()
            .is_some_and(|ext| ext == "rs")
    });
    files
}
