//! Near names: what somebody may have meant by a path that does not exist.

use crate::Workspace;
use std::{fs, path::Path};
use turnery_engine::{FailureKind, ToolFailure};

/// How alike two names must be, from 0 to 1, to be taken for a slip.
const ALIKE: f64 = 0.8;

/// The failure for a path that does not exist, with up to three that do. Looks at the disk.
pub(crate) fn no_such_file(path: &Path, workspace: &Workspace) -> ToolFailure {
    let shown = workspace.display(path);
    let mut message = format!("{shown} does not exist");
    // The first part of the path that is missing is the one to correct.
    let missing = path
        .ancestors()
        .take_while(|part| !part.exists())
        .last()
        .unwrap_or(path);
    if missing != path {
        message += &format!(": there is no folder {}", workspace.display(missing));
    }
    match names_like(missing).as_slice() {
        [] => message += "; look for it with find_files or list_dir",
        near => {
            let near: Vec<String> = near
                .iter()
                .map(|name| workspace.display(&missing.with_file_name(name)))
                .collect();
            message += &format!("; did you mean {}?", near.join(" or "));
        }
    }
    ToolFailure {
        kind: FailureKind::ExecutionError,
        message,
        details: None,
    }
}

/// Up to three names in the folder of `path` that are like its own, the likest first.
fn names_like(path: &Path) -> Vec<String> {
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
        .filter(|(alike, _)| *alike >= ALIKE)
        .collect();
    near.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}
