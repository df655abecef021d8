//! Tests that a sink is awaited for each activity and that its failures stay its own.

use crate::{
    fixture::{RecordingSink, World, describe_all, finished, run_hello},
    toy::ToyStep,
};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;
use turnery_engine::{EventKind, Outcome, TurnStop};
use turnery_sdk::{ActivityEvent, ActivitySink, ChannelSink, PromptActivity, SessionExt as _};

/// Sink that receives an activity at once, and finishes it only with a permit.
struct Gate {
    permits: Semaphore,
    received: Mutex<Vec<PromptActivity>>,
    active: Mutex<usize>,
    max_active: Mutex<usize>,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(0),
            received: Mutex::default(),
            active: Mutex::default(),
            max_active: Mutex::default(),
        })
    }
}

impl ActivitySink for Gate {
    fn emit(&self, activity: PromptActivity) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.received.lock().unwrap().push(activity);
            let now = {
                let mut now = self.active.lock().unwrap();
                *now += 1;
                *now
            };
            {
                let mut most = self.max_active.lock().unwrap();
                *most = now.max(*most);
            }
            self.permits.acquire().await.unwrap().forget();
            *self.active.lock().unwrap() -= 1;
        })
    }
}

/// Runs until all tasks are idle: time only passes when nothing else is left to do.
async fn run_until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

// proves: LASH-79, LASH-80, LASH-81, R6, D-15, LASH-55, LASH-100
#[tokio::test(start_paused = true)]
async fn slow_sink_gets_one_activity_at_a_time() {
    let mut turn: Vec<ToyStep> = std::iter::repeat_n(ToyStep::Say("x"), 500).collect();
    turn.push(ToyStep::Call("c", "look"));
    let world = World::new(vec![turn, vec![ToyStep::Say("done")]]);
    let session = world.session().await;
    let gate = Gate::closed();
    let prompt = session.new_prompt("hello").stream_to(gate.clone());
    let prompt = tokio::spawn(prompt);
    run_until_idle().await;
    assert_eq!(gate.received.lock().unwrap().len(), 1);
    // The model is held back: what was sent lies in bounded queues.
    let held = *world.toy.sent.lock().unwrap();
    assert!(held < 100, "{held}");
    gate.permits.add_permits(1);
    run_until_idle().await;
    assert_eq!(gate.received.lock().unwrap().len(), 2);
    // All of the answer and its usage: the tool's row is being drawn, so the tool does not run yet.
    gate.permits.add_permits(500);
    run_until_idle().await;
    assert_eq!(
        describe_all(&gate.received.lock().unwrap()[500..]),
        ["usage", "start look"]
    );
    assert!(world.ran.lock().unwrap().is_empty());
    assert!(!prompt.is_finished());
    gate.permits.add_permits(1000);
    let output = prompt.await.unwrap().unwrap();
    assert_eq!(*gate.max_active.lock().unwrap(), 1);
    assert_eq!(*gate.received.lock().unwrap(), output.activities);
    assert_eq!(output.result.outcome, finished("done"));
}

// proves: LASH-79, LASH-85, LASH-90, C-10, R6
#[tokio::test(start_paused = true)]
async fn cancel_is_stored_while_sink_is_busy() {
    let world = World::new(vec![vec![ToyStep::Say("one"), ToyStep::Hang]]);
    let session = world.session().await;
    let gate = Gate::closed();
    let prompt = session.new_prompt("hello").stream_to(gate.clone());
    let prompt = tokio::spawn(prompt);
    run_until_idle().await;
    assert_eq!(session.cancel_prompts(), 1);
    run_until_idle().await;
    assert_eq!(*world.toy.alive.lock().unwrap(), 0);
    assert_eq!(world.records(&session).await.len(), 1);
    // Only the result is pending: nothing is shown after it.
    assert!(!prompt.is_finished());
    gate.permits.add_permits(2);
    let output = prompt.await.unwrap().unwrap();
    assert_eq!(output.result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(
        describe_all(&gate.received.lock().unwrap()),
        ["say one", "usage"]
    );
}

// proves: LASH-53, LASH-79
#[tokio::test(start_paused = true)]
async fn activity_reaches_sink_before_next_effect() {
    let world = World::new(vec![vec![ToyStep::Say("one"), ToyStep::Hang]]);
    let session = world.session().await;
    let sink = Arc::new(RecordingSink::default());
    let prompt = session.new_prompt("hello").stream_to(sink.clone());
    let prompt = tokio::spawn(prompt);
    run_until_idle().await;
    assert_eq!(describe_all(&sink.seen.lock().unwrap()), ["say one"]);
    session.cancel_prompts();
    prompt.await.unwrap().unwrap();
}

// proves: LASH-82
#[tokio::test(start_paused = true)]
async fn channel_sink_waits_only_while_full() {
    for capacity in [1, 4] {
        let turn = std::iter::repeat_n(ToyStep::Say("x"), 10).collect();
        let world = World::new(vec![turn]);
        let session = world.session().await;
        let (sink, mut activities) = ChannelSink::new(capacity);
        let prompt = session.new_prompt("hello").stream_to(Arc::new(sink));
        let prompt = tokio::spawn(prompt);
        run_until_idle().await;
        assert!(!prompt.is_finished());
        assert_eq!(activities.len(), capacity);
        let mut taken = Vec::new();
        while let Some(activity) = activities.recv().await {
            taken.push(activity);
        }
        let output = prompt.await.unwrap().unwrap();
        // Ten fragments and the usage.
        assert_eq!(taken.len(), 11);
        assert_eq!(taken, output.activities);
    }
}

// proves: LASH-82, LASH-86
#[tokio::test(start_paused = true)]
async fn closed_channel_sink_neither_blocks_nor_loses() {
    let turn = std::iter::repeat_n(ToyStep::Say("x"), 100).collect();
    let world = World::new(vec![turn]);
    let session = world.session().await;
    let (sink, activities) = ChannelSink::new(1);
    drop(activities);
    let prompt = session.new_prompt("hello").stream_to(Arc::new(sink));
    assert_eq!(prompt.await.unwrap().activities.len(), 101);
}

async fn check_panicking_sink(breaks_at: usize, at_once: bool) {
    let script = vec![
        vec![ToyStep::Say("one"), ToyStep::Call("c", "look")],
        vec![ToyStep::Say("two"), ToyStep::Pause(Duration::from_secs(1))],
    ];
    let whole = World::new(script.clone());
    let expected = describe_all(&run_hello(&whole.session().await).await.activities);
    assert_eq!(
        expected,
        [
            "say one",
            "usage",
            "start look",
            "end look: done",
            "say two",
            "usage"
        ]
    );
    let world = World::new(script);
    let session = world.session().await;
    let sink = Arc::new(RecordingSink {
        breaks_at: Some(breaks_at),
        at_once,
        ..RecordingSink::default()
    });
    let prompt = session.new_prompt("hello").stream_to(sink.clone());
    let output = prompt.await.unwrap();
    assert_eq!(output.result.outcome, finished("two"));
    // The sink receives nothing more; the activity log is complete and reports the failure.
    assert_eq!(sink.seen.lock().unwrap().len(), breaks_at + 1);
    let described = describe_all(&output.activities);
    let without: Vec<_> = described.iter().filter(|word| *word != "error").collect();
    assert_eq!(without, expected.iter().collect::<Vec<_>>());
    let errors = output.activities.iter().filter(
        |activity| matches!(&activity.event, ActivityEvent::Error { text } if text.contains("sink")),
    );
    assert_eq!(errors.count(), 1);
    // The record is complete and reports the failure, too.
    let records = world.records(&session).await;
    assert_eq!(records[0].issues.len(), 1);
    let texts = |record: &turnery_engine::LoopRecord| -> Vec<String> {
        let messages = record.messages.iter();
        messages.map(|message| message.message.text()).collect()
    };
    assert_eq!(texts(&records[0]), ["hello", "one", "done", "two"]);
    // The session goes on.
    run_hello(&session).await;
}

// proves: LASH-83, LASH-84, LASH-85, LASH-86, R6
#[tokio::test(start_paused = true)]
async fn sink_panic_does_not_affect_the_prompt() {
    for breaks_at in 0..5 {
        check_panicking_sink(breaks_at, false).await;
        check_panicking_sink(breaks_at, true).await;
    }
}

// proves: LASH-83, LASH-85
#[tokio::test(start_paused = true)]
async fn sink_panic_after_outcome_changes_nothing() {
    let world = World::new(vec![vec![ToyStep::Say("one")]]);
    let session = world.session().await;
    let sink = Arc::new(RecordingSink {
        breaks_at: Some(1),
        ..RecordingSink::default()
    });
    let prompt = session.new_prompt("hello").stream_to(sink.clone());
    let output = prompt.await.unwrap();
    assert_eq!(output.result.outcome, finished("one"));
    assert_eq!(describe_all(&output.activities), ["say one", "usage"]);
    assert_eq!(world.records(&session).await.len(), 1);
}

// proves: LASH-85, LASH-84
#[tokio::test(start_paused = true)]
async fn record_is_the_same_with_and_without_sink() {
    let script = vec![
        vec![
            ToyStep::Think("hm"),
            ToyStep::Say("one"),
            ToyStep::Call("c", "fail"),
        ],
        vec![ToyStep::Say("two")],
    ];
    let mut kept = Vec::new();
    for sink in [None, Some(Arc::new(RecordingSink::default()))] {
        let world = World::new(script.clone());
        let session = world.session().await;
        let prompt = session.new_prompt("hello");
        let output = match sink {
            Some(sink) => prompt.stream_to(sink).await,
            None => prompt.run().await,
        };
        let record = Arc::clone(&world.records(&session).await[0]);
        let kinds: Vec<_> = record.events.iter().map(|event| event.seq).collect();
        let ends = record.events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolExecutionEnd { envelope, .. } => Some(envelope.clone()),
            _ => None,
        });
        let texts: Vec<_> = record.messages.iter().map(|it| it.message.text()).collect();
        kept.push((
            describe_all(&output.unwrap().activities),
            kinds,
            ends.collect::<Vec<_>>(),
            texts,
        ));
    }
    assert_eq!(kept[0], kept[1]);
    assert_eq!(
        kept[0].0,
        [
            "think hm",
            "say one",
            "usage",
            "start fail",
            "end fail: it broke",
            "say two",
            "usage"
        ]
    );
}
