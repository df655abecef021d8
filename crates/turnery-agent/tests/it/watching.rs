//! The oracle is always on: whatever a test is about, a stream that breaks the grammar fails it in the end.

use crate::world::{Act, ROOM, Seen, World, drain, live, say};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use turnery_agent::{Item, Outbox};
use turnery_engine::{Event, EventKind, LoopRecord};
use turnery_store::{Commit, Owner};

/// A world in which all is well, and the events of its only loop.
async fn told() -> (World, Vec<Event>) {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("done")]]);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "go").result().await.unwrap();
    let events = live(&drain(&mut seen));
    (world, events)
}

/// What the end of a world says.
fn end(world: World) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(world)));
    ended.err().map(|said| *said.downcast::<String>().unwrap())
}

async fn show(tray: &mut dyn Outbox, event: &Event) {
    poll_fn(|cx| tray.poll_room(cx)).await;
    tray.push(Item::Live(event));
}

#[tokio::test(start_paused = true)]
async fn a_test_whose_client_is_shown_a_broken_stream_fails() {
    let (world, _) = told().await;
    assert_eq!(end(world), None);

    let (_told, events) = told().await;
    let (world, _) = told().await;
    let (mut tray, seen): (_, tokio::sync::mpsc::Receiver<Seen>) = world.tray(ROOM);
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
        show(&mut *tray, event).await;
    }
    drop(seen);
    let said = end(world).unwrap();
    assert!(said.contains("R2: not all done at the end"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_test_that_leaves_a_broken_record_behind_fails() {
    let (world, events) = told().await;
    let id = events[0].session_id.clone();
    let loops = world.store.loops(&id, 0).await.unwrap();
    let mut broken = LoopRecord::clone(&loops[0]);
    broken.loop_id = format!("{}-again", broken.loop_id).into();
    broken.events.pop();
    broken.events.remove(1);
    let claimed = world.store.claim(&id, &Owner::this_process()).await;
    let claimed = claimed.unwrap();
    let commit = Commit {
        lane: claimed.lane,
        expected_head: claimed.info.head_version,
        records: vec![Arc::new(broken)],
        tip: 0,
        title: None,
        release: true,
    };
    world.store.commit(commit).await.unwrap();
    let said = end(world).unwrap();
    assert!(said.contains("stored of"), "{said}");
}
