//! Change to one file, as `edit_file` and `write_file` plan it: how it is shown for permission and in the result.

use crate::{
    access::Access,
    change_preview,
    text::first_changed_line,
    tool::{PreparedCall, ToolCx},
    workspace::{FileState, Workspace},
};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};
use turnery_engine::{Artifact, CallDetail, CallKind, Content, Location, ToolEnvelope};

/// A planned change to a file.
pub(super) struct PlannedChange<'a> {
    pub(super) path: PathBuf,
    /// Text of the file; `None` if it does not exist.
    pub(super) old: Option<String>,
    pub(super) new: Cow<'a, str>,
}

impl PlannedChange<'_> {
    /// Prepares the call that names the file as `called`, and remembers `state`, which must not change until it
    /// runs.
    pub(super) fn into_prepared_call(
        self,
        verb: &str,
        state: FileState,
        called: &str,
        cx: &ToolCx,
    ) -> PreparedCall {
        let workspace = &cx.workspace;
        workspace.approved_states().remember(&cx.call_id, state);
        let detail = CallDetail {
            locations: vec![self.location()],
            artifacts: vec![self.artifact()],
            ..describe_file_call(verb, CallKind::Edit, &self.path, workspace)
        };
        PreparedCall {
            access: Access::Edit(workspace.path_aliases(self.path, called)),
            detail,
        }
    }

    /// Returns the result of the call once the file has changed.
    pub(super) fn result(&self, text: String) -> ToolEnvelope {
        ToolEnvelope {
            locations: vec![self.location()],
            artifacts: vec![self.artifact()],
            ..ToolEnvelope::ok(vec![Content::text(text)])
        }
    }

    fn location(&self) -> Location {
        let old = self.old.as_ref();
        Location {
            path: self.path.clone(),
            line: old.map(|old| first_changed_line(old, &self.new)),
        }
    }

    fn artifact(&self) -> Artifact {
        change_preview::render_change(&self.path, self.old.as_deref(), &self.new)
    }
}

/// Describes a call that does one thing with one file or folder, such as "Edit src/main.rs".
pub(super) fn describe_file_call(
    verb: &str,
    kind: CallKind,
    path: &Path,
    workspace: &Workspace,
) -> CallDetail {
    CallDetail {
        title: format!("{verb} {}", workspace.display(path)),
        kind,
        locations: vec![Location {
            path: path.to_owned(),
            line: None,
        }],
        artifacts: Vec::new(),
    }
}
