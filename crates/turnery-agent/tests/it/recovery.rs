//! Tests that an interrupted or unstored prompt stays in its session, and that the session goes on.

use crate::{
    evaluation::{evaluate, start_evaluation},
    failing_store::{ALWAYS, FailingStore},
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, check_random, run_text, start_text,
        wait_for_event, yield_while,
    },
};
use proptest::prelude::*;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use turnery_agent::{ClientPorts, PromptError, PromptOptions, SelectionStrategy, SubAgentTool};
use turnery_engine::{CommitError, EventKind, LoopStatus, oracle};
use turnery_store::{Clock, ListQuery, MemoryStore, Owner};
use turnery_tools::Toolbox;

const ONE_ANSWER: &[ModelAct] = &[ModelAct::Say("ok")];

/// Store whose lanes can be made to expire, as if their owners were gone. Unit: seconds.
pub(crate) fn expiring_store() -> (Arc<MemoryStore>, Arc<AtomicI64>) {
    let later = Arc::new(AtomicI64::new(0));
    let seconds = Arc::clone(&later);
    let clock = Clock::new(move || {
        turnery_store::now() + chrono::TimeDelta::seconds(seconds.load(Ordering::SeqCst))
    });
    (Arc::new(MemoryStore::with_clock(clock)), later)
}

fn expiring_fixture(script: &[&[ModelAct]]) -> (EmbeddingFixture, Arc<AtomicI64>) {
    let (store, later) = expiring_store();
    (EmbeddingFixture::with_store(store, script), later)
}

/// One call has ended and one is running: the model learns the state of each, and that the prompt was
/// interrupted.
// proves: S5, C-12, D-16
#[tokio::test(start_paused = true)]
pub(crate) async fn interrupted_prompt_is_in_the_next_context() {
    let calls: &[ModelAct] = &[
        ModelAct::Say("on it"),
        ModelAct::Call("a", "look"),
        ModelAct::Call("b", "hang"),
    ];
    let (world, later) = expiring_fixture(&[calls, &[ModelAct::Say("here")]]);
    let (one, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&one, "first");
    // No time passes in which a delayed journal write would happen.
    wait_for_event(&mut seen, |kind| {
        matches!(kind, EventKind::ToolExecutionStart { call_id, .. } if call_id.as_str() == "b")
    })
    .await;
    later.store(120, Ordering::SeqCst);
    let (two, _seen) = world.open(one.id(), false).await;
    let second = run_text(&two, "second").await;
    let request = world.model.request(1);
    let [first, answer, done, running, notice, last] = &request[..] else {
        panic!("{request:?}");
    };
    assert_eq!(
        [first, answer, done, last],
        ["first", "on it", "done", "second"]
    );
    assert!(
        running.contains("may or may not have had effects"),
        "{running}"
    );
    assert!(notice.contains("interrupted"), "{notice}");
    let loops = world.loops(one.id()).await;
    assert_eq!(
        (loops[0].status, loops[0].on_chain),
        (LoopStatus::Aborted, true)
    );
    assert_eq!(
        second.loops[0].parent_loop_id.as_ref(),
        Some(&loops[0].loop_id)
    );
    let lost = ticket.result().await;
    assert_eq!(lost, Err(PromptError::Lost(CommitError::LaneLost)));
}

/// A killed process does not lose the prompt: one of its candidates stays, the first that can.
// proves: S5, LOOP-54
#[tokio::test(start_paused = true)]
async fn interrupted_evaluation_is_in_the_next_context() {
    let (store, later) = expiring_store();
    let a = TestModel::new(
        "a",
        &[
            &[ModelAct::Say("on it"), ModelAct::Call("1", "look")],
            &[ModelAct::Hang],
        ],
    );
    let b = TestModel::new("b", &[&[ModelAct::Hang]]);
    let script: &[&[ModelAct]] = &[&[ModelAct::Say("here")]];
    let world = EmbeddingFixture::build(store, script, &[a, b], |_| {}, |tools| tools);
    let (one, _seen) = world.session(LARGE_CAPACITY).await;
    let options = PromptOptions::default();
    let ticket = start_evaluation(&one, &["a", "b"], SelectionStrategy::First, options);
    yield_while(|| world.ran.lock().unwrap().is_empty()).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    later.store(120, Ordering::SeqCst);
    let (two, _seen) = world.open(one.id(), false).await;
    run_text(&two, "second").await;
    let request = world.model.request(0);
    let [asked, answer, done, .., notice, last] = &request[..] else {
        panic!("{request:?}");
    };
    let expected = ["which?", "on it", "done", "second"];
    assert_eq!([asked, answer, done, last], expected);
    assert!(notice.contains("interrupted"), "{notice}");
    let loops = world.loops(one.id()).await;
    let found: Vec<_> = loops.iter().map(|it| (it.status, it.on_chain)).collect();
    let (aborted, completed) = (LoopStatus::Aborted, LoopStatus::Completed);
    assert_eq!(
        found,
        [(aborted, true), (aborted, false), (completed, true)]
    );
    drop(ticket);
}

// proves: S5, LASH-12
#[tokio::test(start_paused = true)]
async fn interrupted_frame_is_continued() {
    let script: [&[ModelAct]; 3] = [
        &[ModelAct::Call("s", "switch")],
        &[ModelAct::Say("digging"), ModelAct::Hang],
        &[ModelAct::Say("here")],
    ];
    let (world, later) = expiring_fixture(&script);
    let (one, mut seen) = world.session(LARGE_CAPACITY).await;
    let _ticket = start_text(&one, "first");
    wait_for_event(&mut seen, |kind| matches!(kind, EventKind::LoopEnd { .. })).await;
    wait_for_event(&mut seen, |kind| matches!(kind, EventKind::Delta { .. })).await;
    later.store(120, Ordering::SeqCst);
    let (two, _seen) = world.open(one.id(), false).await;
    run_text(&two, "second").await;
    let request = world.model.request(2);
    // What was streamed is not settled.
    assert_eq!(
        [&request[0], &request[1], &request[3]],
        ["dig here", "", "second"]
    );
    assert!(request[2].contains("interrupted"), "{request:?}");
}

/// The journal of a child is its own, and it stays with its parent's call.
// proves: S5, S7
#[tokio::test(start_paused = true)]
async fn interrupted_child_has_a_record() {
    let script: [&[ModelAct]; 2] = [
        &[ModelAct::Delegate("t", false)],
        &[ModelAct::Call("h", "hang")],
    ];
    let (store, later) = expiring_store();
    let tools = |tools: Toolbox| tools.with_tool(SubAgentTool);
    let world = EmbeddingFixture::build(store, &script, &[], |_| {}, tools);
    let (one, _seen) = world.session(LARGE_CAPACITY).await;
    let _ticket = start_text(&one, "first");
    yield_while(|| world.ran.lock().unwrap().is_empty()).await;
    later.store(120, Ordering::SeqCst);
    let all = ListQuery {
        spawned: true,
        ..ListQuery::default()
    };
    let sessions = world.store.list(all).await.unwrap().sessions;
    assert_eq!(sessions.len(), 2);
    for info in sessions {
        let owner = Owner::for_this_process();
        let opened = world.store.claim(&info.id, &owner).await.unwrap();
        let loops = world.store.loops(&info.id, 0).await.unwrap();
        assert_eq!(loops.len(), 1);
        assert_eq!(
            (loops[0].status, loops[0].on_chain),
            (LoopStatus::Aborted, true)
        );
        assert_eq!(opened.info.tip_loop_id.as_ref(), Some(&loops[0].loop_id));
    }
}

/// While the disk is full or the store locked by a backup, the commit is retried until it succeeds.
// proves: S2
#[tokio::test(start_paused = true)]
async fn failing_commit_is_retried() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &[ONE_ANSWER]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(3, Ordering::SeqCst);
    run_text(&session, "go").await;
    assert_eq!(store.failed_commits.load(Ordering::SeqCst), 3);
    assert_eq!(world.loops(session.id()).await.len(), 1);
}

/// A lost prompt was paid for and shown: the next prompt recovers it.
// proves: S5
#[tokio::test(start_paused = true)]
async fn unstored_answer_is_recovered() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(
        store.clone(),
        &[&[ModelAct::Say("one")], &[ModelAct::Say("two")]],
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    start_text(&session, "first").result().await.unwrap_err();
    store.failing_commits.store(0, Ordering::SeqCst);
    run_text(&session, "second").await;
    let request = world.model.request(1);
    assert_eq!(
        [&request[0], &request[1], &request[3]],
        ["first", "one", "second"]
    );
    assert!(request[2].contains("interrupted"), "{request:?}");
}

/// A rejected prompt stays out of the conversation, whether or not it could be stored.
// proves: UP-35
#[tokio::test(start_paused = true)]
async fn unstored_refusal_stays_off_chain() {
    let store = FailingStore::new();
    let script: [&[ModelAct]; 2] = [
        &[ModelAct::Say("no"), ModelAct::Refuse],
        &[ModelAct::Say("yes")],
    ];
    let world = EmbeddingFixture::with_store(store.clone(), &script);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    start_text(&session, "something bad")
        .result()
        .await
        .unwrap_err();
    store.failing_commits.store(0, Ordering::SeqCst);
    run_text(&session, "something good").await;
    assert_eq!(world.model.request(1), ["something good"]);
    let loops = world.loops(session.id()).await;
    let found: Vec<_> = loops.iter().map(|it| (it.status, it.on_chain)).collect();
    let expected = [(LoopStatus::Aborted, false), (LoopStatus::Completed, true)];
    assert_eq!(found, expected);
}

/// Ten prompts in a row, here, after a restart and in a fork.
// proves: LOOP-10, LOOP-12
#[tokio::test(start_paused = true)]
pub(crate) async fn prompts_after_a_lost_one_are_stored() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &[ONE_ANSWER; 64]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "one").await;
    store.drop_appends.store(true, Ordering::SeqCst);
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    start_text(&session, "lost").result().await.unwrap_err();
    store.drop_appends.store(false, Ordering::SeqCst);
    store.failing_commits.store(0, Ordering::SeqCst);
    run_text(&session, "two").await;
    let id = session.id().clone();
    session.close().await;
    let (again, _seen) = world.open(&id, false).await;
    let silent = |_: &_| ClientPorts::silent();
    let fork = world
        .agent
        .fork(&id, world.request(), silent)
        .await
        .unwrap();
    for session in [&again, &fork] {
        for _ in 0..10 {
            run_text(session, "go").await;
        }
        let loops = world.loops(session.id()).await;
        assert_eq!(loops.len(), 12);
    }
}

/// Whatever fails and whichever owner continues, a prompt is stored if the store works, under its own id.
async fn check_session_goes_on(ops: &[u8]) -> Result<(), String> {
    let store = FailingStore::new();
    let others = ["a", "b"].map(|name| TestModel::new(name, &[ONE_ANSWER; 40]));
    let world = EmbeddingFixture::build(
        store.clone(),
        &[ONE_ANSWER; 40],
        &others,
        |_| {},
        |tools| tools,
    );
    let (mut session, _seen) = world.session(LARGE_CAPACITY).await;
    // State that was never written is known only to its own process.
    let mut unwritten = false;
    for op in ops {
        let (fails, journals) = match op % 7 {
            0 | 1 => (true, op % 7 == 0),
            _ => (false, true),
        };
        store.drop_appends.store(!journals, Ordering::SeqCst);
        store
            .failing_commits
            .store(if fails { ALWAYS } else { 0 }, Ordering::SeqCst);
        let ended = match op % 7 {
            2 if unwritten => continue,
            2 => {
                let id = session.id().clone();
                session.close().await;
                session = world.open(&id, op % 2 == 0).await.0;
                continue;
            }
            3 => evaluate(&session, &["a", "b"], SelectionStrategy::First).await,
            1 if op % 2 == 0 => evaluate(&session, &["b", "a"], SelectionStrategy::First).await,
            _ => start_text(&session, "go").result().await,
        };
        unwritten = fails && (unwritten || !journals);
        if ended.is_err() != fails {
            return Err(format!("{op}: {ended:?}"));
        }
    }
    let loops = world.store.loops(session.id(), 0).await;
    let loops = loops.map_err(|error| error.to_string())?;
    let ids: BTreeSet<_> = loops.iter().map(|record| &record.loop_id).collect();
    if ids.len() != loops.len() {
        return Err("an id was used twice".to_owned());
    }
    loops
        .iter()
        .try_for_each(|record| oracle::check_record(record))
}

// proves: LOOP-10, S5
#[test]
fn sessions_continue_after_random_failures() {
    let ops = prop::collection::vec(any::<u8>(), 1..20);
    check_random(60, ops, async |ops| {
        prop_assert_eq!(check_session_goes_on(&ops).await, Ok(()));
        Ok(())
    });
}
