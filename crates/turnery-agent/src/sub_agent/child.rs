//! Opens child sessions.

use super::{
    SubAgentTool,
    client::{ChildOutbox, ParentClient},
};
use crate::{
    ask_user,
    session::{ParentSession, PromptError, PromptResult, Session, SessionParts},
};
use std::sync::Arc;
use turnery_engine::SessionId;
use turnery_store::{NewSession, SpawnRef, StoreError};
use turnery_tools::{McpServers, Mode, ToolCx, TypedTool as _};

/// Added to the parent's system prompt for the child.
const SUB_AGENT_PROMPT: &str = "\n\nYou are a sub-agent: another agent has given you the task that follows, and \
    nobody else reads your answer. Do exactly that task. End with one message that holds everything \
    the other agent needs, with file paths and line numbers where they matter.";
impl ParentSession {
    /// Creates a child session for a call.
    pub(super) async fn open_child(
        &self,
        cx: &ToolCx,
        read_only: bool,
    ) -> Result<Session, StoreError> {
        let mut env = self.env.clone();
        if read_only {
            env.policy.mode = Mode::Plan;
        }
        env.settings.system = format!("{}{SUB_AGENT_PROMPT}", env.settings.system).into();
        env.settings.agent_id = format!("{}/{}", env.settings.agent_id, SubAgentTool::NAME).into();
        // The setting is for whoever reads the parent's values (LASH-123).
        env.settings.final_answer_format = None;
        let model = env.model.info().name.to_string();
        let new = NewSession {
            id: SessionId::from(turnery_store::new_uuid().to_string()),
            cwd: env.workspace.cwd().to_owned(),
            folder: None,
            roots: env.workspace.roots().iter().skip(1).cloned().collect(),
            model: model.clone(),
            mode: env.policy.mode.as_str().to_owned(),
            at: turnery_store::now(),
            spawned_by: Some(SpawnRef {
                session_id: self.session_id.clone(),
                loop_id: self.loop_id.clone(),
                call_id: cx.call_id.clone(),
            }),
        };
        let info = env.store.create(new).await?;
        // The child keeps the current tools, so it has no servers to wait for.
        env.toolbox = ask_user::without_ask_user(&env.toolbox, &*self.env.client)
            .without_tool(McpServers::WAIT_TOOL);
        env.client = Arc::new(ParentClient {
            client: Arc::clone(&self.env.client),
            session_id: env.approvals.session_id().clone(),
            call_id: cx.call_id.clone(),
        });
        env.depth += 1;
        let outbox = ChildOutbox::new(info.id.clone(), model, cx.progress.clone());
        let parts = SessionParts {
            env,
            outbox: Box::new(outbox),
            servers: None,
            info,
            damaged_places: 0,
            chain: &[],
        };
        Ok(parts.spawn())
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
