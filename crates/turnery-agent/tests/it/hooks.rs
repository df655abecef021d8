//! Tests of the hooks of a session and of one prompt: their requests and the effect of a rejection.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, hook_set, live_events, run_text, with_hooks,
};
use futures_util::future::BoxFuture;
use std::{
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use turnery_agent::{CancellationToken, HookCx, Hooks, PromptOptions, PromptResult, Session};
use turnery_engine::{
    Content, Disposition, EventKind, HookRequest, HookSet, HookVerdict, LoopRecord, Outcome,
    TurnStop,
};

/// What a hook does before a loop.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum BeforeLoopBehavior {
    Allows,
    Refuses,
    Hangs,
    Panics,
}

/// Hooks that record their requests and give scripted verdicts.
pub(crate) struct RecordingHooks {
    before: BeforeLoopBehavior,
    set: HookSet,
    answer: fn(&HookRequest) -> HookVerdict,
    log: Mutex<Vec<String>>,
    asked: Notify,
}

impl RecordingHooks {
    pub(crate) fn new(before: BeforeLoopBehavior) -> Self {
        Self {
            before,
            set: HookSet::default(),
            answer: |_| HookVerdict::Continue,
            log: Mutex::default(),
            asked: Notify::new(),
        }
    }

    pub(crate) fn with_answer(set: HookSet, answer: fn(&HookRequest) -> HookVerdict) -> Arc<Self> {
        Arc::new(Self {
            set,
            answer,
            ..Self::new(BeforeLoopBehavior::Allows)
        })
    }

    fn write(&self, line: String) {
        self.log.lock().unwrap().push(line);
        self.asked.notify_one();
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Hooks for RecordingHooks {
    fn name(&self) -> &str {
        "clerk"
    }

    fn hook_set(&self) -> HookSet {
        self.set
    }

    fn ask_hook<'a>(&'a self, cx: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        let texts = || {
            let texts = cx.messages.iter().map(|it| it.message.text());
            texts.collect::<Vec<_>>().join("|")
        };
        let line = match hook {
            HookRequest::BeforeTurn { turn_index } => {
                format!("before turn {turn_index}: {}", texts())
            }
            HookRequest::AfterTurn { turn_index, usage } => {
                let tokens = usage.map(|usage| usage.total());
                format!("after turn {turn_index}, {tokens:?} tokens: {}", texts())
            }
            HookRequest::BeforeTool(call) => format!("before {}", call.name),
            HookRequest::AfterTool { tool_name, .. } => format!("after {tool_name}"),
            other => format!("{other:?}"),
        };
        self.write(line);
        Box::pin(ready((self.answer)(hook)))
    }

    fn before_loop<'a>(
        &'a self,
        _: &'a HookCx,
        input: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        self.write(format!("before loop: {:?}", input[0].as_text().unwrap()));
        match self.before {
            BeforeLoopBehavior::Allows => Box::pin(ready(Ok(()))),
            BeforeLoopBehavior::Refuses => Box::pin(ready(Err("not today".to_owned()))),
            BeforeLoopBehavior::Hangs => Box::pin(pending()),
            BeforeLoopBehavior::Panics => panic!("clerk"),
        }
    }

    fn after_loop<'a>(&'a self, _: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        let (messages, tokens) = (record.messages.len(), record.usage.total());
        self.write(format!("after loop: {messages} messages, {tokens} tokens"));
        Box::pin(ready(()))
    }
}

async fn run_with_hooks(session: &Session, hooks: Arc<RecordingHooks>) -> PromptResult {
    let options = with_hooks(hooks);
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    ticket.result().await.unwrap()
}

// proves: LOOP-55, UP-9, D-10, LASH-23
#[tokio::test(start_paused = true)]
pub(crate) async fn stop_before_loop_leaves_no_event_or_record() {
    for (before, reason) in [
        (BeforeLoopBehavior::Refuses, "not today"),
        (
            BeforeLoopBehavior::Hangs,
            "the hook clerk did not answer within 60s",
        ),
        (BeforeLoopBehavior::Panics, "the hook clerk panicked"),
    ] {
        let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        let result = run_with_hooks(&session, Arc::new(RecordingHooks::new(before))).await;
        let reason = reason.to_owned();
        let stop = TurnStop::PluginAbort { reason };
        assert_eq!(result.outcome, Outcome::Stopped(stop));
        assert_eq!(result.loops, []);
        assert!(drain(&mut seen).is_empty());
        assert_eq!(world.head(&session).await, 0);
        // The lane is free, and the prompt is not in the next context.
        run_text(&session, "again").await;
        assert_eq!(world.model.request(0), ["again"]);
    }
}

// proves: LOOP-56, LOOP-57, LOOP-59
#[tokio::test(start_paused = true)]
async fn after_loop_hook_sees_committed_record() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("hello"), ModelAct::Spend(7, 2)],
        &[ModelAct::Say("x")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let clerk = Arc::new(RecordingHooks::new(BeforeLoopBehavior::Allows));
    run_with_hooks(&session, clerk.clone()).await;
    let expected = ["before loop: \"hi\"", "after loop: 2 messages, 9 tokens"];
    assert_eq!(clerk.log(), expected);
    // The hooks of one prompt are not asked in the next.
    run_text(&session, "again").await;
    assert_eq!(clerk.log(), expected);
}

/// Hook that runs after a loop until it is released.
#[derive(Default)]
pub(crate) struct HeldHook {
    pub(crate) begun: Notify,
    pub(crate) released: Notify,
}

impl Hooks for HeldHook {
    fn after_loop<'a>(&'a self, _: &'a HookCx, _: &'a LoopRecord) -> BoxFuture<'a, ()> {
        Box::pin(async {
            self.begun.notify_one();
            self.released.notified().await;
        })
    }
}

/// When the hook runs, the loop's end has been published and its record is stored.
// proves: LOOP-56
#[tokio::test(start_paused = true)]
async fn after_loop_hook_runs_after_the_end_is_published() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let hook = Arc::new(HeldHook::default());
    let options = with_hooks(hook.clone());
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    hook.begun.notified().await;
    let last = live_events(&drain(&mut seen)).pop().expect("an event").kind;
    assert!(matches!(last, EventKind::LoopEnd { .. }), "{last:?}");
    assert_eq!(world.head(&session).await, 1);
    hook.released.notify_one();
    ticket.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cancel_drops_pending_hook_and_is_recorded() {
    let world = EmbeddingFixture::new(&[]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let clerk = Arc::new(RecordingHooks::new(BeforeLoopBehavior::Hangs));
    let cancel = CancellationToken::new();
    let options = PromptOptions {
        hooks: vec![clerk.clone()],
        ..PromptOptions::cancelled_by(cancel.clone())
    };
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    clerk.asked.notified().await;
    let asked = Instant::now();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.loops.len(), 1);
}

// proves: TURN-23, TURN-25, TURN-27
#[tokio::test(start_paused = true)]
async fn hooks_see_model_messages_around_turns_and_tools() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("1")],
        &[
            ModelAct::Say("2"),
            ModelAct::Call("c", "look"),
            ModelAct::Spend(7, 2),
        ],
        &[ModelAct::Say("3")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "one").await;
    let set = hook_set!(before_turn, after_turn, before_tool, after_tool);
    let clerk = RecordingHooks::with_answer(set, |_| HookVerdict::Continue);
    run_with_hooks(&session, clerk.clone()).await;
    assert_eq!(
        clerk.log()[1..],
        [
            "before turn 0: one|1",
            "before look",
            "after look",
            "after turn 0, Some(9) tokens: one|1|hi|2|done",
            "before turn 1: one|1|hi|2|done",
            "after turn 1, None tokens: one|1|hi|2|done|3",
            "after loop: 4 messages, 9 tokens",
        ]
    );
}

// proves: LOOP-58
#[tokio::test(start_paused = true)]
async fn on_error_hook_sees_model_error() {
    let error = "OnError { message: \"too much to do\" }";
    for (act, expected) in [
        (ModelAct::Fail, &[error][..]),
        (ModelAct::Say("hello"), &[]),
    ] {
        let world = EmbeddingFixture::new(&[&[act]]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let clerk = RecordingHooks::with_answer(hook_set!(on_error), |_| HookVerdict::Continue);
        run_with_hooks(&session, clerk.clone()).await;
        let log = clerk.log();
        assert_eq!(log[1..log.len() - 1], *expected);
        assert!(log.last().unwrap().starts_with("after loop"), "{log:?}");
    }
}

// proves: TURN-26, C-26, LASH-23
#[tokio::test(start_paused = true)]
async fn stop_before_turn_keeps_prompt_out_of_context() {
    let world =
        EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("second")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let set = hook_set!(before_turn);
    let clerk = RecordingHooks::with_answer(set, |hook| match hook {
        HookRequest::BeforeTurn { turn_index: 1 } => HookVerdict::Stop("enough".to_owned()),
        _ => HookVerdict::Continue,
    });
    let result = run_with_hooks(&session, clerk).await;
    let stop = TurnStop::PluginAbort {
        reason: "enough".to_owned(),
    };
    assert_eq!(result.outcome, Outcome::Stopped(stop));
    assert_eq!(result.loops[0].turns.len(), 1);
    let events = live_events(&drain(&mut seen));
    let turns = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::TurnStart { .. }));
    assert_eq!(turns.count(), 1);
    run_text(&session, "again").await;
    assert_eq!(world.model.request(1), ["again"]);
}

// proves: D-9
#[tokio::test(start_paused = true)]
async fn stop_before_tool_is_reported_to_model() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("well")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let set = hook_set!(before_tool);
    let clerk = RecordingHooks::with_answer(set, |_| HookVerdict::Stop("no looking".to_owned()));
    let result = run_with_hooks(&session, clerk).await;
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(result.executions()[0].disposition, Disposition::Skipped);
    assert_eq!(world.model.request(1), ["hi", "", "no looking"]);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn panicking_hook_stops_the_tool() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "look")], &[ModelAct::Say("well")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let set = hook_set!(before_tool);
    let clerk = RecordingHooks::with_answer(set, |_| panic!("clerk"));
    run_with_hooks(&session, clerk).await;
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(world.model.request(1)[2], "the hook clerk panicked");
}

#[tokio::test(start_paused = true)]
async fn panicking_after_hook_is_only_an_issue() {
    let world = EmbeddingFixture::with_settings(&[&[ModelAct::Say("hello")]], |settings| {
        let set = hook_set!(after_turn);
        let clerk = RecordingHooks::with_answer(set, |_| panic!("clerk"));
        settings.hooks.push(clerk);
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "hi").await;
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    let issues: Vec<&str> = result.issues().collect();
    assert_eq!(issues, ["the hook clerk panicked"]);
}
