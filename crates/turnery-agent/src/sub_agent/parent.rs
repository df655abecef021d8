//! Opens child sessions from what a session shares with its sub-agents.

use super::client::{ChildOutbox, ParentClient};
use crate::{
    Client, ClientPorts, PromptError, PromptResult, Session, SessionOptions, Settings,
    agent::{SessionParts, spawn},
    ask_user,
    session::{Budget, RememberedApprovals},
    trace_sink::ModelCallTracer,
};
use std::sync::Arc;
use tokio::sync::watch;
use turnery_engine::{LoopId, SessionId};
use turnery_models::{Model, ModelRegistry};
use turnery_store::{NewSession, SpawnRef, Store, StoreError};
use turnery_tools::{Files, Mode, Policy, Servers, Terminals, ToolCx, Toolbox, Workspace};

/// Added to the parent's system prompt for the child.
const SUB_AGENT_PROMPT: &str = "\n\nYou are a sub-agent: another agent has given you the task that follows, and \
    nobody else reads your answer. Do exactly that task. End with one message that holds everything \
    the other agent needs, with file paths and line numbers where they matter.";
/// Maximum number of turns of a child, unless the prompt has fewer left.
pub(crate) const MAX_CHILD_TURNS: u32 = 30;

/// Parts of a session that its sub-agents share. Built for one call.
pub(crate) struct ParentSession {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<ModelRegistry>,
    pub(crate) toolbox: Toolbox,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) client: Arc<dyn Client>,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) terminals: Option<Arc<dyn Terminals>>,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    /// Current policy of the parent.
    pub(crate) policy: Policy,
    /// Options of the parent, whose mode may become stricter while the child runs.
    pub(crate) options: watch::Receiver<SessionOptions>,
    pub(crate) tracing: ModelCallTracer,
    /// Approvals of the session that the user sees.
    pub(crate) shown_as: RememberedApprovals,
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
    /// Number of parent sessions of the child.
    pub(crate) depth: u8,
    /// Budget of the child.
    pub(crate) budget: Budget,
}

impl ParentSession {
    /// Creates a child session for a call.
    pub(super) async fn open_child(&self, cx: &ToolCx, reads: bool) -> Result<Session, StoreError> {
        let mut policy = self.policy.clone();
        if reads {
            policy.mode = Mode::Plan;
        }
        let settings = Settings {
            system: format!("{}{SUB_AGENT_PROMPT}", self.settings.system).into(),
            ..self.settings.clone()
        };
        let new = NewSession {
            id: SessionId::from(turnery_store::new_uuid().to_string()),
            cwd: self.workspace.cwd().to_owned(),
            folder: None,
            roots: self.workspace.roots().iter().skip(1).cloned().collect(),
            model: self.model.info().name.to_string(),
            mode: policy.mode.as_str().to_owned(),
            at: turnery_store::now(),
            spawned_by: Some(SpawnRef {
                session_id: self.session_id.clone(),
                loop_id: self.loop_id.clone(),
                call_id: cx.call_id.clone(),
            }),
        };
        let info = self.store.create(new).await?;
        let client = ParentClient {
            client: Arc::clone(&self.client),
            session_id: self.shown_as.session_id().clone(),
            call_id: cx.call_id.clone(),
        };
        let model = self.model.info().name.to_string();
        let outbox = ChildOutbox::new(info.id.clone(), model, cx.progress.clone());
        Ok(spawn(SessionParts {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            // The child keeps the current tools, so it has no servers to wait for.
            toolbox: ask_user::without_ask_user(&self.toolbox, &*self.client)
                .without(Servers::WAIT_TOOL),
            servers: None,
            workspace: Arc::clone(&self.workspace),
            ports: ClientPorts {
                client: Arc::new(client),
                outbox: Box::new(outbox),
                files: Arc::clone(&self.files),
                terminals: self.terminals.clone(),
            },
            settings,
            model: Arc::clone(&self.model),
            policy,
            info,
            chain: &[],
            tracing: self.tracing.clone(),
            known: Some(self.shown_as.clone()),
            depth: self.depth + 1,
            budget: Some(self.budget.clone()),
        }))
    }

    /// Waits for the child's end. A stricter mode set meanwhile applies to the child at once.
    pub(super) async fn watch(
        &self,
        child: &Session,
        end: impl Future<Output = Result<PromptResult, PromptError>>,
    ) -> Result<PromptResult, PromptError> {
        let mut options = self.options.clone();
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                result = &mut end => return result,
                Ok(()) = options.changed() => {
                    let mode = options.borrow_and_update().mode;
                    if child.options().mode.is_more_permissive_than(mode) {
                        // Fails only if the child has ended.
                        let _ = child.set_mode(mode).await;
                    }
                }
            }
        }
    }
}
