//! A client that does not read: the model waits, memory stays bounded, a cancel is heard all the same.

use crate::world::{Act, World, drain, live, say};
use tokio::time::Duration;
use turnery_engine::{EventKind, Outcome, TurnStop};

/// Fragments that a stalled session may have taken from the model at most: the model's queue, the
/// steps that may wait, the room of the client, and one in each hand.
const BOUND: usize = 64 + 8 + ROOM + 4;

/// Items that the client takes before it has to be read: enough for all that comes before the answer.
const ROOM: usize = 16;

// proves: LASH-85, D-15, C-10, C-9
#[tokio::test(start_paused = true)]
pub(crate) async fn a_client_that_does_not_read_holds_the_model_back() {
    let many: Vec<Act> = (0..10_000).map(|_| Act::Say("x")).collect();
    let world = World::new(&[&many]);
    let (session, mut seen) = world.session(ROOM).await;
    let ticket = say(&session, "talk");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        *world.puppet.alive.lock().unwrap(),
        1,
        "the model has to wait"
    );
    // Cancelled while stuck: the model is let go at once, though nothing has been read.
    session.cancel_running_turns();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*world.puppet.alive.lock().unwrap(), 0);
    // And the prompt is stored, for that does not depend on the client (LASH-85).
    assert_eq!(
        world.store.info(session.id()).await.unwrap().head_version,
        1
    );
    let mut shown = Vec::new();
    let result = ticket.result();
    tokio::pin!(result);
    let result = loop {
        tokio::select! {
            result = &mut result => break result.unwrap(),
            Some(item) = seen.recv() => shown.push(item),
        }
    };
    shown.extend(drain(&mut seen));
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    let events = live(&shown);
    let deltas = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Delta { .. }))
        .count();
    assert!(
        deltas <= BOUND,
        "{deltas} fragments were taken from the model"
    );
    assert!(matches!(
        events.last().unwrap().kind,
        EventKind::LoopEnd { .. }
    ));
}

// proves: LOOP-79
#[tokio::test(start_paused = true)]
async fn a_slow_client_loses_nothing() {
    let many: Vec<Act> = (0..500).map(|_| Act::Say("x")).collect();
    let world = World::new(&[&many]);
    let (session, mut seen) = world.session(1).await;
    let ticket = say(&session, "talk");
    let reader = tokio::spawn(async move {
        let mut shown = Vec::new();
        while let Some(item) = seen.recv().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
            shown.push(item);
        }
        shown
    });
    ticket.result().await.unwrap();
    drop(session);
    let events = live(&reader.await.unwrap());
    let deltas = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Delta { .. }))
        .count();
    assert_eq!(deltas, 500);
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
}

/// A question that nobody needs answered any more does not stay open until the client reads again.
#[tokio::test(start_paused = true)]
pub(crate) async fn a_question_is_taken_back_though_nobody_reads() {
    let world = World::new(&[&[Act::Call("r", "ring")]]);
    // Nine items lead up to the question: start of loop, turn and prompt, end of prompt, start and
    // end of the answer, usage, call, question.
    let (session, mut seen) = world.session(9).await;
    let ticket = say(&session, "ring");
    world.person.called.notified().await;
    session.cancel_running_turns();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*world.person.open.lock().unwrap(), 0);
    assert_eq!(drain(&mut seen).len(), 9);
    let reader = tokio::spawn(async move { while seen.recv().await.is_some() {} });
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    drop(session);
    reader.await.unwrap();
}
