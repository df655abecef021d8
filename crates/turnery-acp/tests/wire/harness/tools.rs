//! Tools for tests: `look` reads a file, `change` writes it after permission, `print` reports output, `shell`
//! runs a command, `hang` waits for a cancel, and `finish`, `fail_with` and `fail` end the prompt.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use turnery_engine::{
    Artifact, CallDetail, CallKind, ToolControl, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec,
};
use turnery_tools::{Access, PreparedCall, Progress, Tool, ToolCx, Toolbox, Workspace};

/// Names of the tools that were run, in order.
#[derive(Clone, Default)]
pub(crate) struct RunLog(Arc<Mutex<Vec<String>>>);

impl RunLog {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    fn record(&self, what: &str) {
        self.0.lock().expect("no panic").push(what.to_owned());
    }
}

/// Returns the tools `look`, `change`, `print`, `hang` and `shell`, and those that end the prompt.
pub(crate) fn toolbox(ran: &RunLog) -> Toolbox {
    let names = [
        "look",
        "change",
        "print",
        "hang",
        "shell",
        "finish",
        "fail_with",
        "fail",
    ];
    Toolbox::new(
        names
            .into_iter()
            .map(|name| -> Arc<dyn Tool> {
                Arc::new(TestTool {
                    spec: ToolSpec {
                        name: name.to_owned(),
                        description: name.to_owned(),
                        schema: json!({"type": "object", "properties": {}}).into(),
                    },
                    ran: ran.clone(),
                })
            })
            .collect(),
    )
}

struct TestTool {
    spec: ToolSpec,
    ran: RunLog,
}

impl TestTool {
    fn file(workspace: &Workspace) -> PathBuf {
        workspace.cwd().join("a.txt")
    }

    fn detail(&self, workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: format!("Do {}", self.spec.name),
            kind: match self.spec.name.as_str() {
                "look" => CallKind::Read,
                "change" => CallKind::Edit,
                _ => CallKind::Execute,
            },
            locations: Vec::new(),
            artifacts: match self.spec.name.as_str() {
                "change" => vec![Artifact::Diff {
                    path: Self::file(workspace),
                    old: None,
                    new: "new\n".to_owned(),
                    from_line: None,
                }],
                _ => Vec::new(),
            },
        }
    }

    async fn print(cx: &ToolCx) -> ToolEnvelope {
        for n in 0..3 {
            let _ = cx
                .progress
                .send(Progress::Output(format!("line {n}\n")))
                .await;
        }
        ToolEnvelope::text("printed")
    }

    async fn shell(cx: &ToolCx) -> ToolEnvelope {
        let Some(terminals) = cx.workspace.terminals() else {
            return ToolEnvelope::text("no terminal");
        };
        let (started, _told) = tokio::sync::mpsc::channel(1);
        let cwd: &Path = cx.workspace.cwd();
        match terminals
            .run("true", cwd, &[], 100, started, cx.cancel.clone())
            .await
        {
            Ok(run) => ToolEnvelope::text(run.output),
            Err(error) => ToolEnvelope::failed(ToolErrorKind::ExecutionError, error.to_string()),
        }
    }
}

/// Returns the result of a tool that ends the prompt in this way.
fn control_envelope(control: ToolControl) -> ToolEnvelope {
    ToolEnvelope {
        control: Some(Box::new(control)),
        ..ToolEnvelope::text("decided")
    }
}

impl Tool for TestTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn describe(&self, _args: &Value, workspace: &Workspace) -> CallDetail {
        CallDetail {
            artifacts: Vec::new(),
            ..self.detail(workspace)
        }
    }

    fn prepare<'a>(
        &'a self,
        _args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let access = match self.spec.name.as_str() {
            "change" => Access::Edit(vec![Self::file(&cx.workspace)]),
            "look" => Access::Read(vec![Self::file(&cx.workspace)]),
            _ => Access::Nothing,
        };
        let detail = self.detail(&cx.workspace);
        Box::pin(async move { Ok(PreparedCall { access, detail }) })
    }

    fn run<'a>(&'a self, _args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        self.ran.record(&self.spec.name);
        Box::pin(async move {
            match self.spec.name.as_str() {
                "hang" => {
                    cx.cancel.cancelled().await;
                    ToolEnvelope::failed(ToolErrorKind::Cancelled, "cancelled")
                }
                "look" => match cx.workspace.files().read(&Self::file(&cx.workspace)).await {
                    Ok(text) => ToolEnvelope::text(text),
                    Err(error) => {
                        ToolEnvelope::failed(ToolErrorKind::ExecutionError, error.to_string())
                    }
                },
                "change" => {
                    let path = Self::file(&cx.workspace);
                    let written = cx.workspace.files().write(&path, "new\n");
                    match written.await {
                        Ok(()) => ToolEnvelope::text("changed"),
                        Err(error) => {
                            ToolEnvelope::failed(ToolErrorKind::ExecutionError, error.to_string())
                        }
                    }
                }
                "shell" => Self::shell(cx).await,
                "finish" => control_envelope(ToolControl::Finish(json!({"n": 1}))),
                "fail_with" => control_envelope(ToolControl::FailWith(json!("no way"))),
                "fail" => control_envelope(ToolControl::Fail),
                _ => Self::print(cx).await,
            }
        })
    }
}
