//! Tests of prompts that wait in the store: run once, in order, by a host that runs queued prompts.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, finished, run_text, start_text, wait_for_event,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::sleep};
use turnery_agent::{PromptError, PromptOptions, QueuedReceipt, Session};
use turnery_engine::{Content, EventKind, SessionId};
use turnery_store::{MemoryStore, PromptRemoval, QueuedPrompt, Store};

/// Longer than any search for queued prompts takes.
const LONG: Duration = Duration::from_secs(10);

/// Returns two hosts with one store; the first one runs queued prompts.
fn hosts(script: &[&[ModelAct]]) -> (EmbeddingFixture, EmbeddingFixture) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let host = EmbeddingFixture::build(
        Arc::clone(&store),
        script,
        &[],
        |settings| settings.runs_queued_prompts = true,
        |tools| tools,
    );
    let mut other = EmbeddingFixture::with_store(store, &[]);
    other.folder = tempfile::tempdir_in(host.folder.path()).unwrap();
    (host, other)
}

/// Opens a session in the other host.
async fn open_in(other: &EmbeddingFixture, host: &EmbeddingFixture, id: &SessionId) -> Session {
    let ports = turnery_agent::ClientPorts::silent();
    let opened = other.agent.open(id, host.request(), false, |_| ports);
    opened.await.unwrap()
}

async fn queue(session: &Session, text: &str) -> QueuedReceipt {
    let queued = session.queue_prompt(vec![Content::text(text)]);
    queued.await.unwrap()
}

/// Returns the ids of the prompts of all loops.
async fn prompt_ids(world: &EmbeddingFixture, id: &SessionId) -> Vec<String> {
    let loops = world.loops(id).await;
    let ids = loops.iter().filter_map(|record| record.prompt_id.as_ref());
    ids.map(ToString::to_string).collect()
}

async fn waiting(world: &EmbeddingFixture, id: &SessionId) -> Vec<QueuedPrompt> {
    world.store.queued_prompts(id).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn holder_runs_queued_prompts_after_its_own_in_order() {
    let signal = Arc::new(Notify::new());
    let (host, other) = hosts(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Say("one")],
        &[ModelAct::Say("two")],
        &[ModelAct::Say("three")],
        &[ModelAct::Say("four")],
    ]);
    let (session, mut seen) = host.session(LARGE_CAPACITY).await;
    let running = start_text(&session, "first");
    seen.recv().await.unwrap();
    let elsewhere = open_in(&other, &host, session.id()).await;
    let refused = start_text(&elsewhere, "refused").result().await;
    let Err(PromptError::Busy { holder }) = refused else {
        panic!("{refused:?}");
    };
    let second = queue(&elsewhere, "second").await;
    let third = queue(&elsewhere, "third").await;
    assert_eq!(second.holder.as_ref(), Some(&holder));
    signal.notify_one();
    let first = running.result().await.unwrap();
    assert_eq!(first.outcome, finished("one"));
    sleep(LONG).await;
    let expected = [second, third].map(|it| it.prompt.id.to_string());
    assert_eq!(prompt_ids(&host, session.id()).await[1..], expected);
    assert_eq!(waiting(&host, session.id()).await, []);
    assert!(!session.is_busy());
    run_text(&session, "fourth").await;
    assert_eq!(
        host.model.request(3),
        ["first", "one", "second", "two", "third", "three", "fourth"]
    );
}

#[tokio::test(start_paused = true)]
async fn idle_session_runs_a_queued_prompt_at_once() {
    let (host, _other) = hosts(&[&[ModelAct::Say("one")]]);
    let (session, mut seen) = host.session(LARGE_CAPACITY).await;
    let queued = queue(&session, "first").await;
    assert_eq!(queued.holder, None);
    wait_for_event(&mut seen, |kind| matches!(kind, EventKind::LoopEnd { .. })).await;
    assert_eq!(
        prompt_ids(&host, session.id()).await,
        [queued.prompt.id.to_string()]
    );
}

#[tokio::test(start_paused = true)]
async fn message_too_late_for_a_queued_prompt_is_run_after_it() {
    let signal = Arc::new(Notify::new());
    let (host, _other) = hosts(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Fail],
        &[ModelAct::Say("late")],
    ]);
    let (session, _seen) = host.session(LARGE_CAPACITY).await;
    queue(&session, "first").await;
    sleep(LONG).await;
    session.steer(vec![Content::text("too late")]).unwrap();
    signal.notify_one();
    sleep(LONG).await;
    assert_eq!(host.model.request(1), ["first", "", "too late"]);
    assert_eq!(waiting(&host, session.id()).await, []);
}

#[tokio::test(start_paused = true)]
async fn opened_session_runs_a_prompt_that_waits() {
    let (host, other) = hosts(&[&[ModelAct::Say("one")], &[ModelAct::Say("two")]]);
    let (session, _seen) = host.session(LARGE_CAPACITY).await;
    run_text(&session, "first").await;
    session.close().await;
    let elsewhere = open_in(&other, &host, session.id()).await;
    let queued = queue(&elsewhere, "second").await;
    sleep(LONG).await;
    // The other host runs none.
    assert_eq!(
        waiting(&host, session.id()).await,
        std::slice::from_ref(&queued.prompt)
    );
    let (_again, mut seen) = host.open(session.id(), false).await;
    wait_for_event(&mut seen, |kind| matches!(kind, EventKind::LoopEnd { .. })).await;
    let ids = prompt_ids(&host, session.id()).await;
    assert_eq!(ids[1..], [queued.prompt.id.to_string()]);
    assert_eq!(host.model.request(1), ["first", "one", "second"]);
}

/// The host that ran it before may have died.
#[tokio::test(start_paused = true)]
async fn session_in_use_is_tried_again() {
    let (host, other) = hosts(&[&[ModelAct::Say("one")]]);
    let signal = Arc::new(Notify::new());
    other
        .model
        .answer_next(&[ModelAct::Wait(signal.clone()), ModelAct::Say("elsewhere")]);
    let (session, _seen) = host.session(LARGE_CAPACITY).await;
    let elsewhere = open_in(&other, &host, session.id()).await;
    let running = start_text(&elsewhere, "first");
    sleep(LONG).await;
    let queued = queue(&session, "second").await;
    assert!(queued.holder.is_some());
    sleep(LONG).await;
    assert_eq!(
        waiting(&host, session.id()).await,
        std::slice::from_ref(&queued.prompt)
    );
    signal.notify_one();
    running.result().await.unwrap();
    sleep(LONG).await;
    let ids = prompt_ids(&host, session.id()).await;
    assert_eq!(ids[1..], [queued.prompt.id.to_string()]);
    assert_eq!(waiting(&host, session.id()).await, []);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn withdrawn_prompt_never_runs() {
    let signal = Arc::new(Notify::new());
    let (host, _other) = hosts(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Say("one")],
        &[ModelAct::Say("two")],
    ]);
    let (session, mut seen) = host.session(LARGE_CAPACITY).await;
    let running = start_text(&session, "first");
    seen.recv().await.unwrap();
    let QueuedReceipt { prompt, .. } = queue(&session, "second").await;
    let (store, id) = (&host.store, session.id());
    let withdrawn = store.remove_queued_prompt(id, &prompt.id, PromptRemoval::Withdrawn);
    assert_eq!(withdrawn.await, Ok(true));
    signal.notify_one();
    running.result().await.unwrap();
    // Somebody had read it before.
    let options = PromptOptions {
        queued: Some(Arc::new(prompt.clone())),
        ..PromptOptions::default()
    };
    let late = session.prompt(prompt.content, options).unwrap();
    let late = late.result().await;
    assert_eq!(late.err(), Some(PromptError::AlreadyRun));
    sleep(LONG).await;
    assert_eq!(host.loops(id).await.len(), 1);
}

/// It died before it removed the prompt.
#[tokio::test(start_paused = true)]
pub(crate) async fn prompt_run_by_a_dead_host_is_not_run_again() {
    let (host, other) = hosts(&[&[ModelAct::Say("one")], &[ModelAct::Say("two")]]);
    let (session, _seen) = host.session(LARGE_CAPACITY).await;
    let QueuedReceipt { prompt, .. } = queue(&session, "first").await;
    sleep(LONG).await;
    assert_eq!(host.loops(session.id()).await.len(), 1);
    let queued = host.store.queue_prompt(session.id(), prompt.clone());
    queued.await.unwrap();
    let elsewhere = open_in(&other, &host, session.id()).await;
    let options = PromptOptions {
        queued: Some(Arc::new(prompt.clone())),
        ..PromptOptions::default()
    };
    let again = elsewhere.prompt(prompt.content, options).unwrap();
    let again = again.result().await;
    assert_eq!(again.err(), Some(PromptError::AlreadyRun));
    assert_eq!(waiting(&host, session.id()).await, []);
    run_text(&session, "second").await;
    assert_eq!(host.model.request(1), ["first", "one", "second"]);
}
