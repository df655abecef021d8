//! Runs one candidate: an in-memory session task that shares the lane and store of its session.

use super::super::{
    BackgroundWork, PromptError, inbox::Inbox, loop_plan::LoopPlan, output::SessionOutput,
    prompt_guard::PromptGuard, prompt_scope::PromptScope, run::LoopRun, task::SessionTask,
};
use crate::{ask_user, client::SilentClient, observe::observer_channel};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch::channel};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId};
use turnery_models::{Model, Thinking};
use turnery_store::{
    ClaimedLane, Commit, Damage, History, Lane, ListPage, ListQuery, NewSession, Owner,
    RepairReport, ReplayCursor, ReplayPage, SessionInfo, SessionPatch, Store, StoreError,
    TranscriptNote,
};
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
        let ended = ended.finish().await.map(drop);
        (self, ended)
    }
}

impl SessionTask {
    /// Creates the task of a candidate. Several share one folder, so it runs in plan mode, where it reads and
    /// searches and changes nothing. It asks the user nothing.
    pub(super) fn for_candidate(
        &self,
        model: &Arc<dyn Model>,
        thinking: Option<Thinking>,
        store: CandidateStore,
    ) -> Self {
        let (_, mailbox) = mpsc::channel(1);
        let mut env = self.env.clone();
        env.store = Arc::new(store);
        env.toolbox = ask_user::without_ask_user(&env.toolbox, &*self.env.client);
        env.client = Arc::new(SilentClient);
        env.settings.thinking = thinking.unwrap_or(env.settings.thinking);
        env.model = Arc::clone(model);
        env.policy.mode = Mode::Plan;
        env.budget = None;
        let mut options = self.options.borrow().clone();
        options.mode = Mode::Plan;
        let mut conversation = self.conversation.clone();
        conversation.last_lost_loop = 0;
        Self {
            tools: self.tools.without_ask_user(&*self.env.client),
            env,
            conversation,
            owner: self.owner.clone(),
            options: channel(options).0,
            inbox: Inbox::new(mailbox),
            output: SessionOutput::new(Box::new(SilentClient), observer_channel().0),
            background: BackgroundWork::default(),
            retries: false,
        }
    }
}

/// Ended loop that waits for the group's commit.
pub(super) struct CandidateResult {
    pub(super) index: usize,
    pub(super) commit: Commit,
    pub(super) stored: oneshot::Sender<Result<u64, StoreError>>,
}

/// Store of a candidate: its commit is deferred to that of the group (S6), and the lane is renewed by the
/// session. Journal writes, and everything of other sessions such as sub-agents, pass through.
pub(super) struct CandidateStore {
    pub(super) session_id: SessionId,
    pub(super) store: Arc<dyn Store>,
    pub(super) index: usize,
    pub(super) results: mpsc::Sender<CandidateResult>,
}

impl Store for CandidateStore {
    fn create(&self, new: NewSession) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        self.store.create(new)
    }

    fn info(&self, id: &SessionId) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        self.store.info(id)
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<ListPage, StoreError>> {
        self.store.list(query)
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.store.delete(id)
    }

    fn delete_in_use(
        &self,
        id: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Vec<String>>, StoreError>> {
        self.store.delete_in_use(id)
    }

    fn check(&self, id: Option<&SessionId>) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        self.store.check(id)
    }

    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<RepairReport, StoreError>> {
        self.store.repair(id)
    }

    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>> {
        self.store.loops(id, after)
    }

    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>> {
        self.store.history(id)
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> BoxFuture<'_, Result<ReplayPage, StoreError>> {
        self.store.replay_page(id, cursor)
    }

    fn claim(
        &self,
        id: &SessionId,
        owner: &Owner,
    ) -> BoxFuture<'_, Result<ClaimedLane, StoreError>> {
        self.store.claim(id, owner)
    }

    fn recover(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        self.store.recover(id)
    }

    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        match lane.session_id == self.session_id {
            true => Box::pin(async { Ok(()) }),
            false => self.store.renew(lane),
        }
    }

    fn release(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        match lane.session_id == self.session_id {
            true => Box::pin(async { Ok(()) }),
            false => self.store.release(lane),
        }
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        self.store.append(lane, loop_id, events);
    }

    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.append_now(lane, loop_id, events)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        if commit.lane.session_id != self.session_id {
            return self.store.commit(commit);
        }
        Box::pin(async move {
            let gone = || StoreError::Broken("the evaluation was given up".to_owned());
            let (stored, answer) = oneshot::channel();
            let result = CandidateResult {
                index: self.index,
                commit,
                stored,
            };
            self.results.send(result).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        self.store.patch(id, patch)
    }

    fn add_notes(
        &self,
        id: &SessionId,
        notes: Vec<TranscriptNote>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.add_notes(id, notes)
    }

    fn notes(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<TranscriptNote>, StoreError>> {
        self.store.notes(id)
    }
}
