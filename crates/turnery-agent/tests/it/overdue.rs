//! A store that hangs keeps no cancelled prompt waiting, and no cancel of another kind of work.

use crate::{
    evaluating::{three, tried},
    failing_store::{FOR_GOOD, FailingStore},
    world::{Act, ROOM, World, drain, live, say, start},
};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::{Instant, sleep};
use turnery_agent::{CancellationToken, Pick, PromptOptions, PromptResult, Session, Ticket};
use turnery_engine::{Content, Event, EventKind, Outcome, TurnStop};
use turnery_store::{Owner, StoreError};
use turnery_tools::Mode;

/// The contract: a cancel is answered within a second, whatever the store does.
const AT_MOST: Duration = Duration::from_secs(1);

/// Longer than any patience of the store.
const HANGS: u64 = 65;

/// Cancels a prompt in mid-stream, or wherever it hangs, and measures the time to its answer.
async fn cancelled(ticket: Ticket, cancel: &CancellationToken) -> PromptResult {
    sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert!(began.elapsed() <= AT_MOST, "{:?}", began.elapsed());
    result
}

fn stopped(result: &PromptResult) -> bool {
    result.outcome == Outcome::Stopped(TurnStop::Cancelled)
}

async fn stored(world: &World, session: &Session) -> usize {
    world.store.loops(session.id(), 0).await.unwrap().len()
}

const TWO: [&[Act]; 2] = [&[Act::Say("one"), Act::Hang], &[Act::Say("two")]];

/// The answer tells that nothing is stored; the next prompt waits for the commit and sees what it stored.
// proves: CANCEL-2, CANCEL-3, LASH-89, R4
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_commit() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, mut seen) = world.session(ROOM).await;
    store.commit_takes.store(HANGS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(stopped(&first) && !first.is_stored);
    let shown: Vec<_> = live(&drain(&mut seen))
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
    assert_eq!(stored(&world, &session).await, 0);
    // The lane is kept, far beyond its term, for as long as the commit is under way.
    sleep(Duration::from_secs(50)).await;
    let other = Owner {
        id: "other".to_owned(),
        ..Owner::this_process()
    };
    let refused = world.store.claim(session.id(), &other).await;
    assert!(
        matches!(refused, Err(StoreError::Busy { .. })),
        "{refused:?}"
    );

    store.commit_takes.store(0, Ordering::SeqCst);
    let second = say(&session, "second").result().await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(HANGS));
    assert!(second.is_stored);
    assert_eq!(world.puppet.request(1), ["first", "one", "second"]);
    assert_eq!(stored(&world, &session).await, 2);
    assert_ne!(first.loops[0].loop_id, second.loops[0].loop_id);
}

/// The prompt that waits for that commit is answered as soon, and leaves the session free.
// proves: CANCEL-2, CANCEL-8
#[tokio::test(start_paused = true)]
async fn cancel_of_the_next_prompt_does_not_wait_either() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, _seen) = world.session(ROOM).await;
    store.commit_takes.store(HANGS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    let cancel = CancellationToken::new();
    let second = cancelled(start(&session, "second", cancel.clone()), &cancel).await;
    assert!(stopped(&second) && !second.is_stored && second.loops.is_empty());
    store.commit_takes.store(0, Ordering::SeqCst);
    say(&session, "third").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["first", "one", "third"]);
}

/// The notices in `shown` that an earlier prompt is still being stored.
fn storing_notices(shown: &[Event]) -> Vec<&Event> {
    let is_notice = |event: &&Event| match &event.kind {
        EventKind::Issue { text } => text.contains("still being stored"),
        _ => false,
    };
    shown.iter().filter(is_notice).collect()
}

/// The notice belongs to the loop that is being stored, and a cancel is answered as soon after it as before.
// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn prompt_behind_a_hanging_commit_says_so_once() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, mut seen) = world.session(ROOM).await;
    store.commit_takes.store(HANGS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    store.commit_takes.store(0, Ordering::SeqCst);
    let told = drain(&mut seen);
    assert!(storing_notices(&live(&told)).is_empty());

    let cancel = CancellationToken::new();
    let second = start(&session, "second", cancel.clone());
    sleep(Duration::from_millis(900)).await;
    assert!(drain(&mut seen).is_empty());
    sleep(Duration::from_millis(200)).await;
    let shown = live(&drain(&mut seen));
    assert_eq!(
        (shown.len(), storing_notices(&shown).len()),
        (1, 1),
        "{shown:?}"
    );
    assert_eq!(shown[0].loop_id, first.loops[0].loop_id);
    cancelled(second, &cancel).await;
    assert!(drain(&mut seen).is_empty());

    say(&session, "third").result().await.unwrap();
    assert_eq!(storing_notices(&live(&drain(&mut seen))).len(), 1);
    assert_eq!(world.puppet.request(1), ["first", "one", "third"]);
    say(&session, "fourth").result().await.unwrap();
    assert!(storing_notices(&live(&drain(&mut seen))).is_empty());
}

#[tokio::test(start_paused = true)]
async fn short_wait_for_an_earlier_prompt_is_not_told() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, mut seen) = world.session(ROOM).await;
    store.commit_takes.store(1, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(!first.is_stored);
    store.commit_takes.store(0, Ordering::SeqCst);
    store.writes_take.store(5, Ordering::SeqCst);
    say(&session, "second").result().await.unwrap();
    assert!(storing_notices(&live(&drain(&mut seen))).is_empty());
}

/// The outcome was sealed before: it stands (CANCEL-11).
// proves: CANCEL-11
#[tokio::test(start_paused = true)]
async fn late_cancel_of_a_hanging_commit_keeps_the_outcome() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &[&[Act::Say("one")], &[Act::Say("two")]]);
    let (session, _seen) = world.session(ROOM).await;
    store.commit_takes.store(HANGS, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(matches!(first.outcome, Outcome::Finished(_)) && !first.is_stored);
}

// proves: S5
#[tokio::test(start_paused = true)]
async fn cancelled_prompt_that_is_never_stored_comes_back() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, _seen) = world.session(ROOM).await;
    store.commit.store(FOR_GOOD, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(!first.is_stored);
    sleep(Duration::from_secs(60)).await;
    // All the attempts that any prompt has.
    assert_eq!(store.failed.load(Ordering::SeqCst), 6);
    store.commit.store(0, Ordering::SeqCst);
    say(&session, "second").result().await.unwrap();
    let request = world.puppet.request(1);
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
    let world = World::over(store.clone(), &TWO);
    let (session, _seen) = world.session(ROOM).await;
    store.journal_takes.store(11, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    let first = cancelled(ticket, &cancel).await;
    assert!(stopped(&first) && !first.is_stored);
    assert_eq!(first.loops.len(), 1);
    store.journal_takes.store(0, Ordering::SeqCst);
    say(&session, "second").result().await.unwrap();
    assert_eq!(stored(&world, &session).await, 2);
}

// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_claim() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &[&[Act::Say("two")]]);
    let (session, _seen) = world.session(ROOM).await;
    store.writes_take.store(11, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let first = cancelled(start(&session, "first", cancel.clone()), &cancel).await;
    assert!(stopped(&first) && !first.is_stored && first.loops.is_empty());
    store.writes_take.store(0, Ordering::SeqCst);
    say(&session, "second").result().await.unwrap();
    assert_eq!(world.puppet.request(0), ["second"]);
}

// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancel_does_not_wait_for_a_hanging_setting() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &TWO);
    let (session, _seen) = world.session(ROOM).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    sleep(Duration::from_secs(1)).await;
    store.writes_take.store(11, Ordering::SeqCst);
    let (first, set) = tokio::join!(cancelled(ticket, &cancel), session.set_mode(Mode::Plan));
    assert!(stopped(&first) && first.is_stored);
    assert_eq!((set, session.options().mode), (Ok(()), Mode::Plan));
}

/// Nor does an evaluation, neither for the journals of its candidates nor for its commit.
// proves: CANCEL-2
#[tokio::test(start_paused = true)]
async fn cancelled_evaluation_does_not_wait_for_its_commit() {
    for journal_takes in [0, 11] {
        let store = FailingStore::new();
        let world = World::among(store.clone(), &three());
        let (session, _seen) = world.session(ROOM).await;
        store.commit_takes.store(HANGS, Ordering::SeqCst);
        store.journal_takes.store(journal_takes, Ordering::SeqCst);
        let options = PromptOptions::cancelled_by(CancellationToken::new());
        let (input, cancel) = (vec![Content::text("which?")], options.cancel.clone());
        let ticket = session.evaluate(input, tried(&["a", "b"]), Pick::First, options);
        let first = cancelled(ticket.unwrap(), &cancel).await;
        assert!(!first.is_stored);
        assert_eq!((first.loops.len(), stored(&world, &session).await), (2, 0));
        store.commit_takes.store(0, Ordering::SeqCst);
        store.journal_takes.store(0, Ordering::SeqCst);
        say(&session, "second").result().await.unwrap();
        assert_eq!(stored(&world, &session).await, 3);
        let request = world.puppet.request(0);
        assert_eq!((&*request[0], &*request[2]), ("which?", "second"));
    }
}
