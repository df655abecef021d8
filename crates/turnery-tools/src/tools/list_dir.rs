//! `list_dir`: shows a folder as an indented tree.

use super::planned_change::describe_file_call;
use crate::{
    access::Access,
    call_errors::{cancelled, execution_error},
    suggestions::no_such_file,
    text::format_size,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    walk::{HiddenFilter, run_blocking, walk},
    workspace::Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, fmt::Write as _, fs, path::Path};
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError};

const DEFAULT_DEPTH: u32 = 2;
const MAX_ENTRIES: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirArgs {
    /// Default: the working directory
    path: Option<String>,
    /// Levels to show; default 2
    depth: Option<u32>,
}

/// Lists one folder.
#[derive(Debug, Default)]
pub(super) struct ListDir;

impl TypedTool for ListDir {
    type Args = ListDirArgs;
    const NAME: &'static str = "list_dir";
    const KIND: CallKind = CallKind::Read;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Show a folder as a tree with file sizes. What git ignores is left out.".into()
    }

    fn describe(&self, args: &ListDirArgs, workspace: &Workspace) -> CallDetail {
        describe(&workspace.absolute(requested_path(args)), workspace)
    }

    async fn prepare(&self, args: ListDirArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let path = cx.workspace.resolve(requested_path(&args))?;
        Ok(PreparedCall {
            detail: describe(&path, &cx.workspace),
            access: Access::Read(cx.workspace.path_aliases(path, requested_path(&args))),
        })
    }

    async fn run(&self, args: ListDirArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let path = cx.resolve(requested_path(&args))?;
        let depth = args.depth.unwrap_or(DEFAULT_DEPTH).max(1) as usize;
        let workspace = cx.workspace.clone();
        let veil = HiddenFilter::new(cx, &path, requested_path(&args));
        let tree = run_blocking(&cx.cancel, move |cancel| {
            match fs::symlink_metadata(&path) {
                Ok(data) if data.is_dir() => render_tree(&path, depth, &veil, cancel),
                Ok(_) => Err(execution_error(format!(
                    "{} is not a folder: use read_file",
                    workspace.display(&path)
                ))),
                Err(_) => Err(no_such_file(&path, &workspace)),
            }
        })
        .await?;
        Ok(ToolEnvelope::text(tree))
    }
}

fn requested_path(args: &ListDirArgs) -> &str {
    args.path.as_deref().unwrap_or(".")
}

fn describe(path: &Path, workspace: &Workspace) -> CallDetail {
    describe_file_call("List", CallKind::Read, path, workspace)
}

fn render_tree(
    start: &Path,
    depth: usize,
    veil: &HiddenFilter,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let mut tree = String::new();
    let mut shown = 0;
    for entry in walk(start, true, Some(depth), veil) {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        // A folder that may not be read is shown without its entries.
        let Ok(entry) = entry else { continue };
        let Some(level) = entry.depth().checked_sub(1) else {
            continue;
        };
        if shown == MAX_ENTRIES {
            tree += "[cut here: list a folder further down, or use find_files]\n";
            break;
        }
        shown += 1;
        let name = entry.file_name().to_string_lossy();
        let indent = "  ".repeat(level);
        let kind = entry.file_type();
        // Writing to a string cannot fail.
        let _ = if kind.is_some_and(|kind| kind.is_dir()) {
            writeln!(tree, "{indent}{name}/")
        } else if kind.is_some_and(|kind| kind.is_symlink()) {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            writeln!(tree, "{indent}{name} -> {}", target.display())
        } else {
            let bytes = entry.metadata().map_or(0, |data| data.len());
            writeln!(tree, "{indent}{name}  {}", format_size(bytes))
        };
    }
    if tree.is_empty() {
        tree += "[the folder is empty]";
    }
    veil.append_notice(&mut tree);
    Ok(tree)
}
