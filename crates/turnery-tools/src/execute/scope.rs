//! Scope: where a call runs, in whose name, and with which tools.

use super::EffectPolicy;
use crate::{Hidden, Progress, ToolCx, Toolbox, TraceContext, Workspace};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallId, LoopId, SessionId};

/// In whose name a call runs: what telemetry says of it (JIDO-57, JIDO-59). All of it may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The run: in a session, the loop.
    pub run_id: Option<LoopId>,
    /// The agent.
    pub agent_id: Option<Arc<str>>,
    /// The conversation: in a session, the session.
    pub thread_id: Option<SessionId>,
    /// How often the model has been called before: in a session, the turn's index.
    pub iteration: Option<u32>,
}

/// What surrounds a call that no session makes.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The tools (JIDO-25).
    pub tools: Option<Toolbox>,
    /// The tools of whoever makes a model call tools, where the first are missing (JIDO-27).
    pub tool_calling: Option<Toolbox>,
    /// The tools of the agent, where both are missing (UP-24).
    pub agent: Option<Toolbox>,
    /// Which effects of tools are kept; none lets all pass (JIDO-44, C-22).
    pub effect_policy: Option<EffectPolicy>,
    /// In whose name.
    pub origin: Origin,
    /// Files and folders that tools may touch.
    pub workspace: Arc<Workspace>,
    /// What rules keep from them even there.
    pub hidden: Hidden,
    /// Where running tools report; nowhere if nobody listens.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Stops the call that runs, and those after it.
    pub cancel: CancellationToken,
}

impl Scope {
    /// In this workspace, with no tools yet.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            tools: None,
            tool_calling: None,
            agent: None,
            effect_policy: None,
            origin: Origin::default(),
            workspace,
            hidden: Hidden::default(),
            progress: None,
            cancel: CancellationToken::new(),
        }
    }

    /// The same with these tools.
    #[must_use]
    pub fn with_tools(self, tools: Toolbox) -> Self {
        Self {
            tools: Some(tools),
            ..self
        }
    }

    /// The tools of a call: of the options, else of the scope, its tool calling, or its agent. Its
    /// policy narrows that of the tools.
    #[must_use]
    pub fn toolbox(&self, options: &Options) -> Toolbox {
        let tools = [&options.tools, &self.tools, &self.tool_calling, &self.agent];
        let found = tools.into_iter().find_map(Option::clone);
        let toolbox = found.unwrap_or_else(|| Toolbox::new(Vec::new()));
        match &self.effect_policy {
            Some(policy) => toolbox.narrowed(policy.clone()),
            None => toolbox,
        }
    }

    pub(super) fn cx(&self, call_id: CallId) -> ToolCx {
        // A channel that nobody reads takes a report back at once, so no tool waits for it.
        let nowhere = || mpsc::channel(1).0;
        ToolCx {
            call_id,
            origin: self.origin.clone(),
            workspace: Arc::clone(&self.workspace),
            hidden: self.hidden.clone(),
            line_limits: crate::LineLimits::default(),
            progress: self.progress.clone().unwrap_or_else(nowhere),
            cancel: self.cancel.child_token(),
            trace: TraceContext::default(),
            host: None,
        }
    }
}

/// What holds for one call or one `run_tools`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tools, before any others (JIDO-26).
    pub tools: Option<Toolbox>,
    /// How long each call may take, instead of what its tool says (JIDO-28). Unit: milliseconds.
    pub timeout_ms: Option<u64>,
}

impl Options {
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}
