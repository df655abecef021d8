//! Tests that results are shown after they are stored, a child's before its parent's.

use crate::{
    failing_store::{ALWAYS, FailingStore},
    fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, start_text, wait_for_event},
    sub_agents::children,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::mpsc;
use turnery_agent::{PromptError, SubAgentTool};
use turnery_engine::{CommitError, Event, EventKind, SessionId};

/// World with a slow store, which exposes anything that does not wait for a commit.
fn slow_store_fixture(script: &[&[ModelAct]]) -> (Arc<FailingStore>, EmbeddingFixture) {
    let store = FailingStore::new();
    store.commit_delay.store(5, Ordering::SeqCst);
    let and_sub_agents = |tools: turnery_tools::Toolbox| tools.with_tool(SubAgentTool);
    let world = EmbeddingFixture::build(store.clone(), script, &[], |_| {}, and_sub_agents);
    (store, world)
}

/// Returns the next event that ends something.
async fn next_end_event(seen: &mut mpsc::Receiver<ShownItem>) -> Event {
    wait_for_event(seen, |kind| {
        matches!(
            kind,
            EventKind::ToolExecutionEnd { .. } | EventKind::LoopEnd { .. }
        )
    })
    .await
}

/// Returns the number of stored loops: of all children, and of the session.
async fn stored_loop_counts(world: &EmbeddingFixture, session: &SessionId) -> (usize, usize) {
    let children = children(world).await;
    let own = world.store.loops(session, 0).await.unwrap();
    (
        children.iter().map(|(_, loops)| loops.len()).sum(),
        own.len(),
    )
}

// proves: S7, R4
#[tokio::test(start_paused = true)]
async fn commit_precedes_call_end_and_loop_end() {
    let (_, world) = slow_store_fixture(&[
        &[ModelAct::Delegate("t", false)],
        &[ModelAct::Say("gold")],
        &[ModelAct::Say("thanks")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "find something");
    let call = next_end_event(&mut seen).await;
    let EventKind::ToolExecutionEnd { child_loop_id, .. } = call.kind else {
        panic!("{call:?}");
    };
    assert_eq!(stored_loop_counts(&world, session.id()).await, (1, 0));
    let [(child, loops)] = &children(&world).await[..] else {
        panic!("one child");
    };
    assert_eq!(child_loop_id.as_ref(), Some(&loops[0].loop_id));
    let over = next_end_event(&mut seen).await;
    assert_eq!(over.session_id, *session.id());
    assert_eq!(stored_loop_counts(&world, session.id()).await, (1, 1));
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops, world.loops(session.id()).await);
    let links: Vec<_> = result.loops[0].child_loop_refs.iter().collect();
    assert_eq!((links.len(), &links[0].child_session_id), (1, child));
}

/// A child whose parent's loop was lost is kept and names the call that started it.
// proves: S7
#[tokio::test(start_paused = true)]
async fn child_of_unstored_loop_names_its_call() {
    let (store, world) = slow_store_fixture(&[
        &[ModelAct::Delegate("t", false)],
        &[ModelAct::Say("gold")],
        &[
            ModelAct::Pause(Duration::from_secs(1)),
            ModelAct::Say("thanks"),
        ],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "find something");
    let call = next_end_event(&mut seen).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    let lost = ticket.result().await;
    let full = CommitError::Store("the disk is full".to_owned());
    assert_eq!(lost, Err(PromptError::Lost(full)));
    assert_eq!(stored_loop_counts(&world, session.id()).await, (1, 0));
    let [(child, _)] = &children(&world).await[..] else {
        panic!("one child");
    };
    let spawned_by = world.store.info(child).await.unwrap().spawned_by.unwrap();
    assert_eq!(spawned_by.session_id, *session.id());
    assert_eq!(spawned_by.loop_id, call.loop_id);
    assert_eq!(spawned_by.call_id.as_str(), "t");
}
