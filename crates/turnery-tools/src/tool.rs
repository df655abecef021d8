//! The trait that every tool is behind.

use crate::{Hidden, LineLimits, Origin, TraceContext, Workspace, walk::cancelled};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::{any::Any, future::ready, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    CallDetail, CallId, CallKind, ChildUsage, PlanEntry, ToolEnvelope, ToolFailure, ToolSpec,
};

/// How long a call may take unless its tool or its caller says otherwise (JIDO-70).
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A tool that the model may call.
///
/// Arguments have been normalised against the schema before any method sees them.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;

    /// The kind of a call whose arguments say nothing, since they do not fit.
    fn kind(&self) -> CallKind {
        CallKind::Other
    }

    /// How to show a call, from its arguments alone: no IO. Paths are absolute.
    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.spec().name.clone(),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    /// Whether a call may run beside others that may: it changes nothing that they could see (C-6).
    fn parallel(&self, _args: &Value) -> bool {
        false
    }

    /// What the call is going to touch, and how to show it, by now perhaps with a diff. May read,
    /// changes nothing. A failure here ends the call without asking anybody. Unless a tool says
    /// otherwise it touches nothing outside the conversation, and nobody is asked.
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let prepared = Prepared {
            access: Access::Nothing,
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(ready(Ok(prepared)))
    }

    /// Do it. Called only after permission. Dropping the future, or `cx.cancel`, stops it and
    /// everything that it started.
    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope>;

    /// How long `run` may take with these arguments (JIDO-70: 30 s unless the tool says otherwise).
    fn timeout(&self, _args: &Value) -> Duration {
        TIMEOUT
    }
}

/// A call, ready to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// What it is going to touch.
    pub access: Access,
    /// How to show it.
    pub detail: CallDetail,
}

/// What a call is going to touch: the subject of permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing outside the conversation.
    Nothing,
    /// Reads these files or folders. Absolute, links resolved, inside the roots.
    Read(Vec<PathBuf>),
    /// Changes these files. Absolute, links resolved, inside the roots.
    Edit(Vec<PathBuf>),
    /// Runs a shell command.
    Run {
        /// The whole command line.
        command: String,
        /// Where.
        cwd: PathBuf,
    },
    /// Runs a shell command that nothing confines, though others are confined: always asked about.
    RunOutside {
        /// The whole command line.
        command: String,
        /// Where.
        cwd: PathBuf,
    },
    /// Asks a server of somebody else's to do something: nobody here knows what that touches.
    Server {
        /// What stands for all tools of the server in a rule, for example `mcp__github`.
        all: String,
        /// The server says that this changes nothing.
        reads_only: bool,
        /// The server says that this may destroy.
        destroys: bool,
    },
}

/// What a running tool has at hand.
#[derive(Clone, Debug)]
pub struct ToolCx {
    /// The call.
    pub call_id: CallId,
    /// In whose name it runs.
    pub origin: Origin,
    /// Files and folders that it may touch.
    pub workspace: Arc<Workspace>,
    /// What rules keep from it even there.
    pub hidden: Hidden,
    /// Limits of the command line that it runs, from the judgement that allowed it.
    pub line_limits: LineLimits,
    /// Where it reports. Bounded: a slow client slows the tool.
    pub progress: mpsc::Sender<Progress>,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// Where the prompt stands in its client's traces.
    pub trace: TraceContext,
    /// What a session lends to tools that its own crate brings along.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
}

impl ToolCx {
    /// Where a path leads that is to be read or changed now: inside the roots, and not hidden.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, ToolFailure> {
        let path = self.workspace.resolve(path)?;
        self.hidden.check(&path, self.workspace.roots())?;
        Ok(path)
    }

    /// To be asked right before a change: after a cancel nothing is changed any more.
    pub(crate) fn may_change(&self) -> Result<(), ToolFailure> {
        match self.cancel.is_cancelled() {
            true => Err(cancelled()),
            false => Ok(()),
        }
    }
}

/// What a running tool reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Show this now: the whole of it.
    Shows(CallDetail),
    /// Text printed since the last one.
    Printed(String),
    /// The plan, whole.
    Planned(Vec<PlanEntry>),
    /// How far it is: one sentence (TURN-46).
    Says(String),
    /// What a child session at work for it has spent (LASH-66).
    Spent(ChildUsage),
}

/// A run that may have failed, as what comes of the call.
pub(crate) fn end(ran: Result<ToolEnvelope, ToolFailure>) -> ToolEnvelope {
    ran.unwrap_or_else(ToolEnvelope::from)
}
