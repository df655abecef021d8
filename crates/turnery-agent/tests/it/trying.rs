//! Trying: what a group of loops means to the rest of the world while it runs: the store, hooks,
//! sub-agents, the mailbox, a client that does not read.

use crate::{
    evaluating::{cancelled_by, evaluate, made, short, three, tried, usage, world},
    failing_store::FailingStore,
    world::{Act, Puppet, ROOM, World, drain, live, say},
};
use futures_util::future::BoxFuture;
use std::{
    future::ready,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use turnery_agent::{
    CANDIDATES, CancellationToken, HookCx, Hooks, Pick, PromptOptions, StartError, SubAgents,
};
use turnery_engine::{
    Content, EventKind, Hook, HookSet, HookVerdict, LoopRecord, LoopStatus, Outcome, TurnStop,
};
use turnery_store::{Clock, MemoryStore, Owner, SqliteStore, StoreError};
use turnery_tools::Mode;

/// A runtime that can be dropped in the middle of everything, as a process that is killed. Its clock is
/// the real one: a paused one would run on to the limits of the loops while the disk is waited for.
fn process() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

// proves: LOOP-54, S5, LOOP-50
#[test]
fn a_process_that_dies_in_mid_group_leaves_aborted_loops_and_a_whole_session() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let half = Puppet::new("x", &[&[Act::Say("half"), Act::Hang]]);
    let none = Puppet::new("y", &[&[Act::Hang]]);
    let first = process();
    let (id, tip, folder) = first.block_on(async {
        let store = Arc::new(SqliteStore::open(path.clone()));
        let world = World::among(store, &[half.clone(), none.clone()]);
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "hello").result().await.unwrap();
        let input = vec![Content::text("which?")];
        let ticket = session.evaluate(
            input,
            tried(&["x", "y"]),
            Pick::First,
            PromptOptions::default(),
        );
        let _ticket = ticket.unwrap();
        while *half.alive.lock().unwrap() == 0 || *none.alive.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        // What was given to the store before this has reached the disk: at least the announcement.
        let info = world.store.info(session.id()).await.unwrap();
        assert_eq!(info.head_version, 1);
        (info.id, info.tip_loop_id, world.folder)
    });
    drop(first);
    let second = process();
    second.block_on(async {
        // A minute later: this process still lives, but the lane's time has run out.
        let clock = Clock::new(|| turnery_store::now() + Duration::from_secs(60));
        let store = Arc::new(SqliteStore::with_clock(path.clone(), clock));
        let world = World {
            folder,
            ..World::over(store, &[&[Act::Say("here")]])
        };
        let (session, _seen) = world.open(&id, false).await;
        say(&session, "again").result().await.unwrap();
        let loops = world.store.loops(&id, 0).await.unwrap();
        let told: Vec<_> = loops
            .iter()
            .map(|record| (short(&record.loop_id), record.status, record.on_chain))
            .collect();
        assert_eq!(
            told,
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
        let request = world.puppet.request(0);
        assert_eq!(request[..3], ["hello", "", "which?"]);
        let [.., notice, last] = &request[..] else {
            panic!("{request:?}");
        };
        assert!(notice.contains("interrupted"), "{notice}");
        assert_eq!(last, "again");
    });
}

/// Writes down what it is asked, and in which loop.
#[derive(Default)]
struct Scribe {
    refuses: Option<&'static str>,
    log: Mutex<Vec<String>>,
}

impl Scribe {
    fn write(&self, what: &str, cx: &HookCx) {
        let last = cx.messages.last().map(|message| message.message.text());
        let line = format!("{what} {}: {last:?}", short(&cx.loop_id));
        self.log.lock().unwrap().push(line);
    }
}

impl Hooks for Scribe {
    fn set(&self) -> HookSet {
        HookSet {
            before_turn: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, cx: &'a HookCx, _: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        self.write("turn", cx);
        Box::pin(ready(HookVerdict::Go))
    }

    fn before_loop<'a>(
        &'a self,
        cx: &'a HookCx,
        _: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        self.write("before", cx);
        let answer = match self.refuses == Some(short(&cx.loop_id)) {
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

/// Each candidate is asked about in its own name, with what its own model sees.
// proves: LOOP-55, LOOP-56
#[tokio::test(start_paused = true)]
async fn hooks_are_asked_in_each_candidate() {
    let world = world(&three());
    let (session, _seen) = world.session(ROOM).await;
    let scribe = Arc::new(Scribe::default());
    let options = PromptOptions {
        hooks: vec![scribe.clone()],
        ..PromptOptions::default()
    };
    let input = vec![Content::text("which?")];
    let ticket = session.evaluate(input, tried(&["a", "b"]), Pick::FewestTokens, options);
    ticket.unwrap().result().await.unwrap();
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

/// One that may not begin lets none begin, and there is no trace of the prompt.
// proves: UP-9, D-10
#[tokio::test(start_paused = true)]
async fn a_no_to_one_candidate_is_a_no_to_all() {
    let puppets = three();
    let world = world(&puppets);
    let (session, mut seen) = world.session(ROOM).await;
    let options = PromptOptions {
        hooks: vec![Arc::new(Scribe {
            refuses: Some("puppet-b.2"),
            ..Scribe::default()
        })],
        ..PromptOptions::default()
    };
    let input = vec![Content::text("which?")];
    let ticket = session.evaluate(input, tried(&["a", "b"]), Pick::First, options);
    let result = ticket.unwrap().result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::PluginAbort));
    assert!(result.loops.is_empty());
    assert_eq!(live(&drain(&mut seen)), []);
    assert_eq!(puppets[0].requests.lock().unwrap().len(), 0);
    // Nor does the next one find any that was announced.
    say(&session, "next").result().await.unwrap();
    let loops = world.store.loops(session.id(), 0).await.unwrap();
    assert_eq!(loops.len(), 1);
}

/// A candidate's sub-agent changes nothing either; what it did and spent is kept, also with a loser.
// proves: LOOP-65, S7
#[tokio::test(start_paused = true)]
async fn a_candidate_has_sub_agents_that_are_as_bound_as_it_is() {
    let [a, ..] = three();
    let digs: &[&[Act]] = &[
        &[Act::Delegate("t", false)],
        &[Act::Call("r", "ring"), Act::Spend(4, 2)],
        &[Act::Say("I may not"), Act::Spend(5, 1)],
        &[Act::Say("it may not"), Act::Spend(1, 1)],
    ];
    let digs = Puppet::new("d", digs);
    let world = World::made(
        Arc::new(MemoryStore::new()),
        &[],
        &[a, Arc::clone(&digs)],
        |settings| settings.mode = Mode::Auto,
        |tools| tools.and(SubAgents::new()),
    );
    let (session, _seen) = world.session(ROOM).await;
    let result = evaluate(&session, &["a", "d"], Pick::First).await.unwrap();
    assert_eq!(made(&result), (vec!["puppet-a.1", "puppet-d.2"], 0));
    assert!(world.ran.lock().unwrap().is_empty());
    assert!(world.person.asked.lock().unwrap().is_empty());
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
    assert_eq!(stored[0].usage, usage(9, 3));
    assert_eq!(result.usage, usage(11, 6));
    assert_eq!(result.total_usage(), usage(20, 9));
}

/// All through it the task answers, and nobody else gets the session.
// proves: S1
#[tokio::test(start_paused = true)]
async fn the_session_is_served_and_kept_while_candidates_run() {
    let began = Instant::now();
    let clock = Clock::new(move || {
        chrono::DateTime::UNIX_EPOCH + chrono::Duration::from_std(began.elapsed()).unwrap()
    });
    let slow = Puppet::new(
        "slow",
        &[&[Act::Pause(Duration::from_secs(300)), Act::Say("s")]],
    );
    let [a, ..] = three();
    let world = World::among(Arc::new(MemoryStore::with_clock(clock)), &[slow, a]);
    let (session, _seen) = world.session(ROOM).await;
    let (result, ()) = tokio::join!(evaluate(&session, &["slow", "a"], Pick::First), async {
        sleep(Duration::from_secs(200)).await;
        assert!(session.is_busy());
        session.set_mode(Mode::Auto).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(200));
        let other = Owner {
            id: "other".to_owned(),
            ..Owner::this_process()
        };
        let refused = world.store.claim(session.id(), &other).await;
        assert!(
            matches!(refused, Err(StoreError::Busy { .. })),
            "{refused:?}"
        );
    });
    assert_eq!(made(&result.unwrap()).1, 0);
}

/// A store that takes its time is no reason not to answer, nor to lose the lane.
#[tokio::test(start_paused = true)]
async fn the_session_is_served_and_kept_while_the_group_is_stored() {
    let store = FailingStore::new();
    let world = World::among(store.clone(), &three());
    let (session, _seen) = world.session(ROOM).await;
    store.commit_takes.store(65, Ordering::SeqCst);
    let began = Instant::now();
    let (result, ()) = tokio::join!(evaluate(&session, &["a", "b"], Pick::First), async {
        sleep(Duration::from_secs(30)).await;
        session.set_mode(Mode::Plan).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    });
    assert!(matches!(result.unwrap().outcome, Outcome::Finished(_)));
    assert!(began.elapsed() >= Duration::from_secs(65));
    // After 10, 20, and so on to 60 seconds.
    assert_eq!(store.renewed.load(Ordering::SeqCst), 6);
}

/// All is stored when it is shown, so whoever does not read gets it later, and holds up nobody.
// proves: LASH-85
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_left_behind_after_a_cancel() {
    let world = world(&three());
    let (session, mut seen) = world.session(3).await;
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let run = cancelled_by(&session, &["a", "b"], Pick::First, cancel.clone());
    let (result, ()) = tokio::join!(run, async {
        sleep(Duration::from_secs(60)).await;
        assert!(session.is_busy());
        session.set_mode(Mode::Plan).await.unwrap();
        cancel.cancel();
    });
    assert_eq!(made(&result.unwrap()).1, 0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(62), "{took:?}");
    assert_eq!(drain(&mut seen).len(), 3);
    let reader = tokio::spawn(async move { while seen.recv().await.is_some() {} });
    say(&session, "next").result().await.unwrap();
    assert_eq!(world.puppet.request(0), ["which?", "from a", "next"]);
    drop(session);
    reader.await.unwrap();
}

// proves: LOOP-70
#[tokio::test(start_paused = true)]
async fn more_candidates_than_there_may_be_are_refused() {
    let world = world(&three());
    let (session, _seen) = world.session(ROOM).await;
    let start = |count| {
        let input = vec![Content::text("which?")];
        let candidates = tried(&vec!["a"; count]);
        session.evaluate(input, candidates, Pick::First, PromptOptions::default())
    };
    assert_eq!(CANDIDATES, 8);
    let refused = start(9).err().unwrap();
    assert_eq!(refused, StartError::Candidates(9));
    assert_eq!(
        refused.to_string(),
        "9 candidates are too many for one prompt; name at most 8"
    );
    let result = start(8).unwrap().result().await.unwrap();
    assert_eq!(result.loops.len(), 8);
}
