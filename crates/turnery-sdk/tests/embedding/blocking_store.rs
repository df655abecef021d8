//! A store whose work takes no time on the paused clock: otherwise a session waiting for a database thread
//! would look idle, and the clock would advance.

use futures_util::future::BoxFuture;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use turnery_engine::{Event, LoopId, LoopRecord, PromptId, SessionId, Timestamp};
use turnery_store::{
    ChangeMark, ClaimedLane, Commit, DailyUsage, Damage, FollowFrom, FollowPage, History, Lane,
    ListPage, ListQuery, NewSession, NextEffect, Owner, PromptRemoval, QueuedPrompt, RepairReport,
    ReplayCursor, ReplayPage, SearchPage, SearchQuery, SessionInfo, SessionPatch, Store,
    StoreDescription, StoreError, TakenEffect, TranscriptNote,
};

/// Store wrapper that holds the clock.
pub(crate) struct ClockHoldingStore<S> {
    inner: S,
    /// Makes each commit expect an older head than the store has.
    pub(crate) is_head_stale: AtomicBool,
}

impl<S> ClockHoldingStore<S> {
    pub(crate) const fn new(inner: S) -> Self {
        Self {
            inner,
            is_head_stale: AtomicBool::new(false),
        }
    }
}

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

/// Methods that run the same method of the inner store in a blocking task.
macro_rules! blocking {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> BoxFuture<'_, Result<$result, StoreError>> {
            run_blocking(self.inner.$name($($argument),*))
        }
    )*};
}

impl<S: Store> Store for ClockHoldingStore<S> {
    blocking! {
        create(new: NewSession) -> SessionInfo;
        info(id: &SessionId) -> SessionInfo;
        list(query: ListQuery) -> ListPage;
        search(query: SearchQuery) -> SearchPage;
        daily_usage(since: Option<Timestamp>) -> Vec<DailyUsage>;
        session_size(id: &SessionId) -> u64;
        describe() -> StoreDescription;
        delete(id: &SessionId) -> bool;
        delete_in_use(id: &SessionId) -> Option<Vec<String>>;
        check(id: Option<&SessionId>) -> Vec<Damage>;
        repair(id: &SessionId) -> RepairReport;
        loops(id: &SessionId, after: u64) -> Vec<Arc<LoopRecord>>;
        history(id: &SessionId) -> History;
        replay_page(id: &SessionId, cursor: Option<ReplayCursor>) -> ReplayPage;
        follow_page(id: &SessionId, from: FollowFrom) -> FollowPage;
        wait_for_change(id: &SessionId, since: Option<ChangeMark>) -> ChangeMark;
        claim(id: &SessionId, owner: &Owner) -> ClaimedLane;
        recover(id: &SessionId) -> Vec<Damage>;
        renew(lane: &Lane) -> ();
        release(lane: &Lane) -> ();
        append_now(lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> ();
        patch(id: &SessionId, patch: SessionPatch) -> SessionInfo;
        add_notes(id: &SessionId, notes: Vec<TranscriptNote>) -> ();
        notes(id: &SessionId) -> Vec<TranscriptNote>;
        queue_prompt(id: &SessionId, prompt: QueuedPrompt) -> ();
        queued_prompts(id: &SessionId) -> Vec<QueuedPrompt>;
        start_queued_prompt(id: &SessionId, prompt: &PromptId) -> bool;
        remove_queued_prompt(id: &SessionId, prompt: &PromptId, removal: PromptRemoval) -> bool;
        take_effect(id: &SessionId, owner: &Owner) -> NextEffect;
        finish_effect(taken: &TakenEffect) -> ();
        postpone_effect(taken: &TakenEffect, delay: Duration) -> ();
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        self.inner.append(lane, loop_id, events);
    }

    fn commit(&self, mut commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        if self.is_head_stale.load(Ordering::SeqCst) {
            commit.expected_head -= 1;
        }
        run_blocking(self.inner.commit(commit))
    }
}
