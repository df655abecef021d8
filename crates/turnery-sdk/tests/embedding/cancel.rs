//! Tests of cancelling by token and by handle: the prompt ends as cancelled, is stored, and the session
//! continues.

use crate::{
    fixture::{World, describe_all, run_hello},
    toy::ToyStep,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;
use turnery_engine::{LoopStatus, Outcome, OutcomeCategory, RetryHint, TurnStop};
use turnery_sdk::{CancellationToken, PromptOutput, SessionExt as _};

const CANCELLED: Outcome = Outcome::Stopped(TurnStop::Cancelled);

fn is_cancelled(output: &PromptOutput) -> bool {
    output.result.outcome == CANCELLED
}

// proves: LASH-87, LASH-88, LASH-89, LASH-90, LASH-91, LASH-92, LASH-96, LASH-97, C-3, LOOP-52, LOOP-54
#[tokio::test(start_paused = true)]
async fn token_cancels_prompt_while_stream_is_read() {
    let world = World::new(vec![
        vec![ToyStep::Say("so far"), ToyStep::Hang],
        vec![ToyStep::Say("next")],
    ]);
    let session = world.session().await;
    let token = CancellationToken::new();
    let prompt = session.new_prompt("hello").cancel(token.clone());
    let mut stream = prompt.stream().unwrap();
    let seen = Arc::new(Notify::new());
    let stop = {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            seen.notified().await;
            token.cancel();
        })
    };
    let mut shown = Vec::new();
    while let Some(activity) = stream.next().await {
        shown.push(activity);
        seen.notify_one();
    }
    stop.await.unwrap();
    // The model's stream was dropped without waiting, since it never ends.
    assert_eq!(*world.toy.alive.lock().unwrap(), 0);
    assert_eq!(describe_all(&shown), ["say so far", "usage"]);
    let output = stream.finish().await.unwrap();
    assert!(is_cancelled(&output));
    assert_eq!(output.result.outcome.category(), OutcomeCategory::Stopped);
    assert_eq!(output.result.outcome.hint(), Some(RetryHint::NextRequest));
    let records = world.records(&session).await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].status, LoopStatus::Completed);
    assert_eq!(records[0].outcome, Some(CANCELLED));
    assert!(records[0].on_chain);
    assert!(!is_cancelled(&run_hello(&session).await));
}

// proves: LASH-91, LASH-94
#[tokio::test(start_paused = true)]
async fn token_cancels_only_its_own_waiting_prompt() {
    let go_on = Arc::new(Notify::new());
    let world = World::new(vec![
        vec![ToyStep::Wait(Arc::clone(&go_on)), ToyStep::Say("one")],
        vec![ToyStep::Say("three")],
    ]);
    let session = world.session().await;
    let token = CancellationToken::new();
    let prompt = |text| session.new_prompt(text);
    let one = prompt("1").stream().unwrap();
    let two = prompt("2").cancel(token.clone()).stream().unwrap();
    let three = prompt("3").stream().unwrap();
    token.cancel();
    go_on.notify_one();
    assert!(!is_cancelled(&one.finish().await.unwrap()));
    assert!(is_cancelled(&two.finish().await.unwrap()));
    let three = three.finish().await.unwrap();
    assert_eq!(describe_all(&three.activities), ["say three", "usage"]);
    assert_eq!(session.cancel_prompts(), 0);
}

// proves: LASH-89, LASH-93, LASH-94
#[tokio::test(start_paused = true)]
async fn handle_cancels_prompts_of_all_clones() {
    let world = World::new(vec![vec![ToyStep::Hang], vec![ToyStep::Say("fine")]]);
    let session = world.session().await;
    let clone = session.clone();
    let one = session.new_prompt("1").stream().unwrap();
    let two = clone.new_prompt("2").stream().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(clone.cancel_prompts(), 2);
    assert!(is_cancelled(&one.finish().await.unwrap()));
    assert!(is_cancelled(&two.finish().await.unwrap()));
    assert!(!is_cancelled(&run_hello(&session).await));
}

// proves: LASH-95
#[tokio::test(start_paused = true)]
async fn cancel_spares_separately_opened_handle() {
    let go_on = Arc::new(Notify::new());
    let world = World::new(vec![vec![
        ToyStep::Wait(Arc::clone(&go_on)),
        ToyStep::Say("fine"),
    ]]);
    let session = world.session().await;
    let other = world.reopen(&session).await;
    let running = session.new_prompt("hello").stream().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(other.cancel_prompts(), 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    go_on.notify_one();
    assert!(!is_cancelled(&running.finish().await.unwrap()));
}

// proves: LASH-87, LASH-88, LASH-89
#[tokio::test(start_paused = true)]
async fn cancelled_tool_stops_and_completes_its_row() {
    let world = World::new(vec![
        vec![ToyStep::Call("c", "hang"), ToyStep::Call("d", "look")],
        vec![ToyStep::Say("next")],
    ]);
    let session = world.session().await;
    let mut stream = session.new_prompt("hello").stream().unwrap();
    let mut shown = Vec::new();
    while let Some(activity) = stream.next().await {
        shown.push(activity);
        if describe_all(&shown)
            .last()
            .is_some_and(|it| it == "start hang")
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(session.cancel_prompts(), 1);
        }
    }
    let starts = describe_all(&shown)
        .iter()
        .filter(|word| word.starts_with("start"))
        .count();
    let ends = describe_all(&shown)
        .iter()
        .filter(|word| word.starts_with("end"))
        .count();
    assert_eq!((starts, ends), (2, 2));
    assert!(is_cancelled(&stream.finish().await.unwrap()));
    assert_eq!(*world.ran.lock().unwrap(), ["hang"]);
    // The next request of the model holds a result for each call.
    run_hello(&session).await;
    let requests = world.toy.requests.lock().unwrap();
    let roles: Vec<_> = requests[1]
        .messages
        .iter()
        .map(|message| match &message.message {
            turnery_engine::Message::System { .. } => "system",
            turnery_engine::Message::User { .. } => "user",
            turnery_engine::Message::Assistant { .. } => "assistant",
            turnery_engine::Message::ToolResult { .. } => "result",
        })
        .collect();
    assert_eq!(roles, ["user", "assistant", "result", "result", "user"]);
}
