//! Store that fails on demand.

use futures_util::future::BoxFuture;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use turnery_engine::{Event, LoopId, LoopRecord, PromptId, SessionId, Timestamp};
use turnery_store::{
    ChangeMark, ClaimOutcome, ClaimedLane, Commit, DailyUsage, Damage, FollowFrom, FollowPage,
    History, Lane, ListPage, ListQuery, LoopBeginning, MemoryStore, NewSession, NextEffect, Owner,
    PromptRemoval, QueuedPrompt, RepairReport, ReplayCursor, ReplayPage, SearchPage, SearchQuery,
    SessionInfo, SessionPatch, Store, StoreDescription, StoreError, TakenEffect, TranscriptNote,
};

/// More commits than any test makes.
pub(crate) const ALWAYS: u64 = u64::MAX;

/// Wraps a store and fails or delays its calls on demand. `fail_patch` fails the next `patch`, `fail_loops`
/// the next `loops`, `history` or `replay_page`; both are then reset.
pub(crate) struct FailingStore {
    inner: Arc<dyn Store>,
    /// How many of the next commits fail.
    pub(crate) failing_commits: AtomicU64,
    /// How many commits have failed so far.
    pub(crate) failed_commits: AtomicU64,
    /// Moves the head before the next commit, which is refused then.
    pub(crate) head_moves: AtomicBool,
    pub(crate) fail_patch: AtomicBool,
    pub(crate) fail_loops: AtomicBool,
    /// While set, nothing reaches the journal.
    pub(crate) drop_appends: AtomicBool,
    /// Number of the next awaited journal writes that fail.
    pub(crate) failing_journal_writes: AtomicU64,
    /// How long each commit takes. Unit: seconds.
    pub(crate) commit_delay: AtomicU64,
    /// How long each claim and patch takes. Unit: seconds.
    pub(crate) write_delay: AtomicU64,
    /// Duration of each awaited journal write. Unit: seconds.
    pub(crate) journal_delay: AtomicU64,
    /// Lanes renewed so far.
    pub(crate) renewals: AtomicU64,
    /// Event writes so far, except those of a claim.
    pub(crate) journal_writes: AtomicU64,
    /// Claims so far that brought the first events of a loop.
    pub(crate) claims_with_beginning: AtomicU64,
    /// Claims wait while this is locked.
    pub(crate) claim_lock: tokio::sync::Mutex<()>,
    /// Makes the next claim with first events return an error although it was made.
    pub(crate) claim_answer_is_lost: AtomicBool,
}

impl FailingStore {
    pub(crate) fn new() -> Arc<Self> {
        Self::over(Arc::new(MemoryStore::new()))
    }

    pub(crate) fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            failing_commits: AtomicU64::new(0),
            failed_commits: AtomicU64::new(0),
            head_moves: AtomicBool::new(false),
            fail_patch: AtomicBool::new(false),
            fail_loops: AtomicBool::new(false),
            drop_appends: AtomicBool::new(false),
            failing_journal_writes: AtomicU64::new(0),
            commit_delay: AtomicU64::new(0),
            write_delay: AtomicU64::new(0),
            journal_delay: AtomicU64::new(0),
            renewals: AtomicU64::new(0),
            journal_writes: AtomicU64::new(0),
            claims_with_beginning: AtomicU64::new(0),
            claim_lock: tokio::sync::Mutex::default(),
            claim_answer_is_lost: AtomicBool::new(false),
        })
    }
}

/// Delays a write by its duration.
fn delayed_write<'s, T: 's>(takes: &AtomicU64, write: BoxFuture<'s, T>) -> BoxFuture<'s, T> {
    let takes = Duration::from_secs(takes.load(Ordering::SeqCst));
    Box::pin(async move {
        tokio::time::sleep(takes).await;
        write.await
    })
}

fn fail_if_set<T: Send + 'static>(
    switch: &AtomicBool,
) -> Option<BoxFuture<'static, Result<T, StoreError>>> {
    switch
        .swap(false, Ordering::SeqCst)
        .then(|| Box::pin(std::future::ready(Err(disk_full()))) as BoxFuture<'static, _>)
}

fn disk_full() -> StoreError {
    StoreError::Broken("the disk is full".to_owned())
}

/// Counts down to zero; false if the count is zero already.
fn take_failure(count: &AtomicU64) -> bool {
    let one_less = |left: u64| left.checked_sub(1);
    let order = Ordering::SeqCst;
    count.fetch_update(order, order, one_less).is_ok()
}

/// Methods that only call the inner store.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> BoxFuture<'_, Result<$result, StoreError>> {
            self.inner.$name($($argument),*)
        }
    )*};
}

impl Store for FailingStore {
    forward! {
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
        follow_page(id: &SessionId, from: FollowFrom) -> FollowPage;
        wait_for_change(id: &SessionId, since: Option<ChangeMark>) -> ChangeMark;
        recover(id: &SessionId) -> Vec<Damage>;
        release(lane: &Lane) -> ();
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

    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>> {
        fail_if_set(&self.fail_loops).unwrap_or_else(|| self.inner.loops(id, after))
    }

    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>> {
        fail_if_set(&self.fail_loops).unwrap_or_else(|| self.inner.history(id))
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> BoxFuture<'_, Result<ReplayPage, StoreError>> {
        fail_if_set(&self.fail_loops).unwrap_or_else(|| self.inner.replay_page(id, cursor))
    }

    fn claim(
        &self,
        id: &SessionId,
        owner: &Owner,
    ) -> BoxFuture<'_, Result<ClaimedLane, StoreError>> {
        let (id, owner) = (id.clone(), owner.clone());
        delayed_write(
            &self.write_delay,
            Box::pin(async move {
                let _waited = self.claim_lock.lock().await;
                self.inner.claim(&id, &owner).await
            }),
        )
    }

    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> BoxFuture<'_, Result<ClaimOutcome, StoreError>> {
        self.claims_with_beginning.fetch_add(1, Ordering::SeqCst);
        let (id, owner) = (id.clone(), owner.clone());
        let claim = Box::pin(async move {
            let _waited = self.claim_lock.lock().await;
            let claimed = self.inner.claim_and_journal(&id, &owner, beginning).await;
            match self.claim_answer_is_lost.swap(false, Ordering::SeqCst) {
                true => Err(disk_full()),
                false => claimed,
            }
        });
        delayed_write(&self.write_delay, claim)
    }

    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        self.inner.forget_journal(id, owner, loop_id);
    }

    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.inner.renew(lane)
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        self.journal_writes.fetch_add(1, Ordering::SeqCst);
        if !self.drop_appends.load(Ordering::SeqCst) {
            self.inner.append(lane, loop_id, events);
        }
    }

    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.journal_writes.fetch_add(1, Ordering::SeqCst);
        if take_failure(&self.failing_journal_writes) {
            return Box::pin(std::future::ready(Err(disk_full())));
        }
        match self.drop_appends.load(Ordering::SeqCst) {
            true => Box::pin(std::future::ready(Ok(()))),
            false => delayed_write(
                &self.journal_delay,
                self.inner.append_now(lane, loop_id, events),
            ),
        }
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        if take_failure(&self.failing_commits) {
            self.failed_commits.fetch_add(1, Ordering::SeqCst);
            return Box::pin(std::future::ready(Err(disk_full())));
        }
        if self.head_moves.swap(false, Ordering::SeqCst) {
            let moved = StoreError::HeadConflict {
                expected: commit.expected_head,
                actual: commit.expected_head + 1,
            };
            return Box::pin(std::future::ready(Err(moved)));
        }
        let commit = Box::pin(async move { self.inner.commit(commit).await });
        delayed_write(&self.commit_delay, commit)
    }

    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        fail_if_set(&self.fail_patch)
            .unwrap_or_else(|| delayed_write(&self.write_delay, self.inner.patch(id, patch)))
    }
}
