//! Tests that a session held by another owner or changed by another writer is an error, never an outcome, and that
//! nothing is left behind.

use crate::{
    blocking_store::ClockHoldingStore,
    fixture::{World, run_hello},
    toy::ToyStep,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::Notify;
use turnery_engine::CommitError;
use turnery_sdk::{MAX_QUEUED_PROMPTS, PromptError, RunError, SessionExt as _, StartError};
use turnery_store::MemoryStore;

// proves: LASH-33, LASH-35
#[tokio::test(start_paused = true)]
async fn busy_session_is_an_error_for_every_entry_point() {
    let go_on = Arc::new(Notify::new());
    let world = World::new(vec![
        vec![ToyStep::Wait(Arc::clone(&go_on)), ToyStep::Say("fine")],
        vec![ToyStep::Say("mine")],
    ]);
    let session = world.session().await;
    let other = world.reopen(&session).await;
    let running = session.new_prompt("hello").stream().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let is_busy = |error: RunError| matches!(error, RunError::Prompt(PromptError::Busy { .. }));
    let refused = other.new_prompt("hello").run().await;
    assert!(is_busy(refused.unwrap_err()));
    let mut stream = other.new_prompt("hello").stream().unwrap();
    assert_eq!(stream.next().await, None);
    assert!(is_busy(stream.finish().await.unwrap_err()));
    assert!(world.records(&session).await.is_empty());
    go_on.notify_one();
    running.finish().await.unwrap();
    assert_eq!(world.records(&session).await.len(), 1);
    // The session is free now, and this handle has caught up.
    run_hello(&other).await;
    assert_eq!(world.records(&session).await.len(), 2);
}

/// The store refuses the commit of a prompt that began from an older head.
// proves: LASH-34, LASH-35
#[tokio::test(start_paused = true)]
async fn moved_head_is_an_error_for_every_entry_point() {
    let store = Arc::new(ClockHoldingStore::new(MemoryStore::new()));
    let script = ["one", "two", "three"].map(|text| vec![ToyStep::Say(text)]);
    let world = World::over(store.clone(), script.to_vec(), Vec::new());
    let session = world.session().await;
    run_hello(&session).await;
    store.is_head_stale.store(true, Ordering::SeqCst);
    let moved = RunError::Prompt(PromptError::Lost(CommitError::HeadConflict));
    let refused = session.new_prompt("hello").run().await;
    assert_eq!(refused.unwrap_err(), moved);
    let refused = session.new_prompt("hello").stream().unwrap().finish().await;
    assert_eq!(refused.unwrap_err(), moved);
    assert_eq!(world.records(&session).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rejected_prompt_reports_reason() {
    let world = World::new(vec![vec![ToyStep::Hang]]);
    let session = world.session().await;
    let mut waiting = Vec::new();
    for _ in 0..MAX_QUEUED_PROMPTS {
        waiting.push(session.new_prompt("hello").stream().unwrap());
    }
    let refused = session.new_prompt("one more").run().await;
    let full = RunError::Start(StartError::Full(MAX_QUEUED_PROMPTS));
    assert_eq!(refused.unwrap_err(), full);
    session.close().await;
    let refused = session.new_prompt("hello").stream();
    assert_eq!(
        refused.map(drop).unwrap_err(),
        RunError::Start(StartError::Closed)
    );
}
