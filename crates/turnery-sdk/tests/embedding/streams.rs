//! Tests of the three ways to follow a prompt: running it, passing a sink, and reading its stream.

use crate::{
    fixture::{RecordingSink, World, describe_all, finished, run_hello},
    toy::{ToyStep, usage_of},
};
use futures_util::StreamExt;
use std::{sync::Arc, time::Duration};
use turnery_models::ModelName;
use turnery_sdk::{ActivityStream, PromptError, RunError, SelectionStrategy, SessionExt as _};
use turnery_store::MemoryStore;

fn script() -> Vec<Vec<ToyStep>> {
    vec![
        vec![ToyStep::Say("a"), ToyStep::Call("c", "look")],
        vec![ToyStep::Think("b"), ToyStep::Say("c")],
    ]
}

const SHOWN: [&str; 7] = [
    "say a",
    "usage",
    "start look",
    "end look: done",
    "think b",
    "say c",
    "usage",
];

// proves: LASH-53, LASH-97, TURN-40, LASH-9, C-18
#[tokio::test(start_paused = true)]
async fn run_sink_and_stream_give_the_same_output() {
    let mut ends = Vec::new();

    let world = World::new(script());
    let output = run_hello(&world.session().await).await;
    assert_eq!(describe_all(&output.activities), SHOWN);
    ends.push(output.result.outcome);

    let world = World::new(script());
    let sink = Arc::new(RecordingSink::default());
    let prompt = world.session().await.new_prompt("hello");
    let output = prompt.stream_to(sink.clone()).await.unwrap();
    assert_eq!(describe_all(&sink.seen.lock().unwrap()), SHOWN);
    assert_eq!(describe_all(&output.activities), SHOWN);
    ends.push(output.result.outcome);

    let world = World::new(script());
    let prompt = world.session().await.new_prompt("hello");
    let mut stream = prompt.stream().unwrap();
    let pulled: Vec<_> = StreamExt::by_ref(&mut stream).collect().await;
    assert_eq!(describe_all(&pulled), SHOWN);
    let output = stream.finish().await.unwrap();
    assert_eq!(output.activities, pulled);
    ends.push(output.result.outcome);

    let outcome = finished("c");
    assert_eq!(ends, [outcome.clone(), outcome.clone(), outcome]);
}

/// Continuations, reruns, branches and evaluations are followed in the same ways.
// proves: LASH-53
#[tokio::test(start_paused = true)]
async fn every_kind_of_prompt_has_sinks_and_streams() {
    let say = |text| vec![ToyStep::Say(text)];
    let script = ["first", "again", "aside", "one"].map(say);
    let store = Arc::new(MemoryStore::new());
    let two = vec![vec![ToyStep::Spend(usage_of(9)), ToyStep::Say("two")]];
    let world = World::over(store, script.to_vec(), two);
    let session = world.session().await;
    let first = run_hello(&session).await.result.loops[0].loop_id.clone();

    let sink = Arc::new(RecordingSink::default());
    let output = session.new_rerun(None).stream_to(sink.clone()).await;
    assert_eq!(output.unwrap().result.outcome, finished("again"));
    let said = |text: &str| vec![format!("say {text}"), "usage".to_owned()];
    assert_eq!(describe_all(&sink.seen.lock().unwrap()), said("again"));

    let mut stream = session.new_branch(first, "aside?").stream().unwrap();
    let pulled: Vec<_> = StreamExt::by_ref(&mut stream).collect().await;
    assert_eq!(describe_all(&pulled), said("aside"));
    drop(stream);

    let candidates = ["toy/one", "toy/two"].map(|it| it.parse::<ModelName>().unwrap().into());
    let strategy = SelectionStrategy::MostTokens;
    let sink = Arc::new(RecordingSink::default());
    let prompt = session.new_evaluation("both?", candidates.to_vec(), strategy);
    let output = prompt.stream_to(sink.clone()).await.unwrap();
    assert_eq!(output.result.outcome, finished("two"));
    assert_eq!(describe_all(&sink.seen.lock().unwrap()), said("two"));
    assert_eq!(describe_all(&output.activities), said("two"));

    // The model has answered, so there is nothing to continue.
    let output = session.new_continuation().run().await;
    assert!(matches!(
        output,
        Err(RunError::Prompt(PromptError::Continue(_)))
    ));
}

// proves: LASH-78, LASH-8
#[tokio::test(start_paused = true)]
async fn final_message_is_recorded_once() {
    let world = World::new(vec![
        vec![ToyStep::Say("Hel"), ToyStep::Say("lo")],
        vec![ToyStep::Say("again")],
    ]);
    let session = world.session().await;
    run_hello(&session).await;
    run_hello(&session).await;
    let records = world.records(&session).await;
    let messages = records.iter().map(|record| &record.messages);
    let texts: Vec<Vec<_>> = messages
        .map(|it| it.iter().map(|message| message.message.text()).collect())
        .collect();
    assert_eq!(texts, [["hello", "Hel\nlo"], ["hello", "again"]]);
}

async fn first_activity(stream: &mut ActivityStream) -> String {
    let activity = stream.next().await.unwrap();
    describe_all(&[activity]).remove(0)
}

// proves: LASH-86, LASH-97
#[tokio::test(start_paused = true)]
async fn finishing_a_stream_early_loses_nothing() {
    let mut turn: Vec<ToyStep> = std::iter::repeat_n(ToyStep::Say("x"), 500).collect();
    turn.push(ToyStep::Call("c", "look"));
    let world = World::new(vec![turn, vec![ToyStep::Say("done")]]);
    let prompt = world.session().await.new_prompt("hello");
    let mut stream = prompt.stream().unwrap();
    assert_eq!(first_activity(&mut stream).await, "say x");
    // Nobody reads: the prompt waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.ran.lock().unwrap().is_empty());
    let output = stream.finish().await.unwrap();
    assert_eq!(output.activities.len(), 505);
    assert_eq!(*world.ran.lock().unwrap(), ["look"]);
}

// proves: LASH-86
#[tokio::test(start_paused = true)]
async fn dropped_stream_does_not_cancel() {
    let mut turn: Vec<ToyStep> = std::iter::repeat_n(ToyStep::Say("x"), 500).collect();
    turn.push(ToyStep::Call("c", "look"));
    let world = World::new(vec![
        turn,
        vec![ToyStep::Say("done")],
        vec![ToyStep::Say("next")],
    ]);
    let session = world.session().await;
    let mut stream = session.new_prompt("one").stream().unwrap();
    assert_eq!(first_activity(&mut stream).await, "say x");
    drop(stream);
    // The next prompt runs after it.
    run_hello(&session).await;
    let records = world.records(&session).await;
    assert_eq!(records.len(), 2);
    let outcome = finished("done");
    assert_eq!(records[0].outcome, Some(outcome));
}
