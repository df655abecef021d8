//! Tests of cancelling at every stage of a prompt: the outcome is cancelled, nothing is left running, the
//! session continues.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, live_events, run_text, start, start_text,
    wait_for_event,
};
use tokio::time::{Duration, Instant};
use turnery_agent::CancellationToken;
use turnery_engine::{Disposition, EventKind, Outcome, TurnStop};

const CANCELLED: Outcome = Outcome::Stopped(TurnStop::Cancelled);

// proves: LASH-15, LASH-89, LASH-91, LASH-92
#[tokio::test(start_paused = true)]
async fn cancel_at_once_calls_no_model() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("next")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "hi", cancel.clone());
    cancel.cancel();
    assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    assert_eq!(world.model.requests.lock().unwrap().len(), 0);
    assert_ne!(run_text(&session, "go on").await.outcome, CANCELLED);
}

// proves: ACP-51, LASH-89, LASH-90, LASH-93, LASH-94, D-1, C-34, LASH-29
#[tokio::test(start_paused = true)]
async fn cancel_drops_model_and_keeps_shown_text() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("so far"), ModelAct::Hang],
        &[ModelAct::Say("ok")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "hi");
    wait_for_event(&mut seen, |kind| matches!(kind, EventKind::Delta { .. })).await;
    assert_eq!(session.cancel_prompts(), 1);
    assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    assert_eq!(*world.model.active_calls.lock().unwrap(), 0);
    run_text(&session, "go on").await;
    assert_eq!(world.model.request(1), ["hi", "so far", "go on"]);
}

// proves: ACP-51, LASH-93
#[tokio::test(start_paused = true)]
async fn cancel_withdraws_permission_request() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "ring");
    world.client.was_asked.notified().await;
    session.cancel_prompts();
    assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    assert_eq!(*world.client.open_questions.lock().unwrap(), 0);
    assert!(world.ran.lock().unwrap().is_empty());
}

async fn cancel_during_tool(tool: &'static str) -> (Duration, Vec<Disposition>) {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("t", tool), ModelAct::Call("u", "look")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "go");
    wait_for_event(&mut seen, |kind| {
        matches!(kind, EventKind::ToolExecutionStart { .. })
    })
    .await;
    // The tool is at work once the session has nothing else to do.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*world.ran.lock().unwrap(), [tool]);
    let begun = Instant::now();
    session.cancel_prompts();
    assert_eq!(ticket.result().await.unwrap().outcome, CANCELLED);
    let took = begun.elapsed();
    let ends = live_events(&drain(&mut seen))
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolExecutionEnd { disposition, .. } => Some(disposition),
            _ => None,
        })
        .collect();
    (took, ends)
}

// proves: ACP-51, R1, R2
#[tokio::test(start_paused = true)]
async fn cancel_stops_cooperative_tool() {
    let (took, ends) = cancel_during_tool("hang").await;
    assert_eq!(took, Duration::ZERO);
    assert_eq!(ends.len(), 2, "both calls are closed");
    assert_eq!(ends[1], Disposition::Cancelled);
}

// proves: ACP-51, ACP-53, R1, R2
#[tokio::test(start_paused = true)]
async fn cancel_kills_uncooperative_tool_after_grace() {
    let (took, ends) = cancel_during_tool("stubborn").await;
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert_eq!(ends, [Disposition::Cancelled, Disposition::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn close_answers_running_and_waiting_prompts() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let running = start_text(&session, "one");
    let waiting = start_text(&session, "two");
    session.close().await;
    assert_eq!(running.result().await.unwrap().outcome, CANCELLED);
    assert_eq!(waiting.result().await.unwrap().outcome, CANCELLED);
    let refused = session.start(Vec::new(), CancellationToken::new());
    assert_eq!(refused.err(), Some(turnery_agent::StartError::Closed));
}

// proves: LASH-94
#[tokio::test(start_paused = true)]
async fn idle_cancel_spares_the_next_prompt() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("fine")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(session.cancel_prompts(), 0);
    assert_ne!(run_text(&session, "hi").await.outcome, CANCELLED);
}
