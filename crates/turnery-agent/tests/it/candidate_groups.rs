//! Tests of candidate groups against the store, hooks, sub-agents, the mailbox and a client that does not
//! read.

use crate::{
    evaluation::{
        candidates, evaluate, evaluate_with_cancel, fixture_with, loop_ids_and_winner, short_id,
        start_evaluation, three_models,
    },
    failing_store::FailingStore,
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, drain, hook_set, live_events,
        one_turn, run_text, usage_of, with_hooks, yield_while,
    },
    hooks::HeldHook,
};
use futures_util::future::BoxFuture;
use std::{
    future::ready,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use turnery_agent::{
    CancellationToken, HookCx, Hooks, MAX_CANDIDATES, PromptOptions, SelectionStrategy, StartError,
    SubAgentTool,
};
use turnery_engine::{
    Content, ContinuationKind, Event, EventKind, HookRequest, HookSet, HookVerdict, LoopRecord,
    LoopStatus, Outcome, TurnStop, TurnTrigger,
};
use turnery_store::{Clock, MemoryStore, Owner, SqliteStore, StoreError};
use turnery_tools::Mode;

/// Runtime that can be dropped at any time, like a killed process. Its clock is real: a paused one would
/// advance to the limits of the loops while waiting for the disk.
fn real_time_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

// proves: LOOP-54, S5, LOOP-50
#[test]
fn killed_evaluation_leaves_aborted_loops() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let half = TestModel::new("x", &[&[ModelAct::Say("half"), ModelAct::Hang]]);
    let none = TestModel::new("y", &[&[ModelAct::Hang]]);
    let first = real_time_runtime();
    let (id, tip, folder) = first.block_on(async {
        let store = Arc::new(SqliteStore::open(path.clone()));
        let world = EmbeddingFixture::with_models(store, &[half.clone(), none.clone()]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "hello").await;
        let options = PromptOptions::default();
        let _ticket = start_evaluation(&session, &["x", "y"], SelectionStrategy::First, options);
        yield_while(|| {
            *half.active_calls.lock().unwrap() == 0 || *none.active_calls.lock().unwrap() == 0
        })
        .await;
        // What was given to the store before this has reached the disk: at least the announcement.
        let info = world.store.info(session.id()).await.unwrap();
        assert_eq!(info.head_version, 1);
        (info.id, info.tip_loop_id, world.folder)
    });
    drop(first);
    let second = real_time_runtime();
    second.block_on(async {
        // A minute later: this process still lives, but the lane's time has run out.
        let clock = Clock::new(|| turnery_store::now() + Duration::from_secs(60));
        let store = Arc::new(SqliteStore::with_clock(path.clone(), clock));
        let world = EmbeddingFixture {
            folder,
            ..EmbeddingFixture::with_store(store, &[&[ModelAct::Say("here")]])
        };
        let (session, _seen) = world.open(&id, false).await;
        run_text(&session, "again").await;
        let loops = world.loops(&id).await;
        let found: Vec<_> = loops
            .iter()
            .map(|record| (short_id(&record.loop_id), record.status, record.on_chain))
            .collect();
        assert_eq!(
            found,
            [
                ("puppet-one.1", LoopStatus::Completed, true),
                // Its group has no winner, so the first stays.
                ("puppet-x.2", LoopStatus::Aborted, true),
                ("puppet-y.3", LoopStatus::Aborted, false),
                ("puppet-one.4", LoopStatus::Completed, true),
            ]
        );
        for lost in &loops[1..3] {
            assert_eq!((&lost.outcome, &lost.parallel_group), (&None, &None));
            assert!(matches!(
                lost.events[0].kind,
                EventKind::ParallelStart { .. }
            ));
        }
        assert_eq!(loops[1].parent_loop_id, tip);
        assert_eq!(loops[3].parent_loop_id.as_ref(), Some(&loops[1].loop_id));
        let request = world.model.request(0);
        assert_eq!(request[..3], ["hello", "", "which?"]);
        let [.., notice, last] = &request[..] else {
            panic!("{request:?}");
        };
        assert!(notice.contains("interrupted"), "{notice}");
        assert_eq!(last, "again");
    });
}

/// Candidates that continue without a prompt begin from the same history, each as a child of the last loop.
// proves: C-15, LOOP-8
#[tokio::test(start_paused = true)]
async fn candidates_without_prompt_continue_last_loop() {
    let models = three_models();
    let world = fixture_with(&models);
    world.model.answer_next(&[ModelAct::Call("c", "look")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let base = session.prompt(vec![Content::text("hi")], one_turn());
    let base = base.unwrap().result().await.unwrap();
    let group = session.evaluate(
        Vec::new(),
        candidates(&["a", "b", "c"]),
        SelectionStrategy::FewestTokens,
        PromptOptions::default(),
    );
    let group = group.unwrap().result().await.unwrap();
    let (ids, winner) = loop_ids_and_winner(&group);
    assert_eq!(ids, ["puppet-a.2", "puppet-b.3", "puppet-c.4"]);
    assert_eq!(winner, 1);
    for record in &group.loops {
        assert_eq!(record.continuation_kind, ContinuationKind::Default);
        assert_eq!(record.parent_loop_id.as_ref(), base.loop_ids().next());
        assert_eq!(record.turns[0].triggered_by, TurnTrigger::Continuation);
        assert!(record.turns[0].input_messages.is_empty());
    }
    let stop = "[Agent stopped: Max turns reached (1/1)]";
    for model in &models {
        assert_eq!(model.request(0), ["hi", "", "done", stop]);
    }
    run_text(&session, "next").await;
    let request = world.model.request(1);
    assert_eq!(request, ["hi", "", "done", stop, "from b", "next"]);
}

/// Hooks that record their requests and loops.
#[derive(Default)]
struct CandidateHookLog {
    refused_loop: Option<&'static str>,
    log: Mutex<Vec<String>>,
}

impl CandidateHookLog {
    fn write(&self, what: &str, cx: &HookCx) {
        let last = cx.messages.last().map(|message| message.message.text());
        let line = format!("{what} {}: {last:?}", short_id(&cx.loop_id));
        self.log.lock().unwrap().push(line);
    }
}

impl Hooks for CandidateHookLog {
    fn hook_set(&self) -> HookSet {
        hook_set!(before_turn)
    }

    fn ask_hook<'a>(&'a self, cx: &'a HookCx, _: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        self.write("turn", cx);
        Box::pin(ready(HookVerdict::Continue))
    }

    fn before_loop<'a>(
        &'a self,
        cx: &'a HookCx,
        _: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        self.write("before", cx);
        let answer = match self.refused_loop == Some(short_id(&cx.loop_id)) {
            true => Err("not this one".to_owned()),
            false => Ok(()),
        };
        Box::pin(ready(answer))
    }

    fn after_loop<'a>(&'a self, cx: &'a HookCx, _: &'a LoopRecord) -> BoxFuture<'a, ()> {
        self.write("after", cx);
        Box::pin(ready(()))
    }
}

/// Hooks run for each candidate under its own loop, with the messages of its model.
// proves: LOOP-55, LOOP-56
#[tokio::test(start_paused = true)]
async fn hooks_are_asked_in_each_candidate() {
    let world = fixture_with(&three_models());
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let scribe = Arc::new(CandidateHookLog::default());
    let options = with_hooks(scribe.clone());
    let strategy = SelectionStrategy::FewestTokens;
    let ticket = start_evaluation(&session, &["a", "b"], strategy, options);
    ticket.result().await.unwrap();
    assert_eq!(
        *scribe.log.lock().unwrap(),
        [
            "before puppet-a.1: None",
            "before puppet-b.2: None",
            "turn puppet-a.1: None",
            "turn puppet-b.2: None",
            "after puppet-a.1: Some(\"from a\")",
            "after puppet-b.2: Some(\"from b\")",
        ]
    );
}

/// When the hooks run, the group is stored and its end has been published.
// proves: LOOP-56
#[tokio::test(start_paused = true)]
async fn after_loop_hooks_run_after_the_group_is_published() {
    let world = fixture_with(&three_models());
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let hook = Arc::new(HeldHook::default());
    let strategy = SelectionStrategy::FewestTokens;
    let ticket = start_evaluation(&session, &["a", "b"], strategy, with_hooks(hook.clone()));
    hook.begun.notified().await;
    assert_eq!(world.head(&session).await, 1);
    let published = live_events(&drain(&mut seen));
    let is_end = |event: &Event| matches!(event.kind, EventKind::ParallelEnd { .. });
    assert!(published.iter().any(is_end), "{published:?}");
    hook.released.notify_one();
    hook.begun.notified().await;
    hook.released.notify_one();
    ticket.result().await.unwrap();
}

/// A rejected candidate rejects all, and leaves no trace of the prompt.
// proves: UP-9, D-10
#[tokio::test(start_paused = true)]
async fn stop_of_one_candidate_stops_all() {
    let puppets = three_models();
    let world = fixture_with(&puppets);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let options = with_hooks(Arc::new(CandidateHookLog {
        refused_loop: Some("puppet-b.2"),
        ..CandidateHookLog::default()
    }));
    let ticket = start_evaluation(&session, &["a", "b"], SelectionStrategy::First, options);
    let result = ticket.result().await.unwrap();
    assert!(matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::PluginAbort { .. })
    ));
    assert!(result.loops.is_empty());
    assert_eq!(live_events(&drain(&mut seen)), []);
    assert_eq!(puppets[0].requests.lock().unwrap().len(), 0);
    // The next prompt finds no announced candidate either.
    run_text(&session, "next").await;
    let loops = world.loops(session.id()).await;
    assert_eq!(loops.len(), 1);
}

/// A candidate's sub-agent changes nothing either; its work and usage are stored, also for a loser.
// proves: LOOP-65, S7
#[tokio::test(start_paused = true)]
async fn sub_agents_of_candidates_are_read_only() {
    let [a, ..] = three_models();
    let digs: &[&[ModelAct]] = &[
        &[ModelAct::Delegate("t", false)],
        &[ModelAct::Call("r", "ring"), ModelAct::Spend(4, 2)],
        &[ModelAct::Say("I may not"), ModelAct::Spend(5, 1)],
        &[ModelAct::Say("it may not"), ModelAct::Spend(1, 1)],
    ];
    let digs = TestModel::new("d", digs);
    let world = EmbeddingFixture::build(
        Arc::new(MemoryStore::new()),
        &[],
        &[a, Arc::clone(&digs)],
        |settings| settings.mode = Mode::Auto,
        |tools| tools.with_tool(SubAgentTool),
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &["a", "d"], SelectionStrategy::First)
        .await
        .unwrap();
    assert_eq!(
        loop_ids_and_winner(&result),
        (vec!["puppet-a.1", "puppet-d.2"], 0)
    );
    assert!(world.ran.lock().unwrap().is_empty());
    assert!(world.client.asked.lock().unwrap().is_empty());
    let [child] = &result.loops[1].child_loop_refs[..] else {
        panic!("{:?}", result.loops[1]);
    };
    let stored = world.store.loops(&child.child_session_id, 0).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].loop_id, child.child_loop_id);
    assert_eq!(
        stored[0].parent_loop_id,
        Some(result.loops[1].loop_id.clone())
    );
    assert_eq!(stored[0].usage, usage_of(9, 3));
    assert_eq!(result.usage, usage_of(11, 6));
    assert_eq!(result.total_usage(), usage_of(20, 9));
}

/// During an evaluation the task responds, and no other owner gets the session.
// proves: S1
#[tokio::test(start_paused = true)]
async fn session_is_served_while_candidates_run() {
    let began = Instant::now();
    let clock = Clock::new(move || {
        chrono::DateTime::UNIX_EPOCH + chrono::Duration::from_std(began.elapsed()).unwrap()
    });
    let slow = TestModel::new(
        "slow",
        &[&[
            ModelAct::Pause(Duration::from_secs(300)),
            ModelAct::Say("s"),
        ]],
    );
    let [a, ..] = three_models();
    let world = EmbeddingFixture::with_models(Arc::new(MemoryStore::with_clock(clock)), &[slow, a]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let (result, ()) = tokio::join!(
        evaluate(&session, &["slow", "a"], SelectionStrategy::First),
        async {
            sleep(Duration::from_secs(200)).await;
            assert!(session.is_busy());
            session.set_mode(Mode::Auto).await.unwrap();
            assert_eq!(began.elapsed(), Duration::from_secs(200));
            let other = Owner {
                id: "other".to_owned(),
                ..Owner::for_this_process()
            };
            let refused = world.store.claim(session.id(), &other).await;
            assert!(
                matches!(refused, Err(StoreError::Busy { .. })),
                "{refused:?}"
            );
        }
    );
    assert_eq!(loop_ids_and_winner(&result.unwrap()).1, 0);
}

/// A slow store neither blocks the task nor loses the lane.
#[tokio::test(start_paused = true)]
async fn session_is_served_while_group_is_committed() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_models(store.clone(), &three_models());
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.commit_delay.store(65, Ordering::SeqCst);
    let began = Instant::now();
    let (result, ()) = tokio::join!(
        evaluate(&session, &["a", "b"], SelectionStrategy::First),
        async {
            sleep(Duration::from_secs(30)).await;
            session.set_mode(Mode::Plan).await.unwrap();
            assert_eq!(began.elapsed(), Duration::from_secs(30));
        }
    );
    assert!(matches!(result.unwrap().outcome, Outcome::Finished(..)));
    assert!(began.elapsed() >= Duration::from_secs(65));
    // After 10, 20, and so on to 60 seconds.
    assert_eq!(store.renewals.load(Ordering::SeqCst), 6);
}

/// Everything is stored before it is shown, so a client that does not read blocks nothing.
// proves: LASH-85
#[tokio::test(start_paused = true)]
async fn unread_client_is_abandoned_after_cancel() {
    let world = fixture_with(&three_models());
    let (session, mut seen) = world.session(3).await;
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let run = evaluate_with_cancel(
        &session,
        &["a", "b"],
        SelectionStrategy::First,
        cancel.clone(),
    );
    let (result, ()) = tokio::join!(run, async {
        sleep(Duration::from_secs(60)).await;
        assert!(session.is_busy());
        session.set_mode(Mode::Plan).await.unwrap();
        cancel.cancel();
    });
    assert_eq!(loop_ids_and_winner(&result.unwrap()).1, 0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(62), "{took:?}");
    assert_eq!(drain(&mut seen).len(), 3);
    let reader = tokio::spawn(async move { while seen.recv().await.is_some() {} });
    run_text(&session, "next").await;
    assert_eq!(world.model.request(0), ["which?", "from a", "next"]);
    drop(session);
    reader.await.unwrap();
}

// proves: LOOP-70
#[tokio::test(start_paused = true)]
async fn too_many_candidates_are_rejected() {
    let world = fixture_with(&three_models());
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let start = |count| {
        let input = vec![Content::text("which?")];
        let candidates = candidates(&vec!["a"; count]);
        session.evaluate(
            input,
            candidates,
            SelectionStrategy::First,
            PromptOptions::default(),
        )
    };
    assert_eq!(MAX_CANDIDATES, 8);
    let refused = start(9).err().unwrap();
    assert_eq!(refused, StartError::Candidates(9));
    assert_eq!(
        refused.to_string(),
        "9 candidates are too many for one prompt; name at most 8"
    );
    let result = start(8).unwrap().result().await.unwrap();
    assert_eq!(result.loops.len(), 8);
}
