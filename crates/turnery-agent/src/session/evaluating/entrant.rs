//! Entrant: one candidate at work: a session task of its own, in memory, over the one lane and the one
//! store of the session.

use super::super::{
    BackgroundWork, PromptError, Task, plan::Plan, prompting::Scope, run::Run, watch::Watch,
};
use crate::{Ports, Silent, ask_user, observe::observing, sink::Tap};
use futures_util::future::BoxFuture;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::{mpsc, oneshot, watch::channel};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId};
use turnery_models::{Model, Thinking};
use turnery_store::{
    Commit, Damage, History, Lane, ListPage, ListQuery, NewSession, Opened, Owner, Page, Remark,
    Repair, Rest, SessionInfo, SessionPatch, Store, StoreError,
};
use turnery_tools::Mode;

/// A candidate, ready to run.
pub(super) struct Entrant {
    pub(super) loop_id: LoopId,
    pub(super) task: Task,
    pub(super) watch: Watch,
    pub(super) scope: Scope,
}

impl Entrant {
    /// Run its loop to the end, which comes after the commit of the whole group.
    pub(super) async fn run(mut self, plan: Plan) -> (Self, Result<(), PromptError>) {
        let loop_id = self.loop_id.clone();
        let ended = Run::begin(&mut self.task, &mut self.watch, &self.scope, plan, loop_id);
        let ended = ended.finish().await.map(drop);
        (self, ended)
    }
}

impl Task {
    /// A task like this one for a candidate. Several are at work in one folder at once, so it is no
    /// freer than plan mode: it reads and searches, and changes nothing. Nobody is asked anything.
    pub(super) fn for_candidate(
        &self,
        model: &Arc<dyn Model>,
        thinking: Option<Thinking>,
        store: GroupStore,
    ) -> Self {
        let (_, mailbox) = mpsc::channel(1);
        let mut settings = self.settings.clone();
        settings.thinking = thinking.unwrap_or(settings.thinking);
        let mut policy = self.policy.clone();
        policy.mode = Mode::Plan;
        let mut options = self.options.borrow().clone();
        options.mode = Mode::Plan;
        Self {
            store: Arc::new(store),
            models: Arc::clone(&self.models),
            tools: self.tools.withheld(&*self.ports.client),
            toolbox: ask_user::withheld(&self.toolbox, &*self.ports.client),
            workspace: Arc::clone(&self.workspace),
            ports: Ports {
                client: Arc::new(Silent),
                outbox: Box::new(Silent),
                files: Arc::clone(&self.ports.files),
                terminals: self.ports.terminals.clone(),
            },
            settings,
            model: Arc::clone(model),
            policy,
            info: self.info.clone(),
            history: self.history.clone(),
            frame_id: self.frame_id.clone(),
            overhead: self.overhead,
            owner: self.owner.clone(),
            shown_as: self.shown_as.clone(),
            depth: self.depth,
            lent: None,
            options: channel(options).0,
            mailbox,
            tracing: self.tracing.clone(),
            tap: Tap::default(),
            observing: observing().0,
            inserting: None,
            waiting: VecDeque::new(),
            words: VecDeque::new(),
            lost: 0,
            retries: false,
            setting: None,
            background: BackgroundWork::default(),
            closing: Vec::new(),
        }
    }
}

/// A loop that is over, and waits for the group's commit.
pub(super) struct Offer {
    pub(super) place: usize,
    pub(super) commit: Commit,
    pub(super) stored: oneshot::Sender<Result<u64, StoreError>>,
}

/// The session's store, as a candidate sees it: its commit is that of the group (S6), and the lane is
/// looked after by the session. Journals are written as ever, and so is all that is of other sessions,
/// those of sub-agents.
pub(super) struct GroupStore {
    pub(super) session_id: SessionId,
    pub(super) store: Arc<dyn Store>,
    pub(super) place: usize,
    pub(super) offers: mpsc::Sender<Offer>,
}

impl Store for GroupStore {
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

    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<Repair, StoreError>> {
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

    fn shown(&self, id: &SessionId, rest: Option<Rest>) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.store.shown(id, rest)
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> BoxFuture<'_, Result<Opened, StoreError>> {
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
            let offer = Offer {
                place: self.place,
                commit,
                stored,
            };
            self.offers.send(offer).await.map_err(|_| gone())?;
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

    fn remark(&self, id: &SessionId, said: Vec<Remark>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.remark(id, said)
    }

    fn remarks(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Remark>, StoreError>> {
        self.store.remarks(id)
    }
}
