//! Tests of bad input from every side: each has a typed error or a bounded effect, and the session continues.

use crate::{
    failing_store::FailingStore,
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, finished, hook_set, live_events,
        run_text, with_hooks,
    },
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
    ActivitySink, Client, ContinueError, HookCx, Hooks, OpenError, PermissionAnswer,
    PermissionRequest, PromptActivity, PromptError, PromptOptions, PromptSinks, Session,
};
use turnery_engine::{
    CommitError, Content, EventKind, HookRequest, HookSet, HookVerdict, LoopId, Outcome, PlanEntry,
    PlanPriority, PlanStatus, ToolEnvelope, ToolSpec, TurnStop,
};
use turnery_store::{
    ImportError, MemoryStore, StoreError,
    export::{SessionDocument, export_session, import_session},
};
use turnery_tools::{Progress, Tool, ToolCx};

/// Checks that the next prompt works.
async fn assert_session_works(world: &EmbeddingFixture, session: &Session) {
    world.model.answer_next(&[ModelAct::Say("all is well")]);
    let result = run_text(session, "how are you?").await;
    assert_eq!(result.outcome, finished("all is well"));
}

/// Hooks that never answer.
struct NeverAnsweringHooks(HookSet);

impl Hooks for NeverAnsweringHooks {
    fn name(&self) -> &str {
        "mute"
    }

    fn hook_set(&self) -> HookSet {
        self.0
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, _: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
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
async fn hanging_hook_times_out_everywhere() {
    let none = HookSet::default();
    let stopped = Outcome::Stopped(TurnStop::PluginAbort {
        reason: "the hook mute did not answer within 60s".to_owned(),
    });
    let cases = [
        // Only the end of the loop is text.
        (none, finished("done"), 0),
        (hook_set!(before_turn), stopped.clone(), 0),
        (hook_set!(after_turn), finished("done"), 1),
        (hook_set!(before_tool), finished("done"), 0),
        (hook_set!(after_tool), finished("done"), 1),
    ];
    for (set, outcome, ran) in cases {
        let world =
            EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("done")]]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let options = with_hooks(Arc::new(NeverAnsweringHooks(set)));
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
        assert_session_works(&world, &session).await;
    }
}

/// Hooks whose `set` panics and that reject everything.
struct PanickingHookSet;

impl Hooks for PanickingHookSet {
    fn hook_set(&self) -> HookSet {
        panic!("what do I want?")
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        let verdict = match hook {
            HookRequest::BeforeTool(_) => HookVerdict::Stop("no tools".to_owned()),
            _ => HookVerdict::Continue,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(start_paused = true)]
async fn hook_with_panicking_set_is_asked_everything() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("well")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let options = with_hooks(Arc::new(PanickingHookSet));
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    ticket.result().await.unwrap();
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(world.model.request(1)[2], "no tools");
    assert_session_works(&world, &session).await;
}

// proves: TURN-48, ACP-39, C-5, R1
#[tokio::test(start_paused = true)]
async fn panicking_tool_is_a_failed_call() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("p", "panic")],
        &[ModelAct::Say("never mind")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "break").await;
    assert_eq!(result.outcome, finished("never mind"));
    assert!(result.executions()[0].envelope.result.is_err());
    let request = world.model.request(1);
    assert!(request[2].contains("panicked"), "{request:?}");
    assert_session_works(&world, &session).await;
}

const MIB: usize = 1024 * 1024;

/// Tool that prints a gigabyte while running, or returns a large result.
struct FloodTool(ToolSpec);

impl Tool for FloodTool {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn run<'a>(&'a self, _: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            for _ in 0..1024 {
                let _ = cx
                    .progress
                    .send(Progress::Output("ä".repeat(MIB / 2)))
                    .await;
            }
            let plan = vec![PlanEntry {
                content: "a".repeat(17 * MIB),
                priority: PlanPriority::Medium,
                status: PlanStatus::Pending,
            }];
            let _ = cx.progress.send(Progress::Plan(plan)).await;
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
async fn gigabyte_of_tool_output_is_truncated() {
    let spec = ToolSpec::new("flood", "", json!({"type": "object", "properties": {}}));
    let world = EmbeddingFixture::build(
        Arc::new(MemoryStore::new()),
        &[&[ModelAct::Call("f", "flood")], &[ModelAct::Say("so much")]],
        &[],
        |settings| {
            settings.keep_streaming = true;
            settings.compact_at = 0;
        },
        |tools| tools.with_tool(FloodTool(spec)),
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "print").await;
    assert_eq!(result.outcome, finished("so much"));
    let printed: Vec<String> = live_events(&drain(&mut seen))
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolExecutionOutput { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    let shown: usize = printed.iter().map(String::len).sum();
    assert!((4 * MIB..=4 * MIB + 200).contains(&shown), "{shown}");
    assert!(printed.last().unwrap().contains("the rest is left out"));
    // The model's message and the record, including events with fragments.
    let text = &world.model.request(1)[2];
    assert!(text.starts_with("first"));
    assert!(text.contains("bytes are left out"));
    assert!(text.contains("the last line"));
    assert!(text.contains("1 reports (17825847 bytes), 1 texts (4 bytes)"));
    assert!(text.len() <= MIB / 4 + 200, "{}", text.len());
    let record = serde_json::to_string(&*result.loops[0]).unwrap();
    assert!(record.len() < 7 * MIB, "{}", record.len());
    assert_session_works(&world, &session).await;
}

/// Sink that takes one activity and never returns.
#[derive(Default)]
struct StuckSink(Mutex<usize>);

impl ActivitySink for StuckSink {
    fn emit(&self, _: PromptActivity) -> BoxFuture<'_, ()> {
        *self.0.lock().unwrap() += 1;
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn stuck_sink_is_abandoned_after_cancel() {
    let world =
        EmbeddingFixture::new(&[&[ModelAct::Say("one"), ModelAct::Say("two"), ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let sink = Arc::new(StuckSink::default());
    let (sinks, log) = PromptSinks::new(Some(sink.clone()));
    let input = vec![Content::text("hello")];
    let options = PromptOptions {
        sinks,
        ..PromptOptions::default()
    };
    let prompt = session.prompt(input, options);
    let prompt = tokio::spawn(prompt.unwrap().result());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!prompt.is_finished());
    let begun = Instant::now();
    session.cancel_prompts();
    let result = prompt.await.unwrap().unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert!(begun.elapsed() <= Duration::from_secs(5));
    assert_eq!(*sink.0.lock().unwrap(), 1);
    // Nothing is lost: the log has what the sink did not take.
    assert!(log.take().len() > 1);
    assert_session_works(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn truncated_call_arguments_fail_the_call() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::TruncatedCall("h", "look")],
        &[ModelAct::Say("sorry")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "look").await;
    assert_eq!(result.outcome, finished("sorry"));
    assert!(world.ran.lock().unwrap().is_empty());
    assert!(result.executions()[0].envelope.result.is_err());
    assert_session_works(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn truncated_response_ends_only_the_prompt() {
    let world = EmbeddingFixture::new(&[&[
        ModelAct::Say("so f"),
        ModelAct::TruncatedCall("h", "look"),
        ModelAct::Fail,
    ]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "look").await;
    assert!(matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::ProviderError(_))
    ));
    assert!(world.ran.lock().unwrap().is_empty());
    assert_session_works(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_record_is_an_error() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &[&[ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    // As the store says of a database or a record of a newer version.
    let broken = StoreError::Broken("the disk is full".to_owned());
    store.fail_loops.store(true, Ordering::SeqCst);
    let (ports, _shown) = world.ports(LARGE_CAPACITY);
    let opened = world
        .agent
        .open(session.id(), world.request(), true, |_| ports)
        .await;
    assert_eq!(opened.err(), Some(OpenError::Store(broken.clone())));
    store.fail_loops.store(true, Ordering::SeqCst);
    let ticket = session.rerun(None, PromptOptions::default()).unwrap();
    let lost = CommitError::Store(broken.to_string());
    assert_eq!(ticket.result().await, Err(PromptError::Lost(lost)));
    assert_session_works(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn newer_document_version_is_rejected() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    let document = export_session(&*world.store, session.id()).await.unwrap();
    let mut newer = serde_json::to_value(&document).unwrap();
    newer["format"] = json!(2);
    let refused = SessionDocument::parse(&newer.to_string());
    assert!(matches!(
        refused,
        Err(ImportError::UnsupportedFormat { found: 2 })
    ));
    // The same form with an event that nobody knows yet.
    let mut unknown = serde_json::to_value(&document).unwrap();
    unknown["loops"][0]["events"][0]["event"] = json!("teleported");
    let refused = SessionDocument::parse(&unknown.to_string());
    assert!(
        matches!(refused, Err(ImportError::InvalidJson(_))),
        "{refused:?}"
    );
    // An existing session is not overwritten.
    assert!(import_session(&*world.store, document).await.is_err());
    assert_session_works(&world, &session).await;
}

#[tokio::test(start_paused = true)]
async fn branch_from_unknown_loop_is_rejected() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    drain(&mut seen);
    for stray in ["", "other.puppet-one.1", "\u{0}\u{fffd}"] {
        let stray = LoopId::from(stray);
        let input = vec![Content::text("x")];
        let branch = session.branch(stray.clone(), input, PromptOptions::default());
        let refused = PromptError::Continue(ContinueError::NoSuchLoop(stray));
        assert_eq!(branch.unwrap().result().await, Err(refused));
    }
    assert!(drain(&mut seen).is_empty());
    let head = world.head(&session).await;
    assert_eq!(head, 1);
    assert_session_works(&world, &session).await;
}

/// Client that panics when asked, at once or a little later.
struct PanickingClient {
    panics_before_future: bool,
}

impl Client for PanickingClient {
    fn request_permission(&self, _: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        assert!(!self.panics_before_future, "fragile at once");
        Box::pin(async { panic!("fragile") })
    }
}

#[tokio::test(start_paused = true)]
async fn client_panic_denies_the_call() {
    for panics_before_future in [false, true] {
        let world =
            EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")], &[ModelAct::Say("pity")]]);
        let (mut ports, _shown) = world.ports(LARGE_CAPACITY);
        ports.client = Arc::new(PanickingClient {
            panics_before_future,
        });
        let session = world.agent.create(world.request(), |_| ports).await;
        let session = session.unwrap();
        let result = run_text(&session, "ring").await;
        assert_eq!(result.outcome, finished("pity"));
        assert!(world.ran.lock().unwrap().is_empty());
        assert_session_works(&world, &session).await;
    }
}
