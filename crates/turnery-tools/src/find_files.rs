//! `find_files`: finds files whose path matches a glob.

use crate::{
    Access, PreparedCall, Tool, ToolCx, Workspace,
    arguments::{parse_args, spec_for},
    suggestions::no_such_file,
    tool::end,
    walk::{Glob, Veil, cancelled, off_thread, walk},
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallDetail, CallKind, Location, ToolEnvelope, ToolError, ToolSpec};

const MAX_FILES: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindFilesArgs {
    /// Glob, such as *.rs or src/**/*.{ts,tsx}
    pattern: String,
    /// Folder to look in
    path: Option<String>,
}

impl FindFilesArgs {
    /// Returns the folder and the glob within it. Models also write absolute globs; the leading part without
    /// wildcards is the folder.
    fn split(&self) -> (String, String) {
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
#[derive(Debug)]
pub struct FindFiles {
    spec: ToolSpec,
}

impl FindFiles {
    /// Creates the tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec: spec_for::<FindFilesArgs>(
                "find_files",
                "List files whose path matches a glob. A glob without / matches names in any \
                 folder. What git ignores is left out.",
            ),
        }
    }
}

impl Default for FindFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for FindFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parallel(&self, _args: &Value) -> bool {
        true
    }

    fn kind(&self) -> CallKind {
        CallKind::Search
    }

    fn describe(&self, args: &Value, workspace: &Workspace) -> CallDetail {
        parse_args::<FindFilesArgs>(args)
            .map(|args| detail(&args, workspace.absolute(&args.split().0), workspace))
            .unwrap_or_default()
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async move {
            let args: FindFilesArgs = parse_args(args)?;
            let (folder, pattern) = args.split();
            let path = cx.workspace.resolve(&folder)?;
            Glob::new(&pattern)?;
            Ok(PreparedCall {
                detail: detail(&args, path.clone(), &cx.workspace),
                access: Access::Read(cx.workspace.names(path, &folder)),
            })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(run(args, cx).await) })
    }
}

fn detail(args: &FindFilesArgs, path: PathBuf, workspace: &Workspace) -> CallDetail {
    let place = match path == workspace.cwd() {
        true => String::new(),
        false => format!(" in {}", workspace.display(&path)),
    };
    CallDetail {
        title: format!("Find {}{place}", args.split().1),
        kind: CallKind::Search,
        locations: vec![Location { path, line: None }],
        artifacts: Vec::new(),
    }
}

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
    let args: FindFilesArgs = parse_args(args)?;
    let (folder, pattern) = args.split();
    let start = cx.resolve(&folder)?;
    let glob = Glob::new(&pattern)?;
    let workspace = cx.workspace.clone();
    let veil = Veil::new(cx);
    let found = off_thread(&cx.cancel, move |cancel| {
        if !start.exists() {
            return Err(no_such_file(&start, &workspace));
        }
        found(&start, &glob, &workspace, &veil, cancel)
    })
    .await?;
    Ok(ToolEnvelope::text(found))
}

fn found(
    start: &Path,
    glob: &Glob,
    workspace: &Workspace,
    veil: &Veil,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let mut listed = String::new();
    let mut count = 0;
    for entry in walk(start, glob.hidden, None, veil) {
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
    veil.tell(&mut listed);
    Ok(listed)
}
