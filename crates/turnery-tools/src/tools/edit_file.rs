//! `edit_file`: replaces a piece of text in a file and nothing else in it.

use super::planned_change::{PlannedChange, describe_file_call};
use crate::{
    call_errors::{execution_error, validation_error},
    line_endings::NormalisedText,
    suggestions::no_such_file,
    text::render_diff,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    walk::run_blocking,
    workspace::{FileError, FileState, Workspace},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError};

mod indent;
mod matching;
mod nearest_text;

use matching::{
    MAX_COUNTED_MATCHES, MatchError, Replacement, apply_replacements, find_replacements,
};

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFileArgs {
    path: String,
    /// Must stand in the file exactly once
    old_text: String,
    new_text: String,
    /// Replace it everywhere
    replace_all: Option<bool>,
}

/// Edits one file.
#[derive(Debug, Default)]
pub(super) struct EditFile;

impl TypedTool for EditFile {
    type Args = EditFileArgs;
    const NAME: &'static str = "edit_file";
    const KIND: CallKind = CallKind::Edit;

    fn description(&self) -> Cow<'static, str> {
        "Replace old_text by new_text in a file. Copy old_text exactly, without line \
         numbers, with enough lines around it to be unique."
            .into()
    }

    fn describe(&self, args: &EditFileArgs, workspace: &Workspace) -> CallDetail {
        describe_file_call(
            "Edit",
            Self::KIND,
            &workspace.absolute(&args.path),
            workspace,
        )
    }

    async fn prepare(&self, args: EditFileArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let (change, _) = plan(&args, cx).await?;
        let target = target(&change);
        Ok(change.into_prepared_call("Edit", target, &args.path, cx))
    }

    /// Edits the current text of the file, which may differ from what was shown, so `old_text` is searched for
    /// again.
    async fn run(&self, args: EditFileArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let workspace = &cx.workspace;
        let (change, replacement_count) = plan(&args, cx).await?;
        if !workspace
            .approved_states()
            .check_unchanged(&cx.call_id, target(&change))
        {
            return Err(execution_error(format!(
                "{} leads to another file than when this was shown for permission, so nothing was changed",
                args.path
            )));
        }
        let (change, diff) = run_blocking(&cx.cancel, move |_| {
            let diff = render_diff(change.old.as_deref().unwrap_or_default(), &change.new);
            Ok((change, diff))
        })
        .await?;
        cx.check_not_cancelled()?;
        workspace.files().write(&change.path, &change.new).await?;
        let places = match replacement_count {
            1 => String::new(),
            places => format!(" in {places} places"),
        };
        let path = workspace.display(&change.path);
        Ok(change.result(format!("Edited {path}{places}:\n{diff}")))
    }
}

/// Returns the state compared between permission and run: the path alone, since the text may change meanwhile.
fn target(change: &PlannedChange<'_>) -> FileState {
    FileState::new(&change.path, None)
}

/// Returns the change and the number of places that it replaces.
async fn plan(
    args: &EditFileArgs,
    cx: &ToolCx,
) -> Result<(PlannedChange<'static>, usize), ToolError> {
    if args.old_text.is_empty() {
        return Err(validation_error(
            "old_text is empty: give the text to replace, or use write_file for a new file",
        ));
    }
    if args.old_text == args.new_text {
        return Err(validation_error("old_text and new_text are the same"));
    }
    let workspace = &cx.workspace;
    let path = cx.resolve(&args.path)?;
    let shown = workspace.display(&path);
    let old = match workspace.files().read(&path).await {
        Ok(text) => text,
        Err(FileError::NotFound(_)) => return Err(no_such_file(&path, workspace)),
        Err(FileError::NotText(_)) => {
            return Err(execution_error(format!("{shown} is not a text file")));
        }
        Err(error @ FileError::Other(_)) => return Err(error.into()),
    };
    let args = args.clone();
    let in_file = shown.clone();
    let (old, (new, replacement_count)) = run_blocking(&cx.cancel, move |_| {
        let edited = apply_edit(&old, &args, &in_file)?;
        Ok((old, edited))
    })
    .await?;
    if new == old {
        return Err(execution_error(format!("{shown} would not change")));
    }
    let change = PlannedChange {
        path,
        old: Some(old),
        new: new.into(),
    };
    Ok((change, replacement_count))
}

/// Returns the edited text and the number of places that changed.
fn apply_edit(text: &str, args: &EditFileArgs, shown: &str) -> Result<(String, usize), ToolError> {
    let unified = NormalisedText::new(text);
    let old = args.old_text.replace("\r\n", "\n");
    let new = args.new_text.replace("\r\n", "\n");
    let all = args.replace_all.unwrap_or(false);
    let found =
        find_replacements(&unified.text, &old, &new, all).map_err(|mismatch| match mismatch {
            MatchError::NotFound => execution_error(format!(
                "old_text is not in {shown}. {}",
                nearest_text::not_found_hint(&unified.text, &old)
            )),
            MatchError::Ambiguous {
                count: places,
                lines,
            } => execution_error(ambiguous_message(places, &lines, shown)),
        })?;
    let in_file: Vec<Replacement> = found
        .into_iter()
        .map(|replacement| Replacement {
            range: unified.original_range(&replacement.range),
            text: unified.apply_line_endings(&replacement.text).into_owned(),
        })
        .collect();
    Ok((apply_replacements(text, &in_file), in_file.len()))
}

fn ambiguous_message(places: usize, lines: &[usize], shown: &str) -> String {
    let mut named: Vec<String> = lines.iter().map(usize::to_string).collect();
    if places > named.len() {
        named.push("more".to_owned());
    }
    let places = match places {
        MAX_COUNTED_MATCHES => format!("at least {MAX_COUNTED_MATCHES}"),
        places => places.to_string(),
    };
    format!(
        "old_text occurs in {shown} {places} times, on lines {}: add lines around it to say which, \
         or set replace_all",
        named.join(", ")
    )
}
