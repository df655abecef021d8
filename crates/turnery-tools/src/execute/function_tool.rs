//! Adapts a function to the `Tool` trait.

use crate::{
    arguments::{parse_args, spec_for},
    tool::{DEFAULT_TIMEOUT, Tool, ToolCx},
    workspace::Workspace,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use turnery_engine::{CallDetail, ToolEnvelope, ToolSpec};

type RunFunction = dyn Fn(&Value, ToolCx) -> BoxFuture<'static, ToolEnvelope> + Send + Sync;

/// A tool made from a name, an argument type and a function (JIDO-6). Declared to access no files, so it
/// needs no permission.
pub struct FunctionTool {
    spec: ToolSpec,
    timeout: Option<Duration>,
    run: Box<RunFunction>,
}

impl FunctionTool {
    /// Creates the tool `name` with the schema of `A`. The function may return a value or an error, with or
    /// without effects, or a whole envelope (JIDO-41 to JIDO-43).
    pub fn new<A, F, W>(name: &str, description: &str, work: F) -> Self
    where
        A: JsonSchema + DeserializeOwned,
        F: Fn(A, ToolCx) -> W + Send + Sync + 'static,
        W: Future<Output: Into<ToolEnvelope>> + Send + 'static,
    {
        let run = move |args: &Value, cx: ToolCx| -> BoxFuture<'static, ToolEnvelope> {
            match parse_args(args) {
                Ok(args) => {
                    let work = work(args, cx);
                    Box::pin(async move { work.await.into() })
                }
                Err(failure) => Box::pin(std::future::ready(failure.into())),
            }
        };
        Self {
            spec: spec_for::<A>(name, description),
            timeout: None,
            run: Box::new(run),
        }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn name(&self) -> String {
        self.spec.name.clone()
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.spec.name.clone(),
            ..CallDetail::default()
        }
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        (self.run)(args, cx.clone())
    }

    fn timeout(&self, _args: &Value) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}
