//! `write_file`: creates or replaces a whole file.

use crate::{
    Access, FileError, PreparedCall, Tool, ToolCx, Workspace,
    arguments::{parse_args, spec_for},
    change_preview,
    line_endings::Unified,
    text::first_difference,
    tool::end,
    workspace::Promise,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{borrow::Cow, path::PathBuf};
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, Location, ToolEnvelope, ToolError, ToolErrorKind,
    ToolSpec,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args<'a> {
    path: &'a str,
    content: &'a str,
}

/// Writes one file.
#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
}

impl WriteFile {
    /// Creates the tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec: spec_for::<Args>(
                "write_file",
                "Create or replace a whole file, and its folders. To change part of a file use \
                 edit_file.",
            ),
        }
    }
}

impl Default for WriteFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Edit
    }

    fn describe(&self, args: &Value, workspace: &Workspace) -> CallDetail {
        parse_args::<Args>(args)
            .map(|args| detail(workspace.absolute(args.path), workspace))
            .unwrap_or_default()
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            let called = args.path;
            let change = Change::plan(args, cx).await?;
            cx.workspace
                .promises()
                .give(&cx.call_id, change.file_state());
            let mut detail = detail(change.path.clone(), &cx.workspace);
            detail.locations = vec![change.location()];
            detail.artifacts = vec![change.artifact()];
            Ok(PreparedCall {
                access: Access::Edit(cx.workspace.names(change.path, called)),
                detail,
            })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(run(args, cx).await) })
    }
}

fn detail(path: PathBuf, workspace: &Workspace) -> CallDetail {
    CallDetail {
        title: format!("Write {}", workspace.display(&path)),
        kind: CallKind::Edit,
        locations: vec![Location { path, line: None }],
        artifacts: Vec::new(),
    }
}

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
    let change = Change::plan(parse_args(args)?, cx).await?;
    let shown = cx.workspace.display(&change.path);
    if !cx
        .workspace
        .promises()
        .keep(&cx.call_id, change.file_state())
    {
        return Err(write_failure(format!(
            "{shown} has changed since this was shown for permission, so it was not replaced: \
             read it and try again"
        )));
    }
    let done = match &change.old {
        None => "Created",
        Some(old) if *old == change.new => "Nothing to change in",
        Some(_) => "Replaced",
    };
    if change.old.as_deref() != Some(&*change.new) {
        cx.may_change()?;
        cx.workspace
            .files()
            .write(&change.path, &change.new)
            .await?;
    }
    let told = format!("{done} {shown}: {} lines", change.new.lines().count());
    Ok(ToolEnvelope {
        locations: vec![change.location()],
        artifacts: vec![change.artifact()],
        ..ToolEnvelope::ok(vec![Content::text(told)])
    })
}

/// A planned change to a file.
struct Change<'a> {
    path: PathBuf,
    old: Option<String>,
    /// Borrowed from the arguments, unless line endings change.
    new: Cow<'a, str>,
}

impl<'a> Change<'a> {
    async fn plan(args: Args<'a>, cx: &ToolCx) -> Result<Self, ToolError> {
        let workspace = &cx.workspace;
        let path = cx.resolve(args.path)?;
        let old = match workspace.files().read(&path).await {
            Ok(text) => Some(text),
            Err(FileError::NotFound(_)) => None,
            Err(FileError::NotText(_)) => {
                return Err(write_failure(format!(
                    "{} is not a text file, so it is not replaced: remove it first if you mean to replace it",
                    workspace.display(&path)
                )));
            }
            Err(error @ FileError::Other(_)) => return Err(error.into()),
        };
        // A model that rewrites a file with Windows line endings does not mean to change every line.
        let new = match &old {
            Some(old) if !args.content.contains('\r') => Unified::new(old).adopt(args.content),
            Some(_) | None => Cow::Borrowed(args.content),
        };
        Ok(Self { path, old, new })
    }

    fn file_state(&self) -> Promise {
        Promise::of(self.old.as_deref())
    }

    fn location(&self) -> Location {
        Location {
            path: self.path.clone(),
            line: self
                .old
                .as_ref()
                .map(|old| first_difference(old, &self.new)),
        }
    }

    fn artifact(&self) -> Artifact {
        change_preview::shown(&self.path, self.old.as_deref(), &self.new)
    }
}

fn write_failure(message: String) -> ToolError {
    ToolError {
        kind: ToolErrorKind::ExecutionError,
        message,
        details: None,
    }
}
