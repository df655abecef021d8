//! A temporary folder with the coding tools on it.

use serde_json::Value;
use std::{fs, path::PathBuf, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{Content, ToolCall, ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{HiddenFiles, Origin, PreparedCall, Progress, ToolCx, Toolbox, Workspace};

pub(crate) struct ToolFixture {
    _temporary: tempfile::TempDir,
    /// The resolved working directory: `work` in the temporary folder.
    pub(crate) root: PathBuf,
    /// Its neighbour, outside the session.
    pub(crate) outside_folder: PathBuf,
    pub(crate) toolbox: Toolbox,
    pub(crate) cx: ToolCx,
    pub(crate) progress: mpsc::Receiver<Progress>,
}

impl ToolFixture {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(temporary.path()).expect("it exists");
        let (root, outside) = (top.join("work"), top.join("outside"));
        fs::create_dir(&root).expect("a folder");
        fs::create_dir(&outside).expect("a folder");
        let workspace = Workspace::local(root.clone()).expect("it is a folder");
        let (sender, progress) = mpsc::channel(16);
        Self {
            _temporary: temporary,
            root,
            outside_folder: outside,
            toolbox: Toolbox::coding(),
            cx: ToolCx {
                call_id: "call-1".into(),
                origin: Origin::default(),
                workspace: Arc::new(workspace),
                hidden: HiddenFiles::default(),
                line_limits: turnery_tools::CommandLineLimits::default(),
                progress: sender,
                cancel: CancellationToken::new(),
                trace: turnery_tools::TraceContext::default(),
                caller: None,
                host: None,
            },
            progress,
        }
    }

    pub(crate) fn write_file(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("folders");
        fs::write(&path, bytes).expect("a file");
        path
    }

    pub(crate) fn read_bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.root.join(path)).expect("the file is there")
    }

    pub(crate) async fn prepare(&self, name: &str, args: Value) -> Result<PreparedCall, ToolError> {
        self.toolbox.prepare(&new_call(name, args), &self.cx).await
    }

    pub(crate) async fn run(&self, name: &str, args: Value) -> ToolEnvelope {
        self.toolbox.run(&new_call(name, args), &self.cx).await
    }

    /// Returns what the model receives from a call that succeeds.
    pub(crate) async fn call_text(&self, name: &str, args: Value) -> String {
        let envelope = self.run(name, args).await;
        let content = envelope.result.expect("the call works");
        let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Returns the failure of a call that fails.
    pub(crate) async fn call_failure(&self, name: &str, args: Value) -> (ToolErrorKind, String) {
        let failure = self
            .run(name, args)
            .await
            .result
            .expect_err("the call fails");
        (failure.kind, failure.message)
    }
}

pub(crate) fn new_call(name: &str, args: Value) -> ToolCall {
    ToolCall::new("call-1", name, args)
}
