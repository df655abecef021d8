//! Tests of a client that does not read: the model waits, memory stays bounded, and a cancel still works.

use crate::fixture::{EmbeddingFixture, ModelAct, drain, live_events, start_text};
use tokio::time::Duration;
use turnery_engine::{EventKind, Outcome, TurnStop};

/// Maximum number of deltas that a stalled session takes from the model: the model's queue, the queued
/// effects, the client's capacity, and one in each stage.
const MAX_FRAGMENTS_TAKEN: usize = 64 + 8 + SMALL_CAPACITY + 4;

/// Items that the client takes before it has to be read: enough for all that comes before the answer.
const SMALL_CAPACITY: usize = 16;

// proves: LASH-85, D-15, C-10, C-9
#[tokio::test(start_paused = true)]
pub(crate) async fn unread_outbox_applies_backpressure() {
    let many: Vec<ModelAct> = (0..10_000).map(|_| ModelAct::Say("x")).collect();
    let world = EmbeddingFixture::new(&[&many]);
    let (session, mut seen) = world.session(SMALL_CAPACITY).await;
    let ticket = start_text(&session, "talk");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        *world.model.active_calls.lock().unwrap(),
        1,
        "the model has to wait"
    );
    // A cancel drops the model at once, though the client has read nothing.
    session.cancel_prompts();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*world.model.active_calls.lock().unwrap(), 0);
    // And the prompt is stored, for that does not depend on the client (LASH-85).
    assert_eq!(world.head(&session).await, 1);
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
    let events = live_events(&shown);
    let deltas = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Delta { .. }))
        .count();
    assert!(
        deltas <= MAX_FRAGMENTS_TAKEN,
        "{deltas} fragments were taken from the model"
    );
    assert!(matches!(
        events.last().unwrap().kind,
        EventKind::LoopEnd { .. }
    ));
}

// proves: LOOP-79
#[tokio::test(start_paused = true)]
async fn slow_client_loses_nothing() {
    let many: Vec<ModelAct> = (0..500).map(|_| ModelAct::Say("x")).collect();
    let world = EmbeddingFixture::new(&[&many]);
    let (session, mut seen) = world.session(1).await;
    let ticket = start_text(&session, "talk");
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
    let events = live_events(&reader.await.unwrap());
    let deltas = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Delta { .. }))
        .count();
    assert_eq!(deltas, 500);
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
}

/// A cancelled permission request does not stay open until the client reads again.
#[tokio::test(start_paused = true)]
pub(crate) async fn permission_request_is_cancelled_without_reader() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")]]);
    // Nine items lead up to the question: start of loop, turn and prompt, end of prompt, start and
    // end of the answer, usage, call, question.
    let (session, mut seen) = world.session(9).await;
    let ticket = start_text(&session, "ring");
    world.client.was_asked.notified().await;
    session.cancel_prompts();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*world.client.open_questions.lock().unwrap(), 0);
    assert_eq!(drain(&mut seen).len(), 9);
    let reader = tokio::spawn(async move { while seen.recv().await.is_some() {} });
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    drop(session);
    reader.await.unwrap();
}
