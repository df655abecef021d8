//! A store whose work takes no time on the paused clock: otherwise a session waiting for a database thread
//! would look idle, and the clock would advance.

use futures_util::future::BoxFuture;
use std::sync::{Arc, mpsc};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId};
use turnery_store::{
    ClaimedLane, Commit, Damage, History, Lane, ListPage, ListQuery, NewSession, Owner,
    RepairReport, ReplayCursor, ReplayPage, SessionInfo, SessionPatch, Store, StoreError,
    TranscriptNote,
};

/// Store wrapper that holds the clock.
pub(crate) struct Held<S>(pub(crate) S);

/// Runs work in a blocking task, during which the clock stands still.
fn run_blocking<T: Send + 'static>(work: BoxFuture<'_, T>) -> BoxFuture<'_, T> {
    Box::pin(async move {
        let (done, wait) = mpsc::channel::<()>();
        let holding = tokio::task::spawn_blocking(move || wait.recv().is_err());
        let end = work.await;
        drop(done);
        holding.await.unwrap();
        end
    })
}

impl<S: Store> Store for Held<S> {
    fn create(&self, new: NewSession) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        run_blocking(self.0.create(new))
    }

    fn info(&self, id: &SessionId) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        run_blocking(self.0.info(id))
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<ListPage, StoreError>> {
        run_blocking(self.0.list(query))
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        run_blocking(self.0.delete(id))
    }

    fn delete_in_use(
        &self,
        id: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Vec<String>>, StoreError>> {
        run_blocking(self.0.delete_in_use(id))
    }

    fn check(&self, id: Option<&SessionId>) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        run_blocking(self.0.check(id))
    }

    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<RepairReport, StoreError>> {
        run_blocking(self.0.repair(id))
    }

    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>> {
        run_blocking(self.0.loops(id, after))
    }

    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>> {
        run_blocking(self.0.history(id))
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> BoxFuture<'_, Result<ReplayPage, StoreError>> {
        run_blocking(self.0.replay_page(id, cursor))
    }

    fn claim(
        &self,
        id: &SessionId,
        owner: &Owner,
    ) -> BoxFuture<'_, Result<ClaimedLane, StoreError>> {
        run_blocking(self.0.claim(id, owner))
    }

    fn recover(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        run_blocking(self.0.recover(id))
    }

    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        run_blocking(self.0.renew(lane))
    }

    fn release(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        run_blocking(self.0.release(lane))
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        self.0.append(lane, loop_id, events);
    }

    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        run_blocking(self.0.append_now(lane, loop_id, events))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        run_blocking(self.0.commit(commit))
    }

    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        run_blocking(self.0.patch(id, patch))
    }

    fn add_notes(
        &self,
        id: &SessionId,
        notes: Vec<TranscriptNote>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        run_blocking(self.0.add_notes(id, notes))
    }

    fn notes(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<TranscriptNote>, StoreError>> {
        run_blocking(self.0.notes(id))
    }
}
