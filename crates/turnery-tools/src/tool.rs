//! Defines the `Tool` trait and the context of a running tool.

use crate::{
    access::Access,
    call_errors::cancelled,
    origin::Origin,
    policy::{CommandLineLimits, HiddenFiles},
    tool_caller::ToolCaller,
    trace_context::TraceContext,
    workspace::Workspace,
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::{any::Any, future::ready, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    CallDetail, CallId, CallKind, ChildUsage, PlanEntry, ToolEnvelope, ToolError, ToolSpec,
};

/// Default time limit of a call (JIDO-70).
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A tool that the model may call.
///
/// Arguments have been normalised against the schema before any method receives them.
pub trait Tool: Send + Sync + 'static {
    /// Returns the name, description and schema that the model receives. Called when a toolbox with the tool is first
    /// sent to a model, or first used.
    fn spec(&self) -> ToolSpec;

    /// Returns the name in [`spec`](Self::spec).
    fn name(&self) -> String {
        self.spec().name
    }

    /// Returns the kind shown for a call whose arguments do not fit the schema.
    fn kind(&self) -> CallKind {
        CallKind::Other
    }

    /// Returns how to show a call, from its arguments alone, without IO. Paths are absolute.
    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.name(),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    /// Returns true if a call may run in parallel with others: it changes nothing that they could observe
    /// (C-6).
    fn can_run_in_parallel(&self, _args: &Value) -> bool {
        false
    }

    /// Returns true if the tool opens child sessions: its progress reports may contain usage of its children.
    fn opens_sessions(&self) -> bool {
        false
    }

    /// Returns true if the tool receives its own session as `cx.host`, as one that opens child sessions does.
    fn uses_session(&self) -> bool {
        self.opens_sessions()
    }

    /// Returns what the call will access and how to show it, for example with a diff. May read but changes
    /// nothing. An error ends the call before the user is asked. By default a tool accesses nothing outside
    /// the conversation and needs no permission.
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let prepared = PreparedCall {
            access: Access::Nothing,
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(ready(Ok(prepared)))
    }

    /// Runs the call. Called only after permission was given. Dropping the future or firing `cx.cancel` stops
    /// the call and everything it started.
    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope>;

    /// Returns the time limit of `run` for these arguments (JIDO-70: 30 s by default).
    fn timeout(&self, _args: &Value) -> Duration {
        DEFAULT_TIMEOUT
    }
}

/// A call that is ready for the policy's decision.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedCall {
    /// Files, commands or servers that the call will access.
    pub access: Access,
    /// Display of the call.
    pub detail: CallDetail,
}

/// Context of a running tool.
#[derive(Clone, Debug)]
pub struct ToolCx {
    /// Id of the call.
    pub call_id: CallId,
    /// Run, agent and session that the call belongs to.
    pub origin: Origin,
    /// Files and folders that the tool may access.
    pub workspace: Arc<Workspace>,
    /// Files that rules hide from the tool, even inside the workspace.
    pub hidden: HiddenFiles,
    /// Limits on the command line that is run, from the policy decision that allowed it.
    pub line_limits: CommandLineLimits,
    /// Receives progress reports. Bounded: a slow client slows the tool down.
    pub progress: mpsc::Sender<Progress>,
    /// Fires when the call must stop.
    pub cancel: CancellationToken,
    /// Trace context of the prompt.
    pub trace: TraceContext,
    /// Calls other tools; `None` where that is impossible.
    pub caller: Option<ToolCaller>,
    /// Session handle for tools that are defined in the session's crate.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
}

impl ToolCx {
    /// Resolves a path for reading or writing. Fails if it is outside the roots or hidden by any of its names.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let resolved = self.workspace.resolve(path)?;
        for name in self.workspace.path_aliases(resolved.clone(), path) {
            self.hidden
                .check_not_hidden(&name, self.workspace.roots())?;
        }
        Ok(resolved)
    }

    /// Fails once the call is cancelled. Must be called right before every change.
    pub(crate) fn check_not_cancelled(&self) -> Result<(), ToolError> {
        match self.cancel.is_cancelled() {
            true => Err(cancelled()),
            false => Ok(()),
        }
    }
}

/// Progress report of a running tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Replaces what is shown of the call.
    Detail(CallDetail),
    /// Output printed since the last report.
    Output(String),
    /// The complete plan.
    Plan(Vec<PlanEntry>),
    /// Status message of one sentence (TURN-46).
    Message(String),
    /// Usage of a child session that works for this call (LASH-66).
    ChildUsage(ChildUsage),
}

/// Converts the result of a run into an envelope.
pub(crate) fn into_envelope(ran: Result<ToolEnvelope, ToolError>) -> ToolEnvelope {
    ran.unwrap_or_else(ToolEnvelope::from)
}
