//! Tests that effects of tools reach the host once they are stored, and again after a crash.

use crate::{
    evaluation::evaluate,
    failing_store::{ALWAYS, FailingStore},
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, run_text, start_text, yield_while,
    },
    recovery::expiring_store,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;
use turnery_agent::{
    CommittedEffect, EffectHandler, NOTIFICATION_TYPE, NotifyTool, SelectionStrategy, Settings,
    SubAgentTool,
};
use turnery_engine::{SessionId, Timestamp, ToolEnvelope};
use turnery_store::{Clock, MemoryStore, NextEffect, Owner, Store};
use turnery_tools::{EffectKind, EffectPolicy, FunctionTool, Toolbox};

/// Reaction of a test handler to a delivery.
#[derive(Clone, Copy)]
enum Reaction {
    Deliver,
    Fail,
    Hang,
    Panic,
    /// Takes this long.
    Take(Duration),
}

/// Handler that records its deliveries, with the virtual time of each in seconds, and reacts as scripted; then it
/// delivers.
struct TestHandler {
    reactions: Mutex<VecDeque<Reaction>>,
    begun: Instant,
    deliveries: Mutex<Vec<(u64, CommittedEffect)>>,
    /// Store in which the session must be at this version before anything is delivered.
    store: Mutex<Option<(Arc<dyn Store>, u64)>>,
    active: Mutex<usize>,
}

impl TestHandler {
    fn new(reactions: &[Reaction]) -> Arc<Self> {
        Arc::new(Self {
            reactions: Mutex::new(reactions.iter().copied().collect()),
            begun: Instant::now(),
            deliveries: Mutex::default(),
            store: Mutex::default(),
            active: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.deliveries.lock().unwrap().len()
    }

    fn deliveries(&self) -> Vec<(u64, CommittedEffect)> {
        self.deliveries.lock().unwrap().clone()
    }

    /// Returns the `number` of each delivered effect.
    fn numbers(&self) -> Vec<u64> {
        let deliveries = self.deliveries().into_iter();
        deliveries
            .map(|(_, effect)| effect.effect["number"].as_u64().unwrap())
            .collect()
    }
}

impl EffectHandler for TestHandler {
    fn name(&self) -> &str {
        "the test handler"
    }

    fn deliver(&self, effect: CommittedEffect) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let expected = self.store.lock().unwrap().clone();
            if let Some((store, version)) = expected {
                let info = store.info(&effect.session_id).await.unwrap();
                assert_eq!(info.head_version, version);
            }
            let seconds = self.begun.elapsed().as_secs();
            self.deliveries.lock().unwrap().push((seconds, effect));
            let reaction = self.reactions.lock().unwrap().pop_front();
            match reaction.unwrap_or(Reaction::Deliver) {
                Reaction::Deliver => Ok(()),
                Reaction::Fail => Err("no bus".to_owned()),
                Reaction::Hang => std::future::pending().await,
                Reaction::Panic => panic!("test handler"),
                Reaction::Take(time) => {
                    *self.active.lock().unwrap() += 1;
                    tokio::time::sleep(time).await;
                    *self.active.lock().unwrap() -= 1;
                    Ok(())
                }
            }
        })
    }
}

/// Store whose clock is tokio's, which tests pause.
fn store_with_virtual_clock() -> Arc<MemoryStore> {
    let begun = Instant::now();
    let start = Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let clock = Clock::new(move || start + begun.elapsed());
    Arc::new(MemoryStore::with_clock(clock))
}

fn emit(number: u32) -> Value {
    json!({"kind": "emit", "type": "order.placed", "number": number})
}

/// Tool that requests effects: those in `effects` of its arguments.
fn order_tool() -> FunctionTool {
    FunctionTool::new("order", "", async |args: Value, _| ToolEnvelope {
        effects: args["effects"].as_array().cloned().unwrap_or_default(),
        ..ToolEnvelope::text("ordered")
    })
}

const ORDER_TWO: &[ModelAct] = &[
    ModelAct::CallWith(
        "a",
        "order",
        r#"{"effects": [{"kind": "emit", "type": "order.placed", "number": 1},
            {"kind": "unknown", "number": 2}, {"kind": "spawn", "number": 3}]}"#,
    ),
    ModelAct::CallWith(
        "b",
        "order",
        r#"{"effects": [{"kind": "emit", "type": "order.placed", "number": 4}]}"#,
    ),
];
const DONE: &[ModelAct] = &[ModelAct::Say("done")];

fn fixture(
    store: Arc<dyn Store>,
    script: &[&[ModelAct]],
    handler: &Arc<TestHandler>,
) -> EmbeddingFixture {
    fixture_with(store, script, &[], |settings| {
        settings.effect_handler = Some(handler.clone());
    })
}

fn fixture_with(
    store: Arc<dyn Store>,
    script: &[&[ModelAct]],
    others: &[Arc<TestModel>],
    set: impl FnOnce(&mut Settings),
) -> EmbeddingFixture {
    let tools = |tools: Toolbox| {
        tools
            .with_tool(order_tool())
            .with_tool(SubAgentTool)
            .with_tool(NotifyTool)
    };
    EmbeddingFixture::build(store, script, others, set, tools)
}

async fn take(store: &dyn Store, id: &SessionId) -> NextEffect {
    let owner = Owner::for_this_process();
    store.take_effect(id, &owner).await.unwrap()
}

/// The prompt does not wait for the delivery; the end of the session does. The policy's kinds and no others arrive, in
/// order.
// proves: JIDO-44, JIDO-45, JIDO-46, UP-22
#[tokio::test(start_paused = true)]
async fn allowed_effects_are_delivered_after_the_commit() {
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let world = fixture(store.clone(), &[ORDER_TWO, DONE], &handler);
    *handler.store.lock().unwrap() = Some((store.clone(), 1));
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "go").await;
    session.close().await;
    assert_eq!(handler.numbers(), [1, 4]);
    let loop_id = &result.loops[0].loop_id;
    let expected = [("a", 1), ("b", 4)].map(|(call, number)| CommittedEffect {
        key: format!("{loop_id}/{call}/0"),
        session_id: session.id().clone(),
        tool_name: "order".to_owned(),
        effect: emit(number),
        attempt: 1,
    });
    let delivered = handler.deliveries().into_iter().map(|(_, effect)| effect);
    assert_eq!(delivered.collect::<Vec<_>>(), expected);
    assert_eq!(take(&*store, session.id()).await, NextEffect::Empty);
}

// proves: JIDO-45, UP-22
#[tokio::test(start_paused = true)]
async fn policy_of_the_settings_narrows() {
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let world = fixture_with(store, &[ORDER_TWO, DONE], &[], |settings| {
        settings.effect_handler = Some(handler.clone());
        settings.effect_policy = EffectPolicy::allow_list([EffectKind::Spawn]);
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    session.close().await;
    assert_eq!(handler.numbers(), [3]);
}

#[tokio::test(start_paused = true)]
async fn without_a_handler_no_effect_is_stored() {
    let store = store_with_virtual_clock();
    let world = fixture_with(store.clone(), &[ORDER_TWO, DONE], &[], |_| {});
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    session.close().await;
    assert_eq!(take(&*store, session.id()).await, NextEffect::Empty);
}

#[tokio::test(start_paused = true)]
async fn refused_commit_delivers_nothing() {
    let (inner, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let store = FailingStore::over(inner.clone());
    let world = fixture(store.clone(), &[ORDER_TWO, DONE], &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    assert!(start_text(&session, "go").result().await.is_err());
    session.close().await;
    assert_eq!(handler.count(), 0);
    assert_eq!(take(&*inner, session.id()).await, NextEffect::Empty);
}

/// A commit that a cancelled prompt no longer waits for delivers its effects once it is made.
#[tokio::test(start_paused = true)]
async fn late_commit_delivers_its_effects() {
    let (inner, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let store = FailingStore::over(inner);
    let world = fixture(store.clone(), &[ORDER_TWO, &[ModelAct::Hang]], &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let prompt = start_text(&session, "go");
    yield_while(|| world.model.requests.lock().unwrap().len() < 2).await;
    store.commit_delay.store(60, Ordering::SeqCst);
    session.cancel_prompts();
    assert!(!prompt.result().await.unwrap().is_stored);
    assert_eq!(handler.count(), 0);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(handler.numbers(), [1, 4]);
}

/// Runs `work` on a runtime of its own. All of its tasks end with the runtime, like those of a killed process.
fn in_killed_process<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> T {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true).build().unwrap()
    };
    std::thread::scope(|scope| {
        let process = scope.spawn(|| runtime().block_on(work()));
        process.join().unwrap()
    })
}

/// One effect was being delivered, the other was stored only: once the session is opened, the latter is delivered at
/// once, and the former again when the lease of the process is over, with the key that it had.
#[test]
fn effects_of_a_killed_process_are_delivered_when_opened() {
    let (store, later) = expiring_store();
    let (id, first, folder) = in_killed_process(async || {
        let stuck = TestHandler::new(&[Reaction::Hang]);
        let world = fixture(store.clone(), &[ORDER_TWO, DONE], &stuck);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "go").await;
        yield_while(|| stuck.count() == 0).await;
        (session.id().clone(), stuck.deliveries(), world.folder)
    });
    let second = in_killed_process(async || {
        let handler = TestHandler::new(&[]);
        let mut world = fixture(store.clone(), &[DONE], &handler);
        world.folder = folder;
        let (_session, _seen) = world.open(&id, false).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(handler.numbers(), [4]);
        later.store(91, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(take(&*store, &id).await, NextEffect::Empty);
        handler.deliveries()
    });
    let [(_, interrupted)] = &first[..] else {
        panic!("{first:?}");
    };
    let again = CommittedEffect {
        attempt: 2,
        ..interrupted.clone()
    };
    let second: Vec<_> = second.into_iter().map(|(_, effect)| effect).collect();
    assert_eq!(second[0].attempt, 1);
    assert_eq!(second[1..], [again]);
}

/// Effects that a prompt requested before its process was killed are delivered once, with the next prompt or with the
/// winner of the next comparison.
// proves: JIDO-46
#[test]
fn effects_of_an_interrupted_prompt_are_delivered_after_the_next_loop() {
    for is_comparison in [false, true] {
        let (store, later) = expiring_store();
        let (id, folder) = in_killed_process(async || {
            let handler = TestHandler::new(&[]);
            let script: &[&[ModelAct]] = &[ORDER_TWO, &[ModelAct::Hang]];
            let world = fixture(store.clone(), script, &handler);
            let (session, _seen) = world.session(LARGE_CAPACITY).await;
            let _prompt = start_text(&session, "go");
            yield_while(|| world.model.requests.lock().unwrap().len() < 2).await;
            assert_eq!(handler.count(), 0);
            (session.id().clone(), world.folder)
        });
        later.store(91, Ordering::SeqCst);
        in_killed_process(async || {
            let handler = TestHandler::new(&[]);
            let candidates = ["a", "b"].map(|name| TestModel::new(name, &[DONE]));
            let mut world = fixture_with(store.clone(), &[DONE], &candidates, |settings| {
                settings.effect_handler = Some(handler.clone());
            });
            world.folder = folder;
            let (session, _seen) = world.open(&id, false).await;
            if is_comparison {
                let pick = SelectionStrategy::First;
                evaluate(&session, &["a", "b"], pick).await.unwrap();
            } else {
                run_text(&session, "go on").await;
            }
            session.close().await;
            assert_eq!(handler.numbers(), [1, 4], "comparison: {is_comparison}");
            assert_eq!(take(&*store, &id).await, NextEffect::Empty);
        });
    }
}

/// Fails in every way: five attempts in all, with growing delays, while the other effect is delivered at once. The
/// user is told.
#[tokio::test(start_paused = true)]
async fn failing_effect_is_retried_and_finally_dropped() {
    let reactions = [
        Reaction::Fail,
        Reaction::Deliver,
        Reaction::Panic,
        Reaction::Hang,
        Reaction::Fail,
        Reaction::Fail,
    ];
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&reactions));
    let world = fixture(store.clone(), &[ORDER_TWO, DONE], &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    let deliveries = handler.deliveries().into_iter();
    let attempts: Vec<_> = deliveries
        .map(|(seconds, it)| (seconds, it.effect["number"].as_u64(), it.attempt))
        .collect();
    // The third attempt hangs for 20 seconds.
    let expected = [
        (0, Some(1), 1),
        (0, Some(4), 1),
        (5, Some(1), 2),
        (35, Some(1), 3),
        (175, Some(1), 4),
        (775, Some(1), 5),
    ];
    assert_eq!(attempts, expected);
    assert_eq!(take(&*store, session.id()).await, NextEffect::Empty);
}

/// An effect whose delivery ends the process each time is not delivered for ever.
#[tokio::test(start_paused = true)]
async fn effect_taken_five_times_is_dropped() {
    let (store, handler) = (
        store_with_virtual_clock(),
        TestHandler::new(&[Reaction::Hang; 9]),
    );
    let world = fixture(store.clone(), &[ORDER_TWO, DONE], &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    session.close().await;
    for _ in 0..5 {
        // The leases of the processes that took them are over.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        for _ in 0..2 {
            let next = take(&*store, session.id()).await;
            assert!(matches!(next, NextEffect::Taken(_)), "{next:?}");
        }
    }
    let handler = TestHandler::new(&[]);
    let reopening = fixture(store.clone(), &[DONE], &handler);
    let world = EmbeddingFixture {
        folder: world.folder,
        ..reopening
    };
    tokio::time::sleep(Duration::from_secs(1000)).await;
    let (session, _seen) = world.open(session.id(), false).await;
    session.close().await;
    assert_eq!(handler.count(), 0);
    assert_eq!(take(&*store, session.id()).await, NextEffect::Empty);
}

/// The end of a session waits for a delivery that has begun, begins others for five seconds, and leaves the rest to
/// the next opening.
#[tokio::test(start_paused = true)]
async fn end_of_session_waits_for_deliveries() {
    let seconds = |seconds| Reaction::Take(Duration::from_secs(seconds));
    let script: &[&[ModelAct]] = &[ORDER_TWO, DONE];
    let closed_after = async |reactions: &[Reaction]| {
        let (store, handler) = (store_with_virtual_clock(), TestHandler::new(reactions));
        let world = fixture(store.clone(), script, &handler);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "go").await;
        let begun = Instant::now();
        session.finish().await;
        assert_eq!(*handler.active.lock().unwrap(), 0);
        (begun.elapsed().as_secs(), handler.numbers())
    };
    assert_eq!(closed_after(&[]).await, (0, vec![1, 4]));
    assert_eq!(
        closed_after(&[seconds(3), seconds(19)]).await,
        (22, vec![1, 4])
    );
    assert_eq!(
        closed_after(&[seconds(19), seconds(3)]).await,
        (19, vec![1])
    );
    // A failed effect is left to the next opening.
    let failed = closed_after(&[Reaction::Fail, Reaction::Fail]).await;
    assert_eq!(failed, (0, vec![1, 4]));
}

/// The effects of a sub-agent are delivered by the session that the user sees, after the child's commit.
#[tokio::test(start_paused = true)]
async fn effects_of_sub_agent_are_delivered_by_parent() {
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let script: &[&[ModelAct]] = &[
        &[ModelAct::Delegate("task", false)],
        ORDER_TWO,
        DONE,
        &[ModelAct::Hang],
    ];
    let world = fixture(store.clone(), script, &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let prompt = start_text(&session, "go");
    yield_while(|| handler.count() < 2).await;
    let delivered = handler.deliveries().into_iter();
    let sessions: Vec<_> = delivered.map(|(_, effect)| effect.session_id).collect();
    assert_eq!(sessions, [session.id().clone(), session.id().clone()]);
    assert_eq!(handler.numbers(), [1, 4]);
    session.close().await;
    drop(prompt);
}

/// Effects that the losing candidate requested are never delivered.
#[tokio::test(start_paused = true)]
async fn only_effects_of_the_winner_are_delivered() {
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let call = |args| [ModelAct::CallWith("a", "order", args)];
    let winner = call(r#"{"effects": [{"kind": "emit", "type": "x", "number": 1}]}"#);
    let loser = call(r#"{"effects": [{"kind": "emit", "type": "x", "number": 2}]}"#);
    let a = TestModel::new("a", &[&winner, DONE]);
    let b = TestModel::new("b", &[&loser, DONE]);
    let world = fixture_with(store.clone(), &[], &[a, b], |settings| {
        settings.effect_handler = Some(handler.clone());
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let pick = SelectionStrategy::First;
    evaluate(&session, &["a", "b"], pick).await.unwrap();
    session.close().await;
    assert_eq!(handler.numbers(), [1]);
    assert_eq!(take(&*store, session.id()).await, NextEffect::Empty);
}

fn notifications(handler: &TestHandler) -> Vec<(Value, Value)> {
    let delivered = handler.deliveries().into_iter().map(|(_, it)| it.effect);
    delivered
        .inspect(|it| {
            assert_eq!(
                (&it["kind"], &it["type"]),
                (&json!("emit"), &json!(NOTIFICATION_TYPE))
            )
        })
        .map(|it| (it["title"].clone(), it["message"].clone()))
        .collect()
}

/// A prompt and its sub-agents send ten messages together; the next prompt may send messages again.
#[tokio::test(start_paused = true)]
async fn prompt_sends_ten_notifications() {
    let notify = |id| ModelAct::CallWith(id, "notify", r#"{"message": "look"}"#);
    let ids = ["a", "b", "c", "d", "e", "f", "g"];
    let seven: Vec<ModelAct> = ids.into_iter().map(notify).collect();
    let mut parent = vec![ModelAct::Delegate("task", false)];
    parent.extend(seven.clone());
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let script: &[&[ModelAct]] = &[&parent, &seven, DONE, DONE, &[notify("h")], DONE];
    let world = fixture(store, script, &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "go").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sent = notifications(&handler);
    assert_eq!(sent, vec![(json!("turnery"), json!("look")); 10]);
    let refused = result.messages().filter(|it| {
        let text = it.message.text();
        text.contains("10 messages were sent in this prompt")
    });
    assert_eq!(refused.count(), 4);
    run_text(&session, "again").await;
    session.close().await;
    assert_eq!(notifications(&handler).len(), 11);
}

/// A message is one line without control characters, and short.
#[tokio::test(start_paused = true)]
async fn notification_is_short_plain_text() {
    let long = format!(r#"{{"message": "{}"}}"#, "x".repeat(501));
    let longest = format!(r#"{{"message": "{}"}}"#, "ü".repeat(500));
    let calls = [
        ModelAct::CallWith(
            "a",
            "notify",
            r#"{"message": " tests\npass\u001b[2J ", "title": "CI"}"#,
        ),
        ModelAct::CallWith("b", "notify", r#"{"message": " \n "}"#),
        ModelAct::CallWith("c", "notify", long.leak()),
        ModelAct::CallWith("d", "notify", longest.leak()),
        ModelAct::CallWith("e", "notify", r#"{"message": "x", "title": ""}"#),
    ];
    let (store, handler) = (store_with_virtual_clock(), TestHandler::new(&[]));
    let world = fixture(store, &[&calls, DONE], &handler);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    session.close().await;
    let expected = [
        (json!("CI"), json!("tests pass [2J")),
        (json!("turnery"), json!("ü".repeat(500))),
    ];
    assert_eq!(notifications(&handler), expected);
}
