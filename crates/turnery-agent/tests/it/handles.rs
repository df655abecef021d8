//! Handles: whom a cancel reaches (LASH-91 to LASH-96).

use crate::world::{Act, ROOM, World, live, say, start};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::CancellationToken;
use turnery_engine::{EventKind, Outcome, TurnStop};

const CANCELLED: Outcome = Outcome::Stopped(TurnStop::Cancelled);

// proves: LASH-93, LASH-94
#[tokio::test(start_paused = true)]
async fn a_clone_cancels_what_another_began_and_says_how_many() {
    let world = World::new(&[&[Act::Hang]]);
    let (session, mut seen) = world.session(ROOM).await;
    let tickets = ["one", "two", "three"].map(|text| say(&session, text));
    seen.recv().await.unwrap();
    assert_eq!(session.clone().cancel_running_turns(), 3);
    for ticket in tickets {
        assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    }
    assert_eq!(session.cancel_running_turns(), 0);
}

// proves: LASH-95, C-32
#[tokio::test(start_paused = true)]
async fn a_handle_opened_apart_reaches_nothing() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[&[Act::Wait(signal.clone()), Act::Say("done")]]);
    let (one, mut seen) = world.session(ROOM).await;
    let (two, _seen) = world.open(one.id(), false).await;
    let ticket = say(&one, "go");
    seen.recv().await.unwrap();
    assert_eq!(two.cancel_running_turns(), 0);
    signal.notify_one();
    assert_ne!(ticket.result().await.unwrap().outcome, CANCELLED);
}

// proves: LASH-15, LASH-91, LASH-96
#[tokio::test(start_paused = true)]
async fn a_token_is_fired_from_elsewhere_while_somebody_reads() {
    let many: Vec<Act> = (0..10_000).map(|_| Act::Say("x")).collect();
    let world = World::new(&[&many, &[Act::Say("next")]]);
    let (session, mut seen) = world.session(8).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "talk", cancel.clone());
    let enough = Arc::new(Notify::new());
    let elsewhere = tokio::spawn({
        let enough = enough.clone();
        async move {
            enough.notified().await;
            cancel.cancel();
        }
    });
    let mut fragments = 0;
    loop {
        let shown = live(&[seen.recv().await.unwrap()]);
        let kind = shown.first().map(|event| &event.kind);
        if matches!(kind, Some(EventKind::LoopEnd { .. })) {
            break;
        }
        fragments += usize::from(matches!(kind, Some(EventKind::Delta { .. })));
        if fragments == 100 {
            enough.notify_one();
        }
    }
    elsewhere.await.unwrap();
    assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    assert!((100..10_000).contains(&fragments), "{fragments}");
    // Only that prompt: the token of the next one is its own.
    let next = say(&session, "go on");
    tokio::spawn(async move { while seen.recv().await.is_some() {} });
    assert_ne!(next.result().await.unwrap().outcome, CANCELLED);
}
