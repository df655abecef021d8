//! Ignore files: which searches may read those that lie elsewhere. `rg` shows lines of them that it does not understand.

use super::walk;
use std::path::{Path, PathBuf};

/// Files that say what a search leaves out.
const NAMES: &[&str] = &[".gitignore", ".ignore", ".rgignore"];

/// Checks the folders that are searched, those below them and those above. Also true when that is uncertain.
pub(super) fn may_lie_elsewhere(folders: &[PathBuf]) -> bool {
    let mut left = walk::MOST_ENTRIES;
    let enters = |folder: &Path| !folder.ends_with(".git");
    let mut lies_below = |folder: &PathBuf| {
        folder.is_dir() && walk::may_contain_where(folder, &mut left, &enters, &leads_elsewhere)
    };
    let leads_from = |folder: &Path| {
        let mut names = NAMES.iter().chain(&[".git"]);
        names.any(|name| leads_elsewhere(&folder.join(name)))
    };
    let lies_above = |folder: &PathBuf| folder.ancestors().any(leads_from);
    folders.iter().any(lies_above) || folders.iter().any(&mut lies_below)
}

/// Checks for an ignore file that is a link, or a `.git` that leads to other ignore files.
fn leads_elsewhere(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(".git") => {
            let info = path.join("info");
            let links = [path, &info, &info.join("exclude")];
            path.is_file() || links.into_iter().any(Path::is_symlink)
        }
        Some(name) => NAMES.contains(&name) && path.is_symlink(),
        None => false,
    }
}
