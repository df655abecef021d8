//! Bad input from every side: each has a typed error or a bounded effect, and the session goes on.

use crate::{
    failing_store::FailingStore,
    world::{Act, ROOM, Seen, World, drain, live, say},
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    future::pending,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;
use turnery_agent::{
    ActivitySink, Answer, Ask, Client, ContinueError, HookCx, Hooks, OpenError, Ports, PromptError,
    PromptOptions, Session, TurnActivity, TurnInput,
};
use turnery_engine::{
    CallDetail, CommitFault, Content, EventKind, Hook, HookSet, HookVerdict, LoopId, Outcome,
    PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, ToolFailure, ToolSpec, TurnFinish, TurnStop,
};
use turnery_store::{
    ImportError, MemoryStore, StoreError,
    export::{Document, export, import},
};
use turnery_tools::{Access, LocalFiles, Prepared, Progress, Tool, ToolCx, Workspace};

fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() })
}

/// The next prompt works: the session has come to no harm.
async fn goes_on(world: &World, session: &Session) {
    world.puppet.say_next(&[Act::Say("all is well")]);
    let result = say(session, "how are you?").result().await.unwrap();
    assert_eq!(result.outcome, finished("all is well"));
}

/// Never answers what it is asked.
struct Mute(HookSet);

impl Hooks for Mute {
    fn name(&self) -> &str {
        "mute"
    }

    fn set(&self) -> HookSet {
        self.0
    }

    fn ask<'a>(&'a self, _: &'a HookCx, _: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        Box::pin(pending())
    }

    fn after_loop<'a>(
        &'a self,
        _: &'a HookCx,
        _: &'a turnery_engine::LoopRecord,
    ) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_anywhere_is_waited_for_only_so_long() {
    let none = HookSet::default();
    let stopped = Outcome::Stopped(TurnStop::PluginAbort);
    let cases = [
        // Only the end of the loop is told.
        (none, finished("done"), 0),
        (
            HookSet {
                before_turn: true,
                ..none
            },
            stopped.clone(),
            0,
        ),
        (
            HookSet {
                after_turn: true,
                ..none
            },
            finished("done"),
            1,
        ),
        (
            HookSet {
                before_tool: true,
                ..none
            },
            finished("done"),
            0,
        ),
        (
            HookSet {
                after_tool: true,
                ..none
            },
            finished("done"),
            1,
        ),
    ];
    for (set, outcome, ran) in cases {
        let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("done")]]);
        let (session, _seen) = world.session(ROOM).await;
        let options = PromptOptions {
            hooks: vec![Arc::new(Mute(set))],
            ..PromptOptions::default()
        };
        let begun = Instant::now();
        let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
        let result = ticket.result().await.unwrap();
        assert_eq!(result.outcome, outcome, "{set:?}");
        // One question before or after each of two turns at most, and the end of the loop.
        assert!(begun.elapsed() <= Duration::from_secs(180), "{set:?}");
        if ran == 1 {
            assert_eq!(*world.ran.lock().unwrap(), ["look"]);
            assert!(result.issues().all(|it| it.contains("mute did not answer")));
        }
        goes_on(&world, &session).await;
    }
}

/// Cannot even say what it wants to be asked, but says no to everything.
struct Confused;

impl Hooks for Confused {
    fn set(&self) -> HookSet {
        panic!("what do I want?")
    }

    fn ask<'a>(&'a self, _: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        let verdict = match hook {
            Hook::BeforeTool(_) => HookVerdict::Stop("no tools".to_owned()),
            _ => HookVerdict::Go,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_breaks_when_asked_what_it_wants_is_asked_everything() {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("well")]]);
    let (session, _seen) = world.session(ROOM).await;
    let options = PromptOptions {
        hooks: vec![Arc::new(Confused)],
        ..PromptOptions::default()
    };
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    ticket.result().await.unwrap();
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(world.puppet.request(1)[2], "no tools");
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_a_failed_call() {
    let world = World::new(&[&[Act::Call("p", "panic")], &[Act::Say("never mind")]]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "break").result().await.unwrap();
    assert_eq!(result.outcome, finished("never mind"));
    assert!(result.executions()[0].envelope.result.is_err());
    goes_on(&world, &session).await;
}

const MIB: usize = 1024 * 1024;

/// Prints a gigabyte while it runs, or answers with a lot at once.
struct Flood(ToolSpec);

impl Tool for Flood {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn describe(&self, _: &Value, _: &Workspace) -> CallDetail {
        CallDetail::default()
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Value,
        _: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let prepared = Prepared {
            access: Access::Nothing,
            detail: CallDetail::default(),
        };
        Box::pin(std::future::ready(Ok(prepared)))
    }

    fn run<'a>(&'a self, _: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            for _ in 0..1024 {
                let _ = cx
                    .progress
                    .send(Progress::Printed("ä".repeat(MIB / 2)))
                    .await;
            }
            let plan = vec![PlanEntry {
                content: "a".repeat(17 * MIB),
                priority: PlanPriority::Medium,
                status: PlanStatus::Pending,
            }];
            let _ = cx.progress.send(Progress::Planned(plan)).await;
            let mut answer = "ä".repeat(16 * MIB);
            answer.push_str("the last line");
            ToolEnvelope {
                value: Some("ä".repeat(16 * MIB).into()),
                ..ToolEnvelope::ok(vec![
                    Content::text("first"),
                    Content::text(answer),
                    Content::text("more"),
                ])
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_gives_a_gigabyte_is_cut_and_said_to_be() {
    let spec = ToolSpec::new("flood", "", json!({"type": "object", "properties": {}}));
    let world = World::made(
        Arc::new(MemoryStore::new()),
        &[&[Act::Call("f", "flood")], &[Act::Say("so much")]],
        &[],
        |settings| {
            settings.keep_streaming = true;
            settings.compact_at = 0;
        },
        |tools| tools.and(Flood(spec)),
    );
    let (session, mut seen) = world.session(ROOM).await;
    let result = say(&session, "print").result().await.unwrap();
    assert_eq!(result.outcome, finished("so much"));
    let printed: Vec<String> = live(&drain(&mut seen))
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolExecutionOutput { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    let shown: usize = printed.iter().map(String::len).sum();
    assert!((4 * MIB..=4 * MIB + 200).contains(&shown), "{shown}");
    assert!(printed.last().unwrap().contains("the rest is left out"));
    // What the model is told, and the record, events with fragments and all.
    let told = &world.puppet.request(1)[2];
    assert!(told.starts_with("first"));
    assert!(told.contains("bytes are left out"));
    assert!(told.contains("the last line"));
    assert!(told.contains("1 reports (17825847 bytes), 1 texts (4 bytes)"));
    assert!(told.len() <= MIB / 4 + 200, "{}", told.len());
    let record = serde_json::to_string(&*result.loops[0]).unwrap();
    assert!(record.len() < 7 * MIB, "{}", record.len());
    goes_on(&world, &session).await;
}

/// Takes one activity, and never comes back from it.
#[derive(Default)]
struct Stuck(Mutex<usize>);

impl ActivitySink for Stuck {
    fn emit(&self, _: TurnActivity) -> BoxFuture<'_, ()> {
        *self.0.lock().unwrap() += 1;
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_comes_back_is_left_behind_after_a_cancel() {
    let world = World::new(&[&[Act::Say("one"), Act::Say("two"), Act::Hang]]);
    let (session, _seen) = world.session(ROOM).await;
    let sink = Arc::new(Stuck::default());
    let turn = session.turn(TurnInput::text("hello"));
    let prompt = tokio::spawn(turn.stream_to(sink.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!prompt.is_finished());
    let begun = Instant::now();
    session.cancel_running_turns();
    let output = prompt.await.unwrap().unwrap();
    assert_eq!(output.result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert!(begun.elapsed() <= Duration::from_secs(5));
    assert_eq!(*sink.0.lock().unwrap(), 1);
    // Nothing is lost: the output has what the sink did not take.
    assert!(output.activities.len() > 1);
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn half_a_json_from_a_provider_is_a_failed_call() {
    let world = World::new(&[&[Act::Half("h", "look")], &[Act::Say("sorry")]]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "look").result().await.unwrap();
    assert_eq!(result.outcome, finished("sorry"));
    assert!(world.ran.lock().unwrap().is_empty());
    assert!(result.executions()[0].envelope.result.is_err());
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_ends_the_prompt_only() {
    let world = World::new(&[&[Act::Say("so f"), Act::Half("h", "look"), Act::Fail]]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "look").result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::ProviderError));
    assert!(world.ran.lock().unwrap().is_empty());
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_an_error_and_no_more() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &[&[Act::Say("hello")]]);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "hi").result().await.unwrap();
    // As the store says of a database or a record of a newer version.
    let broken = StoreError::Broken("the disk is full".to_owned());
    store.loops.store(true, Ordering::SeqCst);
    let person = world.person.clone();
    let (tray, _shown) = world.tray(ROOM);
    let ports = Ports {
        client: person,
        outbox: tray,
        files: Arc::new(LocalFiles),
        terminals: None,
    };
    let opened = world
        .agent
        .open(session.id(), world.request(), true, |_| ports)
        .await;
    assert_eq!(opened.err(), Some(OpenError::Store(broken.clone())));
    store.loops.store(true, Ordering::SeqCst);
    let ticket = session.rerun(None, PromptOptions::default()).unwrap();
    let lost = CommitFault::Store(broken.to_string());
    assert_eq!(ticket.result().await, Err(PromptError::Lost(lost)));
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_document_of_a_newer_version_is_refused_and_touches_nothing() {
    let world = World::new(&[&[Act::Say("hello")]]);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "hi").result().await.unwrap();
    let document = export(&*world.store, session.id()).await.unwrap();
    let mut newer = serde_json::to_value(&document).unwrap();
    newer["format"] = json!(2);
    let refused = Document::parse(&newer.to_string());
    assert!(matches!(refused, Err(ImportError::Format { found: 2 })));
    // The same form with an event that nobody knows yet.
    let mut unknown = serde_json::to_value(&document).unwrap();
    unknown["loops"][0]["events"][0]["event"] = json!("teleported");
    let refused = Document::parse(&unknown.to_string());
    assert!(matches!(refused, Err(ImportError::Form(_))), "{refused:?}");
    // And what is there already is not written over.
    assert!(import(&*world.store, document).await.is_err());
    goes_on(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_from_a_loop_that_does_not_exist_is_refused() {
    let world = World::new(&[&[Act::Say("hello")]]);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "hi").result().await.unwrap();
    drain(&mut seen);
    for stray in ["", "other.puppet-one.1", "\u{0}\u{fffd}"] {
        let stray = LoopId::from(stray);
        let input = vec![Content::text("x")];
        let branch = session.branch(stray.clone(), input, PromptOptions::default());
        let refused = PromptError::Continue(ContinueError::NoSuchLoop(stray));
        assert_eq!(branch.unwrap().result().await, Err(refused));
    }
    assert!(drain(&mut seen).is_empty());
    let head = world.store.info(session.id()).await.unwrap().head_version;
    assert_eq!(head, 1);
    goes_on(&world, &session).await;
}

/// Breaks when it is asked, at once or a little later.
struct Fragile {
    at_once: bool,
}

impl Client for Fragile {
    fn ask(&self, _: Ask) -> BoxFuture<'_, Answer> {
        assert!(!self.at_once, "fragile at once");
        Box::pin(async { panic!("fragile") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_breaks_when_it_is_asked_is_a_no() {
    for at_once in [false, true] {
        let world = World::new(&[&[Act::Call("r", "ring")], &[Act::Say("pity")]]);
        let (tray, _shown): (_, tokio::sync::mpsc::Receiver<Seen>) = world.tray(ROOM);
        let ports = Ports {
            client: Arc::new(Fragile { at_once }),
            outbox: tray,
            files: Arc::new(LocalFiles),
            terminals: None,
        };
        let session = world.agent.create(world.request(), |_| ports).await;
        let session = session.unwrap();
        let result = say(&session, "ring").result().await.unwrap();
        assert_eq!(result.outcome, finished("pity"));
        assert!(world.ran.lock().unwrap().is_empty());
        goes_on(&world, &session).await;
    }
}
