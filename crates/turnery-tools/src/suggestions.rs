//! Suggests names for a path that does not exist.

use crate::{Workspace, call_errors::execution_error};
use std::{fs, path::Path};
use turnery_engine::ToolError;

/// Minimum similarity of two names, from 0 to 1, for one to be suggested for the other.
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the error for a path that does not exist, with up to three suggestions. Accesses the disk.
pub(crate) fn no_such_file(path: &Path, workspace: &Workspace) -> ToolError {
    let shown = workspace.display(path);
    let mut message = format!("{shown} does not exist");
    // The first missing component of the path is the one to correct.
    let missing = path
        .ancestors()
        .take_while(|part| !part.exists())
        .last()
        .unwrap_or(path);
    if missing != path {
        message += &format!(": there is no folder {}", workspace.display(missing));
    }
    match similar_names(missing).as_slice() {
        [] => message += "; look for it with find_files or list_dir",
        near => {
            let near: Vec<String> = near
                .iter()
                .map(|name| workspace.display(&missing.with_file_name(name)))
                .collect();
            message += &format!("; did you mean {}?", near.join(" or "));
        }
    }
    execution_error(message)
}

/// Returns up to three names in the folder of `path` that are similar to its own, most similar first.
fn similar_names(path: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let wanted = name.to_string_lossy().to_lowercase();
    let mut near: Vec<(f64, String)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .take(10_000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .collect();
    near.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}
