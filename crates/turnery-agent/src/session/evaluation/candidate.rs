//! Runs one candidate: a session task that shares the lane and store of its session.

use super::super::{
    BackgroundWork, PromptError, group_commit::GroupCommitSender, inbox::Inbox,
    loop_plan::LoopPlan, output::SessionOutput, prompt_guard::PromptGuard,
    prompt_scope::PromptScope, run::LoopRun, task::SessionTask,
};
use crate::{ask_user, client::SilentClient, observe::observer_channel};
use std::sync::Arc;
use tokio::sync::{mpsc, watch::channel};
use turnery_engine::LoopId;
use turnery_models::Model;
use turnery_tools::Mode;

/// Candidate that is ready to run.
pub(super) struct CandidateRun {
    pub(super) loop_id: LoopId,
    pub(super) task: SessionTask,
    pub(super) guard: PromptGuard,
    pub(super) scope: PromptScope,
}

impl CandidateRun {
    /// Runs the loop to its end, which comes after the commit of the whole group.
    pub(super) async fn run(mut self, plan: LoopPlan) -> (Self, Result<(), PromptError>) {
        let loop_id = self.loop_id.clone();
        let ended = LoopRun::begin(&mut self.task, &mut self.guard, &self.scope, plan, loop_id);
        let ended = ended.run_to_end().await.map(drop);
        (self, ended)
    }
}

impl SessionTask {
    /// Creates the task of a candidate. Several share one folder, so it runs in plan mode, where it reads and
    /// searches and changes nothing. It asks the user nothing.
    pub(super) fn for_candidate(&self, model: &Arc<dyn Model>, group: GroupCommitSender) -> Self {
        let (_, mailbox) = mpsc::channel(1);
        let mut env = self.env.clone();
        env.toolbox = ask_user::without_ask_user(&env.toolbox, &*self.env.client);
        env.client = Arc::new(SilentClient);
        env.model = Arc::clone(model);
        env.policy.mode = Mode::Plan;
        env.budget = None;
        let mut options = self.options.borrow().clone();
        options.mode = Mode::Plan;
        let mut conversation = self.conversation.clone();
        conversation.last_lost_loop = 0;
        Self {
            tools: self
                .tools
                .without_ask_user(&*self.env.client, &self.env.settings.system),
            env,
            conversation,
            owner: self.owner.clone(),
            options: channel(options).0,
            inbox: Inbox::new(mailbox),
            output: SessionOutput::new(Box::new(SilentClient), observer_channel().0),
            interpreter: Arc::default(),
            background: BackgroundWork::default(),
            group: Some(group),
        }
    }
}
