//! Tests that the oracle fails any test whose event stream or record breaks the grammar.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, drain, live_events, run_text,
};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use turnery_agent::{Outbox, OutboxItem};
use turnery_engine::{Event, EventKind, LoopRecord};
use turnery_store::{Commit, Owner};

/// Returns a correct world and the events of its only loop.
async fn finished_run() -> (EmbeddingFixture, Vec<Event>) {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("done")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    let events = live_events(&drain(&mut seen));
    (world, events)
}

/// Returns the failure reported when a world ends.
fn oracle_failure(world: EmbeddingFixture) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(world)));
    ended
        .err()
        .map(|failure| *failure.downcast::<String>().unwrap())
}

async fn show_event(outbox: &mut dyn Outbox, event: &Event) {
    poll_fn(|cx| outbox.poll_ready(cx)).await;
    outbox.push(OutboxItem::Live(event));
}

#[tokio::test(start_paused = true)]
async fn oracle_rejects_broken_event_stream() {
    let (world, _) = finished_run().await;
    assert_eq!(oracle_failure(world), None);

    let (_told, events) = finished_run().await;
    let (world, _) = finished_run().await;
    let (mut outbox, seen): (_, tokio::sync::mpsc::Receiver<ShownItem>) =
        world.outbox(LARGE_CAPACITY);
    // A result that nobody tells the model.
    let last = events
        .iter()
        .rposition(|event| matches!(&event.kind, EventKind::ToolExecutionEnd { .. }));
    let mut broken = events;
    broken.truncate(last.unwrap());
    let after = Event {
        kind: EventKind::TurnEnd {
            usage: None,
            tool_results: Vec::new(),
        },
        ..broken.last().unwrap().clone()
    };
    broken.push(Event {
        seq: after.seq + 1,
        ..after
    });
    for event in &broken {
        show_event(&mut *outbox, event).await;
    }
    drop(seen);
    let failure = oracle_failure(world).unwrap();
    assert!(failure.contains("R2: not all done at the end"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn oracle_rejects_broken_record() {
    let (world, events) = finished_run().await;
    let id = events[0].session_id.clone();
    let loops = world.loops(&id).await;
    let mut broken = LoopRecord::clone(&loops[0]);
    broken.loop_id = format!("{}-again", broken.loop_id).into();
    broken.events.pop();
    broken.events.remove(1);
    let claimed = world.store.claim(&id, &Owner::for_this_process()).await;
    let claimed = claimed.unwrap();
    let commit = Commit {
        lane: claimed.lane,
        expected_head: claimed.info.head_version,
        records: vec![Arc::new(broken)],
        tip: 0,
        title: None,
        release: true,
        effects: Vec::new(),
    };
    world.store.commit(commit).await.unwrap();
    let failure = oracle_failure(world).unwrap();
    assert!(failure.contains("stored of"), "{failure}");
}
