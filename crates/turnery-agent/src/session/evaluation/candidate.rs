//! Runs one candidate: a session task that shares the lane and store of its session.

use super::{
    super::{
        BackgroundWork, PromptError, group_commit::GroupCommitSender, inbox::Inbox,
        loop_plan::LoopPlan, output::SessionOutput, prompt_guard::PromptGuard,
        prompt_scope::PromptScope, run::LoopRun, system_prompt::SystemPrompt, task::SessionTask,
    },
    candidate_client::CandidateClient,
    resolve::ResolvedCandidate,
};
use crate::client::SilentClient;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::{Mutex, mpsc, watch::channel};
use turnery_engine::LoopId;
use turnery_tools::{Mode, Workspace};

/// Candidate that is ready to run.
pub(super) struct CandidateRun {
    pub(super) loop_id: LoopId,
    pub(super) task: SessionTask,
    pub(super) guard: PromptGuard,
    pub(super) scope: PromptScope,
}

/// Place of a candidate in its group.
pub(super) struct CandidatePlace {
    pub(super) index: usize,
    /// Describes it to the user.
    pub(super) label: String,
    pub(super) loop_id: LoopId,
    /// Its own folder; `None` if all read the session's.
    pub(super) workspace: Option<Arc<Workspace>>,
    /// Held while a candidate asks the user; total time of the questions so far.
    pub(super) questions: Arc<Mutex<Duration>>,
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
    /// Creates the task of a candidate. Without a folder of its own it runs in plan mode, where it reads and searches,
    /// changes nothing and asks nothing. MCP servers work in the session's folder, so a candidate elsewhere has none.
    pub(super) fn for_candidate(
        &self,
        candidate: &ResolvedCandidate,
        place: CandidatePlace,
        group: GroupCommitSender,
    ) -> Self {
        let (_, mailbox) = mpsc::channel(1);
        let mut env = self.env.clone();
        env.model = Arc::clone(&candidate.model);
        env.budget = None;
        let is_apart = place.workspace.is_some();
        env.policy.mode = match is_apart {
            true => candidate.mode,
            false => Mode::Plan,
        };
        env.session_options = Some(self.options.subscribe());
        if let Some(system) = &candidate.config.system {
            env.settings.system = Arc::clone(system);
        }
        if let Some(workspace) = place.workspace
            && !faulty!(CandidateInSessionFolder)
        {
            let original = self.env.workspace.cwd();
            env.policy = env.policy.for_copy_of(original, workspace.cwd());
            env.settings.system =
                with_folder_note(&env.settings.system, original, workspace.cwd()).into();
            env.workspace = workspace;
        }
        env.client = match env.policy.mode {
            Mode::Plan => Arc::new(SilentClient),
            Mode::Ask | Mode::Edit | Mode::Auto => Arc::new(CandidateClient {
                client: Arc::clone(&self.env.client),
                label: place.label,
                loop_id: place.loop_id,
                questions: place.questions,
            }),
        };
        let tools = self.tools.for_candidate(
            &*self.env.client,
            candidate.config.tools.as_deref(),
            !is_apart,
        );
        env.toolbox = tools.current();
        let mut options = self.options.borrow().clone();
        options.mode = env.policy.mode;
        let mut conversation = self.conversation.clone();
        if let Some(system) = &candidate.config.system {
            conversation.system = SystemPrompt::new(Arc::clone(system), 0);
        }
        conversation.last_lost_loop = 0;
        let publisher = self.output.publisher.for_candidate();
        Self {
            tools,
            env,
            conversation,
            owner: self.owner.clone(),
            options: channel(options).0,
            inbox: Inbox::new(mailbox),
            output: SessionOutput::new(Box::new(SilentClient), publisher),
            interpreter: Arc::default(),
            background: BackgroundWork::default(),
            queue_watch: None,
            group: Some(group),
        }
    }
}

/// Tells the model that earlier paths mean other files: the conversation and the prompt name the original folder.
fn with_folder_note(system: &str, original: &Path, copy: &Path) -> String {
    format!(
        "{system}\n\nYou work in a copy of {}, which is yours alone: {}. Use only paths in the copy, and do not touch \
         the original.",
        original.display(),
        copy.display()
    )
}
