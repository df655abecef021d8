//! Tests of the first events of a prompt, which are journalled with its claim.

use crate::{
    failing_store::FailingStore,
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, run_text, start, start_text,
        with_hooks, yield_while,
    },
    hooks::{BeforeLoopBehavior, RecordingHooks},
};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};
use turnery_agent::{CancellationToken, Session};
use turnery_engine::{Content, LoopRecord, LoopStatus};
use turnery_models::Thinking;
use turnery_store::{Clock, Owner, SqliteStore};

/// A session in a database, after a first prompt.
struct ClaimFixture {
    world: EmbeddingFixture,
    store: Arc<FailingStore>,
    session: Session,
    /// Offset of the store's clock from the real one. Unit: seconds.
    clock_offset: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

impl ClaimFixture {
    /// The model answers the first prompt, then `next`.
    async fn after_first_prompt(next: &[ModelAct]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock_offset = Arc::new(AtomicI64::new(0));
        let seconds = Arc::clone(&clock_offset);
        let clock = Clock::new(move || {
            turnery_store::now() + chrono::TimeDelta::seconds(seconds.load(Ordering::SeqCst))
        });
        let path = folder.path().join("sessions.db");
        let store = FailingStore::over(Arc::new(SqliteStore::with_clock(path, clock)));
        let world = EmbeddingFixture::with_store(store.clone(), &[&[ModelAct::Say("one")], next]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "first").await;
        assert_eq!(store.claims_with_beginning.load(Ordering::SeqCst), 1);
        Self {
            world,
            store,
            session,
            clock_offset,
            _folder: folder,
        }
    }

    /// Returns the session's loops as seen by another owner that takes it over.
    async fn taken_over(&self) -> Vec<Arc<LoopRecord>> {
        self.clock_offset.store(120, Ordering::SeqCst);
        let owner = Owner::for_this_process();
        let id = self.session.id();
        self.world.store.claim(id, &owner).await.unwrap();
        self.world.store.loops(id, 0).await.unwrap()
    }

    /// Runs a further prompt and returns the messages that the model receives.
    async fn third_request(&self) -> Vec<String> {
        start_text(&self.session, "third").result().await.unwrap();
        self.world.model.request(1)
    }
}

async fn wait_until_called(model: &TestModel) {
    yield_while(|| *model.active_calls.lock().unwrap() == 0).await;
}

/// The claim has written all that the model's call needs to have in the journal.
// proves: S5
#[tokio::test]
async fn plain_prompt_makes_no_journal_write() {
    let stage = ClaimFixture::after_first_prompt(&[ModelAct::Hang]).await;
    stage.store.journal_writes.store(0, Ordering::SeqCst);
    let _ticket = start_text(&stage.session, "second");
    wait_until_called(&stage.world.model).await;
    assert_eq!(stage.store.journal_writes.load(Ordering::SeqCst), 0);
    let loops = stage.taken_over().await;
    let [_, lost] = &loops[..] else {
        panic!("{loops:?}");
    };
    assert_eq!((lost.status, lost.on_chain), (LoopStatus::Aborted, true));
    assert_eq!(lost.messages[0].message.text(), "second");
}

// proves: S5
#[tokio::test]
async fn setting_changed_during_claim_is_journalled() {
    let stage = ClaimFixture::after_first_prompt(&[ModelAct::Hang]).await;
    let held = stage.store.claim_lock.lock().await;
    let _ticket = start_text(&stage.session, "second");
    stage.session.set_thinking(Thinking::High).await.unwrap();
    drop(held);
    wait_until_called(&stage.world.model).await;
    let loops = stage.taken_over().await;
    let config = loops[1].config.as_ref().unwrap();
    assert_eq!(config.thinking_level.as_deref(), Some("high"));
    assert_eq!(loops[1].messages[0].message.text(), "second");
}

// proves: S5, C-12
#[tokio::test]
async fn model_changed_during_claim_leaves_one_loop() {
    let stage = ClaimFixture::after_first_prompt(&[]).await;
    let held = stage.store.claim_lock.lock().await;
    let ticket = start_text(&stage.session, "second");
    stage.session.set_model("puppet/two").await.unwrap();
    drop(held);
    let result = ticket.result().await.unwrap();
    let loops = stage.taken_over().await;
    assert_eq!(loops[1..], result.loops);
    assert_eq!(loops[1].config.as_ref().unwrap().model, "two");
}

// proves: CANCEL-2, C-12
#[tokio::test]
async fn prompt_cancelled_during_claim_leaves_no_loop() {
    let stage = ClaimFixture::after_first_prompt(&[ModelAct::Say("three")]).await;
    let held = stage.store.claim_lock.lock().await;
    let cancel = CancellationToken::new();
    let ticket = start(&stage.session, "second", cancel.clone());
    cancel.cancel();
    assert!(!ticket.result().await.unwrap().is_stored);
    drop(held);
    assert_eq!(stage.third_request().await, ["first", "one", "third"]);
}

// proves: C-12
#[tokio::test]
async fn unanswered_claim_leaves_no_loop() {
    let stage = ClaimFixture::after_first_prompt(&[ModelAct::Say("three")]).await;
    stage
        .store
        .claim_answer_is_lost
        .store(true, Ordering::SeqCst);
    start_text(&stage.session, "second")
        .result()
        .await
        .unwrap_err();
    assert_eq!(stage.third_request().await, ["first", "one", "third"]);
}

/// Nothing of the prompt reaches the disk before the hooks have agreed.
// proves: LOOP-55
#[tokio::test]
async fn refused_prompt_is_not_journalled() {
    let stage = ClaimFixture::after_first_prompt(&[]).await;
    let options = with_hooks(Arc::new(RecordingHooks::new(BeforeLoopBehavior::Refuses)));
    let input = vec![Content::text("second")];
    let ticket = stage.session.prompt(input, options).unwrap();
    assert_eq!(ticket.result().await.unwrap().loops, []);
    assert_eq!(stage.store.claims_with_beginning.load(Ordering::SeqCst), 1);
    assert_eq!(stage.taken_over().await.len(), 1);
}
