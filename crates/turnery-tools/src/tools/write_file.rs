//! `write_file`: creates or replaces a whole file.

use super::planned_change::{PlannedChange, describe_file_call};
use crate::{
    call_errors::execution_error,
    line_endings::NormalisedText,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    workspace::{FileError, FileState, Workspace},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError};

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
        describe_file_call(
            "Write",
            Self::KIND,
            &workspace.absolute(&args.path),
            workspace,
        )
    }

    async fn prepare(&self, args: WriteFileArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let change = plan(&args, cx).await?;
        let state = file_state(&change);
        Ok(change.into_prepared_call("Write", state, &args.path, cx))
    }

    async fn run(&self, args: WriteFileArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let change = plan(&args, cx).await?;
        let shown = cx.workspace.display(&change.path);
        if !cx
            .workspace
            .approved_states()
            .check_unchanged(&cx.call_id, file_state(&change))
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
        let lines = change.new.lines().count();
        Ok(change.result(format!("{done} {shown}: {lines} lines")))
    }
}

async fn plan<'a>(args: &'a WriteFileArgs, cx: &ToolCx) -> Result<PlannedChange<'a>, ToolError> {
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
    Ok(PlannedChange { path, old, new })
}

fn file_state(change: &PlannedChange<'_>) -> FileState {
    FileState::new(&change.path, change.old.as_deref())
}
