//! `find_files`: finds files whose path matches a glob.

use crate::{
    access::Access,
    call_errors::cancelled,
    suggestions::no_such_file,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    walk::{HiddenFilter, PathGlob, run_blocking, walk},
    workspace::Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    borrow::Cow,
    fmt::Write as _,
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallDetail, CallKind, Location, ToolEnvelope, ToolError};

const MAX_FILES: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindFilesArgs {
    /// Glob, such as *.rs or src/**/*.{ts,tsx}
    pattern: String,
    /// Folder to look in
    path: Option<String>,
}

impl FindFilesArgs {
    /// Returns the folder and the glob within it. Models also write absolute globs; the leading part without
    /// wildcards is the folder.
    fn split_folder_and_glob(&self) -> (String, String) {
        let folder = self.path.clone().unwrap_or_else(|| ".".to_owned());
        if !self.pattern.starts_with('/') {
            return (folder, self.pattern.clone());
        }
        let special = self
            .pattern
            .find(['*', '?', '[', '{'])
            .unwrap_or(self.pattern.len());
        match self.pattern[..special].rsplit_once('/') {
            Some((plain, _)) => (
                format!("{plain}/"),
                self.pattern[plain.len() + 1..].to_owned(),
            ),
            None => (folder, self.pattern.clone()),
        }
    }
}

/// Finds files by name.
#[derive(Debug, Default)]
pub(super) struct FindFiles;

impl TypedTool for FindFiles {
    type Args = FindFilesArgs;
    const NAME: &'static str = "find_files";
    const KIND: CallKind = CallKind::Search;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "List files whose path matches a glob. A glob without / matches names in any \
         folder. What git ignores is left out."
            .into()
    }

    fn describe(&self, args: &FindFilesArgs, workspace: &Workspace) -> CallDetail {
        call_detail(
            args,
            workspace.absolute(&args.split_folder_and_glob().0),
            workspace,
        )
    }

    async fn prepare(&self, args: FindFilesArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let (folder, pattern) = args.split_folder_and_glob();
        let path = cx.workspace.resolve(&folder)?;
        PathGlob::new(&pattern)?;
        Ok(PreparedCall {
            detail: call_detail(&args, path.clone(), &cx.workspace),
            access: Access::Read(cx.workspace.path_aliases(path, &folder)),
        })
    }

    async fn run(&self, args: FindFilesArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let (folder, pattern) = args.split_folder_and_glob();
        let start = cx.resolve(&folder)?;
        let glob = PathGlob::new(&pattern)?;
        let workspace = cx.workspace.clone();
        let veil = HiddenFilter::new(cx, &start, &folder);
        let found = run_blocking(&cx.cancel, move |cancel| {
            if !start.exists() {
                return Err(no_such_file(&start, &workspace));
            }
            list_matches(&start, &glob, &workspace, &veil, cancel)
        })
        .await?;
        Ok(ToolEnvelope::text(found))
    }
}

fn call_detail(args: &FindFilesArgs, path: PathBuf, workspace: &Workspace) -> CallDetail {
    let place = match path == workspace.cwd() {
        true => String::new(),
        false => format!(" in {}", workspace.display(&path)),
    };
    CallDetail {
        title: format!("Find {}{place}", args.split_folder_and_glob().1),
        kind: CallKind::Search,
        locations: vec![Location { path, line: None }],
        artifacts: Vec::new(),
    }
}

fn list_matches(
    start: &Path,
    glob: &PathGlob,
    workspace: &Workspace,
    veil: &HiddenFilter,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let mut listed = String::new();
    let mut count = 0;
    for entry in walk(start, glob.includes_hidden, None, veil) {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let Ok(entry) = entry else { continue };
        let folder = entry.file_type().is_none_or(|kind| kind.is_dir());
        let path = entry.path().strip_prefix(start).unwrap_or(entry.path());
        if folder || !glob.matches(path) {
            continue;
        }
        count += 1;
        if count <= MAX_FILES {
            // Writing to a string cannot fail.
            let _ = writeln!(listed, "{}", workspace.display(entry.path()));
        }
    }
    if count == 0 {
        listed += "[no file matches]";
    } else if count > MAX_FILES {
        let _ = write!(
            listed,
            "[the first {MAX_FILES} of {count}; narrow the pattern or the path]"
        );
    }
    veil.append_notice(&mut listed);
    Ok(listed)
}
