//! `apply_changes`: applies the changes of a candidate to the session's folder as a whole. Not a tool of models: the
//! session calls it once a candidate has won.

use crate::{
    access::Access,
    call_errors::execution_error,
    folder_changes::{FolderChanges, FolderChangesError},
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    workspace::Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::task::spawn_blocking;
use turnery_engine::{CallDetail, CallKind, Content, Location, ToolEnvelope, ToolError};

/// Time limit of the call. Writing many files through an editor may take long.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Changes of a candidate that are to be applied.
pub struct PendingChanges {
    changes: FolderChanges,
    /// Describes the candidate, as in `candidate 2 (openai/gpt-5)`.
    candidate: String,
    /// Folder in which the changes are kept because they were not applied.
    kept: OnceLock<PathBuf>,
}

impl PendingChanges {
    /// Creates the pending changes of a candidate, which is described as in `candidate 2 (openai/gpt-5)`.
    #[must_use]
    pub fn new(changes: FolderChanges, candidate: String) -> Self {
        Self {
            changes,
            candidate,
            kept: OnceLock::new(),
        }
    }

    /// Returns the changes.
    #[must_use]
    pub fn changes(&self) -> &FolderChanges {
        &self.changes
    }

    /// Returns the description of the candidate.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// Keeps the changes in a private folder for temporary files and returns it: `changes.diff` with the text, and
    /// the new files below `files`. Does so once.
    ///
    /// # Errors
    ///
    /// Fails if the disk does.
    pub async fn keep(self: &Arc<Self>) -> io::Result<PathBuf> {
        let pending = Arc::clone(self);
        let kept = spawn_blocking(move || pending.write_once().map(Path::to_owned)).await;
        kept.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn write_once(&self) -> io::Result<&Path> {
        if let Some(kept) = self.kept.get() {
            return Ok(kept);
        }
        let folder = tempfile::Builder::new()
            .prefix("turnery-changes-")
            .tempdir()?;
        self.changes.write_to(folder.path())?;
        Ok(self.kept.get_or_init(|| folder.keep()))
    }

    /// Returns where the changes are kept, for a message; the reason if they cannot be.
    pub async fn describe_kept(self: &Arc<Self>) -> String {
        match self.keep().await {
            Ok(folder) => format!("they are kept in {}", folder.display()),
            Err(error) => format!("they could not be kept: {error}"),
        }
    }
}

/// Applies pending changes.
pub struct ApplyChanges(Arc<PendingChanges>);

impl ApplyChanges {
    /// Name of the tool.
    pub const NAME: &'static str = <Self as TypedTool>::NAME;

    /// Creates the tool that applies these changes.
    #[must_use]
    pub fn new(changes: Arc<PendingChanges>) -> Self {
        Self(changes)
    }

    fn detail(&self, workspace: &Workspace) -> CallDetail {
        let root = workspace.cwd();
        let changes = &self.0.changes;
        let location = |path: &Path| Location {
            path: root.join(path),
            line: None,
        };
        CallDetail {
            title: format!(
                "Apply the changes of {}: {}",
                self.0.candidate,
                count_files(changes)
            ),
            kind: CallKind::Edit,
            locations: changes.paths().map(location).collect(),
            artifacts: changes.artifacts(root),
        }
    }

    /// Fails unless the files are as they were when the candidates began. The error says where the changes are kept.
    async fn check(&self, cx: &ToolCx) -> Result<(), ToolError> {
        let workspace = &cx.workspace;
        let (changes, files) = (&self.0.changes, workspace.files());
        match changes.check(workspace.cwd(), files).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failure("the changes do not apply", &error).await),
        }
    }

    async fn failure(&self, what: &str, error: &FolderChangesError) -> ToolError {
        let kept = self.0.describe_kept().await;
        execution_error(format!("{what}: {error}; {kept}"))
    }
}

/// Arguments of the call, for the record.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyChangesArgs {}

impl TypedTool for ApplyChanges {
    type Args = ApplyChangesArgs;
    const NAME: &'static str = "apply_changes";
    const KIND: CallKind = CallKind::Edit;

    fn description(&self) -> Cow<'static, str> {
        "Apply the changes of the candidate that was chosen.".into()
    }

    fn describe(&self, _args: &ApplyChangesArgs, workspace: &Workspace) -> CallDetail {
        self.detail(workspace)
    }

    async fn prepare(
        &self,
        _args: ApplyChangesArgs,
        cx: &ToolCx,
    ) -> Result<PreparedCall, ToolError> {
        let mut paths = Vec::new();
        for path in self.0.changes.paths() {
            let called = path.to_string_lossy();
            let resolved = cx.resolve(&called)?;
            paths.extend(cx.workspace.path_aliases(resolved, path));
        }
        self.check(cx).await?;
        Ok(PreparedCall {
            access: Access::Edit(paths),
            detail: self.detail(&cx.workspace),
        })
    }

    async fn run(&self, _args: ApplyChangesArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        self.check(cx).await?;
        cx.check_not_cancelled()?;
        let (workspace, changes) = (&cx.workspace, &self.0.changes);
        if let Err(error) = changes.apply(workspace.cwd(), workspace.files()).await {
            return Err(self.failure("the changes were not applied", &error).await);
        }
        let names: Vec<String> = changes.paths().map(|it| it.display().to_string()).collect();
        let text = format!("Applied: {}", names.join(", "));
        let detail = self.detail(workspace);
        Ok(ToolEnvelope {
            artifacts: detail.artifacts,
            locations: detail.locations,
            ..ToolEnvelope::ok(vec![Content::text(text)])
        })
    }

    fn timeout(&self, _args: &ApplyChangesArgs) -> Duration {
        TIMEOUT
    }
}

/// Returns the number of changed files in words.
fn count_files(changes: &FolderChanges) -> String {
    match changes.paths().count() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}
