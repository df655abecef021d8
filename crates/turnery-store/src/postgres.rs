//! `PostgresStore` keeps sessions in a PostgreSQL database, shared by the processes of any number of machines.
//!
//! The work runs on a thread of the store, with a few connections. Every claim, append and commit is one round trip,
//! which checks the fence in the same statement or transaction. Leases are measured with the server's clock; one
//! heartbeat of a process keeps all its lanes alive.

mod address;
mod check;
mod claim;
mod commit;
mod connection;
mod deletion;
mod description;
mod effects;
mod engine;
mod escape;
mod follow;
mod hosts;
mod journal;
mod lanes;
mod listener;
mod loop_rows;
mod loops;
mod migration;
mod notes;
mod pg_error;
mod phrase_filters;
mod pool;
mod repair;
mod replay;
mod rows;
mod search;
mod search_index;
mod session_queue;
mod sessions;
#[cfg(test)]
mod simulation;
mod texts;
mod tls;
mod vacuum;

use crate::{
    ChangeMark, ClaimOutcome, ClaimedLane, Clock, Commit, DailyUsage, Damage, FollowFrom,
    FollowPage, History, Lane, ListPage, ListQuery, LoopBeginning, NewSession, NextEffect, Owner,
    PromptRemoval, QueuedPrompt, RepairReport, ReplayCursor, ReplayPage, SearchPage, SearchQuery,
    SessionInfo, SessionPatch, SpaceReport, Store, StoreDescription, StoreError, StoreFuture,
    TakenEffect, TranscriptNote,
    encoding::loop_row::LoopRow,
    follow::wait_for_change,
    journal_append::{JournalAppend, TruncatedJournals},
    store_walk,
};
pub use address::{PostgresAddress, PostgresAddressError};
use connection::Connection;
use engine::{CALL_TIMEOUT, CHECK_TIMEOUT, Engine, Shared};
use notes::NewNote;
use pg_error::PgError;
use replay::PostgresReplay;
use session_queue::Turn;
use std::{rc::Rc, sync::Arc, time::Duration};
use tokio::sync::oneshot;
use turnery_engine::{Event, LoopId, LoopRecord, PromptId, SessionId, Timestamp};

/// Sessions in one schema of a PostgreSQL database. Dropping the store writes everything that was queued.
pub struct PostgresStore {
    engine: Engine,
    /// Loops whose journal has lost events.
    truncated: Arc<TruncatedJournals>,
}

impl PostgresStore {
    /// Creates a store for this database. Nothing is read or created before first use.
    #[must_use]
    pub fn open(address: PostgresAddress) -> Self {
        Self::new(address, None)
    }

    /// Creates a store that takes the time for leases from `clock` instead of the server.
    #[must_use]
    pub fn with_clock(address: PostgresAddress, clock: Clock) -> Self {
        Self::new(address, Some(clock))
    }

    fn new(address: PostgresAddress, clock: Option<Clock>) -> Self {
        Self {
            engine: Engine::new(address, clock),
            truncated: Arc::default(),
        }
    }

    /// Runs work that may be repeated on another connection.
    fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl AsyncFnMut(&Shared, &Connection) -> Result<T, PgError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let mut work = work;
        self.engine.call(move |shared| {
            let shared = Rc::clone(shared);
            async move {
                let shared = &*shared;
                shared
                    .run(patience, async |connection| work(shared, connection).await)
                    .await
            }
        })
    }

    /// Like [`run`](Self::run), after all earlier work of this kind for the session.
    fn run_in_order<T: Send + 'static>(
        &self,
        id: &SessionId,
        patience: Duration,
        work: impl AsyncFnMut(&Shared, &Connection) -> Result<T, PgError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let id = id.clone();
        let mut work = work;
        self.engine.call(move |shared| {
            let turn = shared.sessions.of(&id).take_turn();
            let shared = Rc::clone(shared);
            async move {
                let _turn = begin_turn(turn).await;
                let shared = &*shared;
                shared
                    .run(patience, async |connection| work(shared, connection).await)
                    .await
            }
        })
    }

    fn delete_family(
        &self,
        id: &SessionId,
        is_forced: bool,
    ) -> StoreFuture<'static, Option<Vec<String>>> {
        let (key, mut found) = (id.clone(), None);
        self.run_in_order(id, CALL_TIMEOUT, async move |shared, connection| {
            deletion::delete(connection, &key, is_forced, shared.now(), &mut found).await
        })
    }

    fn queue_append(
        &self,
        append: JournalAppend,
        waiter: Option<oneshot::Sender<Result<(), StoreError>>>,
    ) -> Result<(), StoreError> {
        let truncated = Arc::clone(&self.truncated);
        self.engine.submit(move |shared| {
            let queue = shared.sessions.of(&append.lane.session_id);
            match queue.push(append, waiter, &truncated) {
                Some(turn) => {
                    let shared = Rc::clone(shared);
                    Box::pin(queue.flush(turn, truncated, async move |queue, batch| {
                        journal::write(&shared, queue, batch).await
                    }))
                }
                None => Box::pin(std::future::ready(())),
            }
        })
    }
}

async fn begin_turn(mut turn: Turn) -> Turn {
    turn.wait().await;
    turn
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    fn prepare(&self) {
        drop(self.run(CALL_TIMEOUT, async move |_, _| Ok(())));
    }

    fn create(&self, new: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.engine.call(move |shared| {
            let shared = Rc::clone(shared);
            async move { sessions::create(&shared, new).await }
        })
    }

    fn info(&self, id: &SessionId) -> StoreFuture<'_, SessionInfo> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            sessions::get(connection, &id).await
        })
    }

    fn list(&self, query: ListQuery) -> StoreFuture<'_, ListPage> {
        self.run(CALL_TIMEOUT, async move |_, connection| {
            sessions::list(connection, &query).await
        })
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<'_, bool> {
        let deleted = self.delete_family(id, false);
        Box::pin(async move { Ok(deleted.await?.is_some()) })
    }

    fn delete_in_use(&self, id: &SessionId) -> StoreFuture<'_, Option<Vec<String>>> {
        self.delete_family(id, true)
    }

    fn loops(&self, id: &SessionId, after: u64) -> StoreFuture<'_, Vec<Arc<LoopRecord>>> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            loops::read_loops(connection, &id, after).await
        })
    }

    fn history(&self, id: &SessionId) -> StoreFuture<'_, History> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            loops::history(connection, &id).await
        })
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> StoreFuture<'_, ReplayPage> {
        let id = id.clone();
        let replay = cursor.map(ReplayCursor::into_position::<PostgresReplay>);
        let mut replay = match replay.transpose() {
            Ok(replay) => replay,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        self.run(CALL_TIMEOUT, async move |_, connection| {
            if replay.is_some() {
                // The session may have been deleted since the previous page.
                sessions::get(connection, &id).await?;
            } else {
                replay = Some(replay::begin(connection, &id).await?);
            }
            let Some(left) = &mut replay else {
                return Ok(ReplayPage::default());
            };
            let mut page = left.read_page(connection, &id).await?;
            let left = replay.take().filter(PostgresReplay::has_more);
            page.next_cursor = left.map(ReplayCursor::new);
            Ok(page)
        })
    }

    fn follow_page(&self, id: &SessionId, from: FollowFrom) -> StoreFuture<'_, FollowPage> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            follow::read_page(connection, &id, &from).await
        })
    }

    fn wait_for_change(
        &self,
        id: &SessionId,
        since: Option<ChangeMark>,
    ) -> StoreFuture<'_, ChangeMark> {
        let id = id.clone();
        let changes = self.engine.call(move |shared| {
            let changes = shared.listener.subscribe(shared, &id);
            async move { Ok(changes) }
        });
        // Waits here, so that no work of the store outlives its user.
        Box::pin(async move { wait_for_change(changes.await?, since).await })
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, ClaimedLane> {
        let claimed = self.queue_claim(id, owner, None);
        Box::pin(async move { Ok(claimed.await?.claimed_lane) })
    }

    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> StoreFuture<'_, ClaimOutcome> {
        self.queue_claim(id, owner, Some(beginning))
    }

    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        let (key, owner_id, loop_id) = (id.clone(), owner.id.clone(), loop_id.clone());
        // The work runs even though nobody awaits it.
        drop(
            self.run_in_order(id, CALL_TIMEOUT, async move |_, connection| {
                journal::forget(connection, &key, &owner_id, &loop_id)
                    .await
                    .inspect_err(|error| tracing::warn!(%error, "failed to drop a journal"))
            }),
        );
    }

    fn recover(&self, id: &SessionId) -> StoreFuture<'_, Vec<Damage>> {
        let key = id.clone();
        self.run_in_order(id, CALL_TIMEOUT, async move |shared, connection| {
            claim::recover(connection, &key, shared.now()).await
        })
    }

    fn renew(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        let lane = lane.clone();
        self.run(CALL_TIMEOUT, async move |shared, connection| {
            lanes::renew(connection, &lane, shared.now()).await
        })
    }

    fn release(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        let lane = lane.clone();
        let id = lane.session_id.clone();
        self.run_in_order(&id, CALL_TIMEOUT, async move |_, connection| {
            lanes::release(connection, &lane).await
        })
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        if let Some(append) = JournalAppend::new(lane, loop_id, events)
            && let Err(error) = self.queue_append(append, None)
        {
            self.truncated.add(loop_id.clone(), &error.to_string());
        }
    }

    fn append_now(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> StoreFuture<'_, ()> {
        let Some(append) = JournalAppend::new(lane, loop_id, events) else {
            return Box::pin(std::future::ready(Ok(())));
        };
        let (waiter, written) = oneshot::channel();
        if let Err(error) = self.queue_append(append, Some(waiter)) {
            self.truncated.add(loop_id.clone(), &error.to_string());
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(async move {
            written
                .await
                .unwrap_or_else(|_| Err(StoreError::Broken("the store has ended".to_owned())))
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, u64> {
        let records = commit.records.iter();
        let checked = commit
            .check()
            .and_then(|()| records.clone().try_for_each(|it| LoopRow::validate(it)));
        if let Err(error) = checked {
            return Box::pin(std::future::ready(Err(error)));
        }
        let loops: Vec<LoopId> = records.map(|record| record.loop_id.clone()).collect();
        let truncated = Arc::clone(&self.truncated);
        self.engine.call(move |shared| {
            let queue = shared.sessions.of(&commit.lane.session_id);
            queue.drop_settled(&commit.lane, &loops, &truncated);
            let turn = queue.take_turn();
            let shared = Rc::clone(shared);
            async move {
                let _turn = begin_turn(turn).await;
                let version = commit::commit(&shared, &queue, &commit).await?;
                for loop_id in &loops {
                    truncated.clear(loop_id);
                }
                Ok(version)
            }
        })
    }

    fn take_effect(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, NextEffect> {
        let (id, owner) = (id.clone(), owner.clone());
        let mut taking = None;
        self.run(CALL_TIMEOUT, async move |shared, connection| {
            effects::take(shared, connection, &id, &owner, &mut taking).await
        })
    }

    fn finish_effect(&self, taken: &TakenEffect) -> StoreFuture<'_, ()> {
        let taken = taken.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            effects::finish(connection, &taken).await
        })
    }

    fn postpone_effect(&self, taken: &TakenEffect, delay: Duration) -> StoreFuture<'_, ()> {
        let taken = taken.clone();
        self.run(CALL_TIMEOUT, async move |shared, connection| {
            effects::postpone(connection, &taken, delay, shared.now()).await
        })
    }

    fn queue_prompt(&self, id: &SessionId, prompt: QueuedPrompt) -> StoreFuture<'_, ()> {
        let pending = match prompt.encode(id) {
            Ok(pending) => pending,
            Err(error) => {
                let error = StoreError::Broken(error.to_string());
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        self.run(CALL_TIMEOUT, async move |_, connection| {
            effects::queue_prompt(connection, &pending).await
        })
    }

    fn queued_prompts(&self, id: &SessionId) -> StoreFuture<'_, Vec<QueuedPrompt>> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            effects::prompts(connection, &id).await
        })
    }

    fn start_queued_prompt(&self, id: &SessionId, prompt: &PromptId) -> StoreFuture<'_, bool> {
        let (id, prompt) = (id.clone(), prompt.clone());
        self.run(CALL_TIMEOUT, async move |_, connection| {
            effects::start_prompt(connection, &id, &prompt).await
        })
    }

    fn remove_queued_prompt(
        &self,
        id: &SessionId,
        prompt: &PromptId,
        removal: PromptRemoval,
    ) -> StoreFuture<'_, bool> {
        let (id, prompt) = (id.clone(), prompt.clone());
        self.run(CALL_TIMEOUT, async move |_, connection| {
            effects::remove_prompt(connection, &id, &prompt, removal).await
        })
    }

    fn patch(&self, id: &SessionId, patch: SessionPatch) -> StoreFuture<'_, SessionInfo> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            sessions::patch(connection, &id, &patch).await
        })
    }

    fn add_notes(&self, id: &SessionId, notes: Vec<TranscriptNote>) -> StoreFuture<'_, ()> {
        let id = id.clone();
        self.engine.call(move |shared| {
            let shared = Rc::clone(shared);
            async move {
                let notes = notes.iter().map(|note| NewNote::encode(&id, note));
                let notes: Vec<NewNote> = notes
                    .collect::<Result<_, _>>()
                    .map_err(|error| PgError::from(error).into_store_error(&shared.pool.address))?;
                shared
                    .run(CALL_TIMEOUT, async |connection| {
                        notes::add(connection, &id, &notes).await
                    })
                    .await
            }
        })
    }

    fn notes(&self, id: &SessionId) -> StoreFuture<'_, Vec<TranscriptNote>> {
        let id = id.clone();
        self.run(CALL_TIMEOUT, async move |_, connection| {
            notes::read_all(connection, &id).await
        })
    }

    fn check(&self, id: Option<&SessionId>) -> StoreFuture<'_, Vec<Damage>> {
        let id = id.cloned();
        self.run(CHECK_TIMEOUT, async move |_, connection| {
            if let Some(id) = &id {
                return check::check_session(connection, id).await;
            }
            let (mut damage, mut after) = (Vec::new(), String::new());
            loop {
                let ids = check::next_ids(connection, &after).await?;
                let Some(last) = ids.last() else {
                    return Ok(damage);
                };
                after = last.to_string();
                for id in &ids {
                    match check::check_session(connection, id).await {
                        Ok(mut found) => damage.append(&mut found),
                        // Deleted meanwhile.
                        Err(PgError::Store(StoreError::NotFound(_))) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        })
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, SearchPage> {
        self.engine.call(move |shared| {
            let shared = Rc::clone(shared);
            async move { search::search(&shared, query).await }
        })
    }

    fn daily_usage(&self, since: Option<Timestamp>) -> StoreFuture<'_, Vec<DailyUsage>> {
        Box::pin(store_walk::daily_usage(self, since))
    }

    fn session_size(&self, id: &SessionId) -> StoreFuture<'_, u64> {
        let id = id.clone();
        Box::pin(async move { store_walk::json_size(self, &id).await })
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        self.run(CALL_TIMEOUT, async move |shared, connection| {
            let location = shared.pool.address.to_string();
            description::describe(connection, location).await
        })
    }

    fn vacuum(&self) -> StoreFuture<'_, SpaceReport> {
        self.run(CHECK_TIMEOUT, async move |_, connection| {
            vacuum::vacuum(connection).await
        })
    }

    fn repair(&self, id: &SessionId) -> StoreFuture<'_, RepairReport> {
        let key = id.clone();
        self.run_in_order(id, CHECK_TIMEOUT, async move |shared, connection| {
            repair::repair(connection, &key, shared.now()).await
        })
    }
}

impl PostgresStore {
    fn queue_claim(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> StoreFuture<'static, ClaimOutcome> {
        let (id, owner) = (id.clone(), owner.clone());
        self.engine.call(move |shared| {
            let queue = shared.sessions.of(&id);
            let turn = queue.take_turn();
            let shared = Rc::clone(shared);
            async move {
                let _turn = begin_turn(turn).await;
                queue.forget_texts();
                claim::claim(&shared, &id, &owner, beginning.as_deref()).await
            }
        })
    }
}
