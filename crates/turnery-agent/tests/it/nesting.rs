//! Nesting: what is shown and answered comes after what is stored, a child's before its parent's.

use crate::{
    delegating::children,
    failing_store::{FOR_GOOD, FailingStore},
    world::{Act, ROOM, Seen, World, say},
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::mpsc;
use turnery_agent::{PromptError, SubAgents};
use turnery_engine::{CommitFault, Event, EventKind, SessionId};

/// A store that takes its time to commit: whatever did not wait for it would be seen.
fn slow(script: &[&[Act]]) -> (Arc<FailingStore>, World) {
    let store = FailingStore::new();
    store.commit_takes.store(5, Ordering::SeqCst);
    let and_sub_agents = |tools: turnery_tools::Toolbox| tools.and(SubAgents::new());
    let world = World::made(store.clone(), script, &[], |_| {}, and_sub_agents);
    (store, world)
}

/// The next event, but for those that tell of nothing that is over.
async fn end(seen: &mut mpsc::Receiver<Seen>) -> Event {
    loop {
        if let Some(Seen::Live(event)) = seen.recv().await
            && let EventKind::ToolExecutionEnd { .. } | EventKind::LoopEnd { .. } = event.kind
        {
            return event;
        }
    }
}

/// How many loops are stored: of all children, and of the session.
async fn stored(world: &World, session: &SessionId) -> (usize, usize) {
    let children = children(world).await;
    let own = world.store.loops(session, 0).await.unwrap();
    (
        children.iter().map(|(_, loops)| loops.len()).sum(),
        own.len(),
    )
}

// proves: S7, R4
#[tokio::test(start_paused = true)]
async fn a_child_is_stored_before_its_call_ends_and_a_loop_before_its_end_is_told() {
    let (_, world) = slow(&[
        &[Act::Delegate("t", false)],
        &[Act::Say("gold")],
        &[Act::Say("thanks")],
    ]);
    let (session, mut seen) = world.session(ROOM).await;
    let ticket = say(&session, "find something");
    let call = end(&mut seen).await;
    let EventKind::ToolExecutionEnd { child_loop_id, .. } = call.kind else {
        panic!("{call:?}");
    };
    assert_eq!(stored(&world, session.id()).await, (1, 0));
    let [(child, loops)] = &children(&world).await[..] else {
        panic!("one child");
    };
    assert_eq!(child_loop_id.as_ref(), Some(&loops[0].loop_id));
    let over = end(&mut seen).await;
    assert_eq!(over.session_id, *session.id());
    assert_eq!(stored(&world, session.id()).await, (1, 1));
    let result = ticket.result().await.unwrap();
    assert_eq!(
        result.loops,
        world.store.loops(session.id(), 0).await.unwrap()
    );
    let links: Vec<_> = result.loops[0].child_loop_refs.iter().collect();
    assert_eq!((links.len(), &links[0].child_session_id), (1, child));
}

/// A child whose parent was lost stays, and says which call made it.
// proves: S7
#[tokio::test(start_paused = true)]
async fn a_child_of_a_loop_that_was_not_stored_is_found_by_its_call() {
    let (store, world) = slow(&[
        &[Act::Delegate("t", false)],
        &[Act::Say("gold")],
        &[Act::Pause(Duration::from_secs(1)), Act::Say("thanks")],
    ]);
    let (session, mut seen) = world.session(ROOM).await;
    let ticket = say(&session, "find something");
    let call = end(&mut seen).await;
    store.commit.store(FOR_GOOD, Ordering::SeqCst);
    let lost = ticket.result().await;
    let full = CommitFault::Store("the disk is full".to_owned());
    assert_eq!(lost, Err(PromptError::Lost(full)));
    assert_eq!(stored(&world, session.id()).await, (1, 0));
    let [(child, _)] = &children(&world).await[..] else {
        panic!("one child");
    };
    let spawned_by = world.store.info(child).await.unwrap().spawned_by.unwrap();
    assert_eq!(spawned_by.session_id, *session.id());
    assert_eq!(spawned_by.loop_id, call.loop_id);
    assert_eq!(spawned_by.call_id.as_str(), "t");
}
