//! Surroundings of a call made outside a session: origin, workspace and tools.

use super::effects::EffectPolicy;
use crate::{
    origin::Origin,
    policy::{CommandLineLimits, HiddenFiles},
    tool::{Progress, ToolCx},
    toolbox::Toolbox,
    trace_context::TraceContext,
    workspace::Workspace,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::CallId;

/// Context of calls made outside a session.
#[derive(Clone, Debug)]
pub struct ExecuteScope {
    /// The tools (JIDO-25).
    pub tools: Option<Toolbox>,
    /// Tools of the tool-calling component, used if `tools` is `None` (JIDO-27).
    pub tool_calling_tools: Option<Toolbox>,
    /// Tools of the agent, used if the other two are `None` (UP-24).
    pub agent_tools: Option<Toolbox>,
    /// Effect policy that applies in addition to those of the tools; `None` adds none (JIDO-44, C-22).
    pub effect_policy: Option<EffectPolicy>,
    /// Run, agent and session that calls belong to.
    pub origin: Origin,
    /// Files and folders that tools may access.
    pub workspace: Arc<Workspace>,
    /// Files that rules hide from tools, even inside the workspace.
    pub hidden: HiddenFiles,
    /// Receives progress reports; `None` discards them.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Stops the running call and prevents later ones.
    pub cancel: CancellationToken,
}

impl ExecuteScope {
    /// Creates a scope without tools.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            tools: None,
            tool_calling_tools: None,
            agent_tools: None,
            effect_policy: None,
            origin: Origin::default(),
            workspace,
            hidden: HiddenFiles::default(),
            progress: None,
            cancel: CancellationToken::new(),
        }
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(self, tools: Toolbox) -> Self {
        Self {
            tools: Some(tools),
            ..self
        }
    }

    /// Returns the tools of a call: those of the options, else of the scope, its tool calling, or its agent.
    /// The scope's effect policy is added to theirs.
    #[must_use]
    pub fn select_toolbox(&self, options: &ExecuteOptions) -> Toolbox {
        let tools = [
            &options.tools,
            &self.tools,
            &self.tool_calling_tools,
            &self.agent_tools,
        ];
        let found = tools.into_iter().find_map(Option::clone);
        let toolbox = found.unwrap_or_else(|| Toolbox::new(Vec::new()));
        match &self.effect_policy {
            Some(policy) => toolbox.with_effect_policy(policy.clone()),
            None => toolbox,
        }
    }

    pub(super) fn tool_cx(&self, call_id: CallId) -> ToolCx {
        // Sending to a channel without a receiver fails at once, so no tool waits for it.
        let nowhere = || mpsc::channel(1).0;
        ToolCx {
            call_id,
            origin: self.origin.clone(),
            workspace: Arc::clone(&self.workspace),
            hidden: self.hidden.clone(),
            line_limits: CommandLineLimits::default(),
            progress: self.progress.clone().unwrap_or_else(nowhere),
            cancel: self.cancel.child_token(),
            trace: TraceContext::default(),
            caller: None,
            host: None,
        }
    }
}

/// Options of one call or one `run_tools`.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Tools that take precedence over all others (JIDO-26).
    pub tools: Option<Toolbox>,
    /// Time limit of each call, instead of the tool's own (JIDO-28). Unit: milliseconds.
    pub timeout_ms: Option<u64>,
}

impl ExecuteOptions {
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}
