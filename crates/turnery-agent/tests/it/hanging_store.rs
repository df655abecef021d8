//! Tests that a hanging store blocks neither a cancelled prompt nor the cancelling of other work.

use crate::{
    evaluation::{start_evaluation, three_models},
    failing_store::{ALWAYS, FailingStore},
    fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, live_events, run_text, start},
};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::{Instant, sleep};
use turnery_agent::{
    CancellationToken, PromptHandle, PromptOptions, PromptResult, SelectionStrategy, Session,
};
use turnery_engine::{Event, EventKind, Outcome, TurnStop};
use turnery_store::{Owner, StoreError};
use turnery_tools::Mode;

/// Contract: a cancelled prompt returns within a second, whatever the store does.
const MAX_CANCEL_TIME: Duration = Duration::from_secs(1);

/// Longer than any store timeout.
const HANG_SECONDS: u64 = 65;

/// Cancels a prompt in mid-stream, or wherever it hangs, and measures the time to its result.
async fn cancel_and_measure(ticket: PromptHandle, cancel: &CancellationToken) -> PromptResult {
    sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert!(began.elapsed() <= MAX_CANCEL_TIME, "{:?}", began.elapsed());
    result
}

fn is_cancelled(result: &PromptResult) -> bool {
    result.outcome == Outcome::Stopped(TurnStop::Cancelled)
}

async fn stored_loop_count(world: &EmbeddingFixture, session: &Session) -> usize {
    world.loops(session.id()).await.len()
}

const TWO_ANSWERS: [&[ModelAct]; 2] = [
    &[ModelAct::Say("one"), ModelAct::Hang],
    &[ModelAct::Say("two")],
];

/// The result says that nothing is stored; the next prompt waits for the commit and sees what it stored.
// proves: CANCEL-2, CANCEL-3, LASH-89, R4
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_commit() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(HANG_SECONDS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(is_cancelled(&first) && !first.is_stored);
    let shown: Vec<_> = live_events(&drain(&mut seen))
        .into_iter()
        .map(|it| it.kind)
        .collect();
    assert!(
        matches!(shown.last(), Some(EventKind::Issue { text }) if text.contains("not stored yet")),
        "{shown:?}"
    );
    assert!(
        !shown
            .iter()
            .any(|kind| matches!(kind, EventKind::LoopEnd { .. }))
    );
    assert_eq!(stored_loop_count(&world, &session).await, 0);
    // The lane is renewed, far beyond its term, while the commit is pending.
    sleep(Duration::from_secs(50)).await;
    let other = Owner {
        id: "other".to_owned(),
        ..Owner::for_this_process()
    };
    let refused = world.store.claim(session.id(), &other).await;
    assert!(
        matches!(refused, Err(StoreError::Busy { .. })),
        "{refused:?}"
    );

    store.commit_delay.store(0, Ordering::SeqCst);
    let second = run_text(&session, "second").await;
    assert!(began.elapsed() >= Duration::from_secs(HANG_SECONDS));
    assert!(second.is_stored);
    assert_eq!(world.model.request(1), ["first", "one", "second"]);
    assert_eq!(stored_loop_count(&world, &session).await, 2);
    assert_ne!(first.loops[0].loop_id, second.loops[0].loop_id);
}

/// A prompt that waits for that commit returns as fast when cancelled, and leaves the session free.
// proves: CANCEL-2, CANCEL-8
#[tokio::test(start_paused = true)]
async fn cancel_of_the_next_prompt_does_not_wait_either() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(HANG_SECONDS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    let cancel = CancellationToken::new();
    let second = cancel_and_measure(start(&session, "second", cancel.clone()), &cancel).await;
    assert!(is_cancelled(&second) && !second.is_stored && second.loops.is_empty());
    store.commit_delay.store(0, Ordering::SeqCst);
    run_text(&session, "third").await;
    assert_eq!(world.model.request(1), ["first", "one", "third"]);
}

/// The notices in `shown` that an earlier prompt is still being stored.
fn storing_notices(shown: &[Event]) -> Vec<&Event> {
    let is_notice = |event: &&Event| match &event.kind {
        EventKind::Issue { text } => text.contains("still being stored"),
        _ => false,
    };
    shown.iter().filter(is_notice).collect()
}

/// The notice belongs to the loop that is being stored; a cancel after it returns as fast as one before.
// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn waiting_behind_commit_is_reported_once() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(HANG_SECONDS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    store.commit_delay.store(0, Ordering::SeqCst);
    let items = drain(&mut seen);
    assert!(storing_notices(&live_events(&items)).is_empty());

    let cancel = CancellationToken::new();
    let second = start(&session, "second", cancel.clone());
    sleep(Duration::from_millis(900)).await;
    assert!(drain(&mut seen).is_empty());
    sleep(Duration::from_millis(200)).await;
    let shown = live_events(&drain(&mut seen));
    assert_eq!(
        (shown.len(), storing_notices(&shown).len()),
        (1, 1),
        "{shown:?}"
    );
    assert_eq!(shown[0].loop_id, first.loops[0].loop_id);
    cancel_and_measure(second, &cancel).await;
    assert!(drain(&mut seen).is_empty());

    run_text(&session, "third").await;
    assert_eq!(storing_notices(&live_events(&drain(&mut seen))).len(), 1);
    assert_eq!(world.model.request(1), ["first", "one", "third"]);
    run_text(&session, "fourth").await;
    assert!(storing_notices(&live_events(&drain(&mut seen))).is_empty());
}

#[tokio::test(start_paused = true)]
async fn short_wait_shows_no_notice() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(1, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(!first.is_stored);
    store.commit_delay.store(0, Ordering::SeqCst);
    store.write_delay.store(5, Ordering::SeqCst);
    run_text(&session, "second").await;
    assert!(storing_notices(&live_events(&drain(&mut seen))).is_empty());
}

/// An outcome that was sealed before the cancel stands (CANCEL-11).
// proves: CANCEL-11
#[tokio::test(start_paused = true)]
async fn late_cancel_of_a_hanging_commit_keeps_the_outcome() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(
        store.clone(),
        &[&[ModelAct::Say("one")], &[ModelAct::Say("two")]],
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(HANG_SECONDS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(matches!(first.outcome, Outcome::Finished(..)) && !first.is_stored);
}

// proves: S5
#[tokio::test(start_paused = true)]
async fn cancelled_unstored_prompt_is_recovered() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(!first.is_stored);
    sleep(Duration::from_secs(60)).await;
    // All the attempts that any prompt has.
    assert_eq!(store.failed_commits.load(Ordering::SeqCst), 6);
    store.failing_commits.store(0, Ordering::SeqCst);
    run_text(&session, "second").await;
    let request = world.model.request(1);
    assert_eq!(
        [&request[0], &request[1], &request[3]],
        ["first", "one", "second"]
    );
    assert!(request[2].contains("interrupted"), "{request:?}");
}

/// The model is not called before the journal is written; a cancel does not wait for that.
// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_journal() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.journal_delay.store(11, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    let first = cancel_and_measure(ticket, &cancel).await;
    assert!(is_cancelled(&first) && !first.is_stored);
    assert_eq!(first.loops.len(), 1);
    store.journal_delay.store(0, Ordering::SeqCst);
    run_text(&session, "second").await;
    assert_eq!(stored_loop_count(&world, &session).await, 2);
}

// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_claim() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &[&[ModelAct::Say("two")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.write_delay.store(11, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancel_and_measure(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(is_cancelled(&first) && !first.is_stored && first.loops.is_empty());
    store.write_delay.store(0, Ordering::SeqCst);
    run_text(&session, "second").await;
    assert_eq!(world.model.request(0), ["second"]);
}

// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_setting() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &TWO_ANSWERS);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    sleep(Duration::from_secs(1)).await;
    store.write_delay.store(11, Ordering::SeqCst);
    let (first, set) = tokio::join!(
        cancel_and_measure(ticket, &cancel),
        session.set_mode(Mode::Plan)
    );
    assert!(is_cancelled(&first) && first.is_stored);
    assert_eq!((set, session.options().mode), (Ok(()), Mode::Plan));
}

/// An evaluation waits neither for the journals of its candidates nor for its commit.
// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancelled_evaluation_does_not_wait_for_its_commit() {
    for journal_takes in [0, 11] {
        let store = FailingStore::new();
        let world = EmbeddingFixture::with_models(store.clone(), &three_models());
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        store.commit_delay.store(HANG_SECONDS, Ordering::SeqCst);
        store.journal_delay.store(journal_takes, Ordering::SeqCst);
        let options = PromptOptions::cancelled_by(CancellationToken::new());
        let cancel = options.cancel.clone();
        let ticket = start_evaluation(&session, &["a", "b"], SelectionStrategy::First, options);
        let first = cancel_and_measure(ticket, &cancel).await;
        assert!(!first.is_stored);
        assert_eq!(
            (first.loops.len(), stored_loop_count(&world, &session).await),
            (2, 0)
        );
        store.commit_delay.store(0, Ordering::SeqCst);
        store.journal_delay.store(0, Ordering::SeqCst);
        run_text(&session, "second").await;
        assert_eq!(stored_loop_count(&world, &session).await, 3);
        let request = world.model.request(0);
        assert_eq!((&*request[0], &*request[2]), ("which?", "second"));
    }
}
