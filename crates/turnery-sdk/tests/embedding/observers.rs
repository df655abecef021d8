//! Tests that observers of a session resume from cursors and learn of gaps.

use crate::{
    fixture::{World, describe_all, run_hello},
    toy::ToyStep,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;
use turnery_sdk::{
    Content, ObservedEvent, Observer, ObserverCursor, PromptOptions, SelectionStrategy,
};

/// Reads the events available now.
async fn read(observer: &mut Observer) -> Vec<String> {
    let mut read = Vec::new();
    while let Ok(Some(observed)) =
        tokio::time::timeout(Duration::from_millis(1), observer.next()).await
    {
        read.push(match observed {
            ObservedEvent::Activity(activity) => describe_all(&[activity]).remove(0),
            ObservedEvent::Committed { loop_id, .. } => {
                format!("committed {}", loop_id.as_str().rsplit('.').next().unwrap())
            }
            ObservedEvent::Gap => "gap".to_owned(),
            other => format!("{other:?}"),
        });
    }
    read
}

// proves: LASH-52, LASH-54, UP-32, C-33
#[tokio::test(start_paused = true)]
async fn observer_resumes_from_cursor() {
    let world = World::new(vec![
        vec![ToyStep::Say("zero")],
        vec![ToyStep::Say("one"), ToyStep::Call("c", "look")],
        vec![ToyStep::Say("two")],
        vec![ToyStep::Say("three")],
    ]);
    let session = world.session().await;
    run_hello(&session).await;
    let mut observer = session.observe(None);
    run_hello(&session).await;
    let first = observer.next().await.unwrap();
    assert!(matches!(first, ObservedEvent::Activity(_)));
    let cursor = observer.cursor();
    drop(observer);
    // A cursor survives conversion to text and back.
    let cursor = ObserverCursor::from(cursor.to_string());
    let mut observer = session.observe(Some(&cursor));
    let rest = [
        "usage",
        "start look",
        "end look: done",
        "say two",
        "usage",
        "committed 2",
    ];
    assert_eq!(read(&mut observer).await, rest);
    run_hello(&session).await;
    let next = ["say three", "usage", "committed 3"];
    assert_eq!(read(&mut observer).await, next);
    // A cursor can be used repeatedly.
    let mut again = session.observe(Some(&cursor));
    assert_eq!(read(&mut again).await, [&rest[..], &next[..]].concat());
}

// proves: LASH-54, LASH-78, UP-32, C-33
#[tokio::test(start_paused = true)]
async fn slow_observer_gets_gap_and_blocks_nobody() {
    let long: Vec<ToyStep> = std::iter::repeat_n(ToyStep::Say("x"), 3000).collect();
    let world = World::new(vec![long, vec![ToyStep::Say("end")]]);
    let session = world.session().await;
    let mut observer = session.observe(None);
    run_hello(&session).await;
    let read_now = read(&mut observer).await;
    // The newest 2048 are there: fragments, the usage and the commit.
    assert_eq!(read_now.len(), 2049);
    assert_eq!(read_now[0], "gap");
    assert_eq!(read_now[2046..], ["say x", "usage", "committed 1"]);
    // What was missed is in the session.
    let records = session.records().await.unwrap();
    let text = records[0].messages[1].message.text();
    assert_eq!(text.lines().count(), 3000);
    run_hello(&session).await;
    let after = ["say end", "usage", "committed 2"];
    assert_eq!(read(&mut observer).await, after);
}

// proves: LASH-54, UP-32
#[tokio::test(start_paused = true)]
async fn foreign_or_invalid_cursor_leads_to_gap() {
    let world = World::new(vec![vec![ToyStep::Say("one")], vec![ToyStep::Say("two")]]);
    let session = world.session().await;
    let old = session.observe(None).cursor();
    run_hello(&session).await;
    session.close().await;
    let session = world.reopen(&session).await;
    for cursor in [old, ObserverCursor::from("nowhere".to_owned())] {
        let mut observer = session.observe(Some(&cursor));
        assert_eq!(read(&mut observer).await, ["gap"]);
    }
    let mut observer = session.observe(None);
    run_hello(&session).await;
    let seen = ["say two", "usage", "committed 2"];
    assert_eq!(read(&mut observer).await, seen);
}

// proves: LASH-54
#[tokio::test(start_paused = true)]
async fn observed_events_serialise_to_json() {
    let world = World::new(vec![vec![ToyStep::Say("one")]]);
    let session = world.session().await;
    let mut observer = session.observe(None);
    run_hello(&session).await;
    let id = session.id();
    let mut line = json!(observer.next().await.unwrap());
    let row = line["correlation_id"].take();
    assert!(row.as_str().unwrap().ends_with(".0"), "{row}");
    let number = line["id"].take();
    assert!(number.as_str().unwrap().starts_with(id.as_str()));
    assert_eq!(
        line,
        json!({
            "observed": "activity",
            "id": null,
            "correlation_id": null,
            "event": {"type": "assistant_prose_delta", "text": "one"},
        })
    );
    observer.next().await.unwrap();
    let line = json!(observer.next().await.unwrap());
    assert_eq!(line["observed"], "committed");
    let outcome = json!({"finished": {"assistant_message": {"text": "one"}}});
    assert_eq!(line["outcome"], outcome);
    assert_eq!(json!(ObservedEvent::Gap), json!({"observed": "gap"}));
}

// proves: LASH-54
#[tokio::test(start_paused = true)]
async fn observer_ends_with_the_session() {
    let go_on = Arc::new(Notify::new());
    let world = World::new(vec![vec![
        ToyStep::Wait(Arc::clone(&go_on)),
        ToyStep::Say("one"),
    ]]);
    let session = world.session().await;
    let mut observer = session.observe(None);
    let reading = tokio::spawn(async move {
        let mut read = 0;
        while observer.next().await.is_some() {
            read += 1;
        }
        read
    });
    go_on.notify_one();
    run_hello(&session).await;
    session.close().await;
    assert_eq!(reading.await.unwrap(), 3);
}

/// Two candidates wait for each other's activities to be read, so both run when the first is observed.
// proves: LASH-54, UP-32
#[tokio::test(start_paused = true)]
async fn candidates_are_observed_while_they_run() {
    let go_on = Arc::new(Notify::new());
    let script = |text| {
        vec![vec![
            ToyStep::Say(text),
            ToyStep::Wait(Arc::clone(&go_on)),
            ToyStep::Say("end"),
        ]]
    };
    let store = Arc::new(turnery_store::MemoryStore::new());
    let world = World::over(store, script("from one"), script("from two"));
    let session = world.session().await;
    let mut observer = session.observe(None);
    let names = ["toy/one", "toy/two"].map(|it| it.parse::<turnery_models::ModelName>().unwrap());
    let candidates = names.map(Into::into).to_vec();
    let handle = session.evaluate(
        vec![Content::text("both?")],
        candidates,
        SelectionStrategy::First,
        PromptOptions::default(),
    );
    let handle = handle.unwrap();
    let Some(ObservedEvent::CandidatesStarted { loop_ids }) = observer.next().await else {
        panic!("no start");
    };
    let mut live = Vec::new();
    for _ in 0..2 {
        let Some(ObservedEvent::Activity(activity)) = observer.next().await else {
            panic!("no activity");
        };
        live.push((
            activity.id.loop_id.clone(),
            describe_all(&[activity]).remove(0),
        ));
    }
    live.sort_by_key(|(loop_id, _)| loop_ids.iter().position(|it| it == loop_id));
    let expected = ["say from one", "say from two"].map(str::to_owned);
    assert_eq!(
        live,
        loop_ids.iter().cloned().zip(expected).collect::<Vec<_>>()
    );
    assert!(session.is_busy());
    go_on.notify_waiters();
    let result = handle.result().await.unwrap();
    let rest = read(&mut observer).await;
    // Each activity is observed once, also those of the winner that the client is shown at the end.
    assert_eq!(rest.iter().filter(|it| *it == "say end").count(), 2);
    assert!(!rest.iter().any(|it| it.contains("from")), "{rest:?}");
    let [.., first, second, winner] = &rest[..] else {
        panic!("{rest:?}");
    };
    assert_eq!([&**first, &**second], ["committed 1", "committed 2"]);
    assert!(winner.contains("WinnerSelected"), "{winner}");
    assert_eq!(result.loops.len(), 2);
}
