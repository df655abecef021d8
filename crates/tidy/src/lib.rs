//! tidy: what the tests about the repository itself read. The tests are in `tests/`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The top of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .map_or_else(|| here.to_owned(), Path::to_owned)
}

/// A file that is part of the repository.
#[derive(Debug)]
pub struct File {
    /// Relative to the top.
    pub path: String,
    /// Its text; empty when it is not UTF-8.
    pub text: String,
}

/// Every file of the repository: tracked, or new and not ignored.
///
/// # Panics
/// When git cannot be asked.
#[must_use]
pub fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(listed.status.success(), "git ls-files failed");
    let mut files: Vec<File> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter(|path| root().join(path).is_file())
        .map(|path| File {
            path: path.to_owned(),
            text: fs::read_to_string(root().join(path)).unwrap_or_default(),
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    assert!(files.len() > 20, "git listed only {} files", files.len());
    files
}

/// The hand-written Rust files.
#[must_use]
pub fn rust_files() -> Vec<File> {
    let mut files = files();
    files.retain(|file| {
        Path::new(&file.path)
            .extension()
            .is_some_and(|ext| ext == "rs")
    });
    files
}
