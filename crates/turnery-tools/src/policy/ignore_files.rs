//! Detects searches that read ignore files from elsewhere; `rg` prints lines of them that are not valid
//! patterns.

use super::bounded_walk;
use crate::workspace::canonicalize;
use std::path::{Path, PathBuf};

/// Files that list what a search skips.
const IGNORE_FILE_NAMES: &[&str] = &[".gitignore", ".ignore", ".rgignore"];

/// Maximum number of entries visited, of which `.git` may have many.
const MAX_ENTRIES: usize = 20_000;

/// Returns true if an ignore file or a `.git` in, below or above the folders is a link or otherwise leads to
/// ignore files elsewhere, or if an ignore file there is hidden. A search also enters `.git` if an option or an
/// ignore file says so. Also true if that is uncertain.
pub(super) fn may_read_other_ignore_files(
    folders: &[PathBuf],
    is_hidden: &dyn Fn(&Path) -> bool,
) -> bool {
    let is_other =
        |path: &Path| is_foreign_ignore_file(path) || is_hidden_ignore_file(path, is_hidden);
    let mut left = MAX_ENTRIES;
    let mut lies_below = |folder: &PathBuf| {
        folder.is_dir() && bounded_walk::may_contain(folder, &mut left, &is_other)
    };
    let leads_from = |folder: &Path| {
        let mut names = IGNORE_FILE_NAMES.iter().chain(&[".git"]);
        names.any(|name| is_other(&folder.join(name)))
    };
    let lies_above = |folder: &PathBuf| {
        let real = canonicalize(folder);
        folder.ancestors().any(leads_from) || real.map_or(true, |it| it.ancestors().any(leads_from))
    };
    folders.iter().any(lies_above) || folders.iter().any(&mut lies_below)
}

/// Returns true for an existing ignore file that is hidden, and for a `.git` with one.
fn is_hidden_ignore_file(path: &Path, is_hidden: &dyn Fn(&Path) -> bool) -> bool {
    let file = match path.file_name().and_then(|name| name.to_str()) {
        Some(".git") => path.join("info/exclude"),
        Some(name) if IGNORE_FILE_NAMES.contains(&name) => path.to_owned(),
        Some(_) | None => return false,
    };
    is_hidden(&file) && file.exists()
}

/// Returns true for an ignore file that is a link, and for a `.git` that leads to other ignore files.
fn is_foreign_ignore_file(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(".git") => {
            let info = path.join("info");
            let links = [path, &info, &info.join("exclude")];
            path.is_file() || links.into_iter().any(Path::is_symlink)
        }
        Some(name) => IGNORE_FILE_NAMES.contains(&name) && path.is_symlink(),
        None => false,
    }
}
