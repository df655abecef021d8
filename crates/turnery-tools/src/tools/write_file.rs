//! `write_file`: creates or replaces a whole file.

use crate::{
    access::Access,
    call_errors::execution_error,
    change_preview,
    line_endings::NormalisedText,
    text::first_changed_line,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    workspace::{FileError, FileState, Workspace},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, path::PathBuf};
use turnery_engine::{Artifact, CallDetail, CallKind, Content, Location, ToolEnvelope, ToolError};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFileArgs {
    path: String,
    content: String,
}

/// Writes one file.
#[derive(Debug, Default)]
pub(super) struct WriteFile;

impl TypedTool for WriteFile {
    type Args = WriteFileArgs;
    const NAME: &'static str = "write_file";
    const KIND: CallKind = CallKind::Edit;

    fn description(&self) -> Cow<'static, str> {
        "Create or replace a whole file, and its folders. To change part of a file use \
         edit_file."
            .into()
    }

    fn describe(&self, args: &WriteFileArgs, workspace: &Workspace) -> CallDetail {
        call_detail(workspace.absolute(&args.path), workspace)
    }

    async fn prepare(&self, args: WriteFileArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let change = FileChange::plan(&args, cx).await?;
        cx.workspace
            .approved_states()
            .remember(&cx.call_id, change.file_state());
        let mut detail = call_detail(change.path.clone(), &cx.workspace);
        detail.locations = vec![change.location()];
        detail.artifacts = vec![change.artifact()];
        Ok(PreparedCall {
            access: Access::Edit(cx.workspace.path_aliases(change.path, &args.path)),
            detail,
        })
    }

    async fn run(&self, args: WriteFileArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let change = FileChange::plan(&args, cx).await?;
        let shown = cx.workspace.display(&change.path);
        if !cx
            .workspace
            .approved_states()
            .check_unchanged(&cx.call_id, change.file_state())
        {
            return Err(execution_error(format!(
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
            cx.check_not_cancelled()?;
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
}

fn call_detail(path: PathBuf, workspace: &Workspace) -> CallDetail {
    CallDetail {
        title: format!("Write {}", workspace.display(&path)),
        kind: CallKind::Edit,
        locations: vec![Location { path, line: None }],
        artifacts: Vec::new(),
    }
}

/// A planned change to a file.
struct FileChange<'a> {
    path: PathBuf,
    old: Option<String>,
    /// Borrowed from the arguments, unless line endings change.
    new: Cow<'a, str>,
}

impl<'a> FileChange<'a> {
    async fn plan(args: &'a WriteFileArgs, cx: &ToolCx) -> Result<Self, ToolError> {
        let workspace = &cx.workspace;
        let path = cx.resolve(&args.path)?;
        let old = match workspace.files().read(&path).await {
            Ok(text) => Some(text),
            Err(FileError::NotFound(_)) => None,
            Err(FileError::NotText(_)) => {
                return Err(execution_error(format!(
                    "{} is not a text file, so it is not replaced: remove it first if you mean to replace it",
                    workspace.display(&path)
                )));
            }
            Err(error @ FileError::Other(_)) => return Err(error.into()),
        };
        // A model that rewrites a file with Windows line endings does not mean to change every line.
        let new = match &old {
            Some(old) if !args.content.contains('\r') => {
                NormalisedText::new(old).apply_line_endings(&args.content)
            }
            Some(_) | None => Cow::Borrowed(&*args.content),
        };
        Ok(Self { path, old, new })
    }

    fn file_state(&self) -> FileState {
        FileState::new(&self.path, self.old.as_deref())
    }

    fn location(&self) -> Location {
        Location {
            path: self.path.clone(),
            line: self
                .old
                .as_ref()
                .map(|old| first_changed_line(old, &self.new)),
        }
    }

    fn artifact(&self) -> Artifact {
        change_preview::render_change(&self.path, self.old.as_deref(), &self.new)
    }
}
