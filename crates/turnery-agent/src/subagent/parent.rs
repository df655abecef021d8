//! Parent: what a session lends to its sub-agents.

use super::ports::{ChildOutbox, ParentClient};
use crate::{
    Client, Ports, PromptError, PromptResult, Session, SessionOptions, Settings,
    agent::{Opening, spawn},
    ask_user,
    session::{Budget, Known},
    trace_sink::Tracing,
};
use std::sync::Arc;
use tokio::sync::watch;
use turnery_engine::{LoopId, SessionId};
use turnery_models::{Catalogue, Model};
use turnery_store::{NewSession, SpawnRef, Store, StoreError};
use turnery_tools::{Files, Mode, Policy, Servers, Terminals, ToolCx, Toolbox, Workspace};

/// What the child is told besides what its parent is told.
const ROLE: &str = "\n\nYou are a sub-agent: another agent has given you the task that follows, and \
    nobody else reads your answer. Do exactly that task. End with one message that holds everything \
    the other agent needs, with file paths and line numbers where they matter.";
/// Number of turns that a child may have, unless the prompt has fewer left.
pub(crate) const CHILD_TURNS: u32 = 30;

/// What a session lends to its sub-agents. Made for one call.
pub(crate) struct Parent {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<Catalogue>,
    pub(crate) toolbox: Toolbox,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) client: Arc<dyn Client>,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) terminals: Option<Arc<dyn Terminals>>,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    /// What the parent may do now.
    pub(crate) policy: Policy,
    /// How the parent is set; its mode may become stricter while the child works.
    pub(crate) options: watch::Receiver<SessionOptions>,
    pub(crate) tracing: Tracing,
    /// The session that the person knows.
    pub(crate) shown_as: Known,
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
    /// How many sessions lie above the child.
    pub(crate) depth: u8,
    /// What the child draws on.
    pub(crate) budget: Budget,
}

impl Parent {
    /// Make a child session for this call.
    pub(super) async fn open(&self, cx: &ToolCx, reads: bool) -> Result<Session, StoreError> {
        let mut policy = self.policy.clone();
        if reads {
            policy.mode = Mode::Plan;
        }
        let settings = Settings {
            system: format!("{}{ROLE}", self.settings.system).into(),
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
        Ok(spawn(Opening {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            // It keeps the tools that there are now, so there is nothing to wait for.
            toolbox: ask_user::withheld(&self.toolbox, &*self.client).without(Servers::WAIT_TOOL),
            servers: None,
            workspace: Arc::clone(&self.workspace),
            ports: Ports {
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

    /// Wait for the child's end. A mode that becomes stricter meanwhile holds for the child at once.
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
                    if child.options().mode.is_freer_than(mode) {
                        // Fails only when the child is gone already.
                        let _ = child.set_mode(mode).await;
                    }
                }
            }
        }
    }
}
