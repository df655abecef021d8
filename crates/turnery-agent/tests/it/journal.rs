//! Tests that overlapping or failing journal writes leave no gap in the journal of a loop.

use crate::{
    failing_store::{ALWAYS, FailingStore},
    fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, hook_set, start_text, yield_while},
    recovery::expiring_store,
};
use futures_util::future::BoxFuture;
use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use tokio::sync::Notify;
use turnery_agent::{CancellationToken, HookCx, Hooks, PromptError, PromptOptions};
use turnery_engine::{
    CommitError, Content, Event, EventKind, HookRequest, HookSet, HookVerdict, LoopRecord,
    LoopStatus,
};
use turnery_store::{Owner, Store};

/// Hook that cancels the prompt before its first call begins, and hangs after that call.
struct CancelBeforeTool {
    store: Arc<FailingStore>,
    /// Journal writes that fail from the first call on.
    failures: u64,
    cancel: CancellationToken,
    after_tool: Notify,
}

impl Hooks for CancelBeforeTool {
    fn hook_set(&self) -> HookSet {
        hook_set!(before_tool, after_tool)
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        if matches!(hook, HookRequest::BeforeTool(_)) {
            self.store
                .failing_journal_writes
                .store(self.failures, Ordering::SeqCst);
            self.cancel.cancel();
            return Box::pin(ready(HookVerdict::Continue));
        }
        self.after_tool.notify_one();
        Box::pin(pending())
    }
}

/// Cancels a prompt with two waiting calls as the first of them is cleared, and takes the session over
/// while the loop waits for a hook. Returns the recovered loop.
async fn taken_over_after_cancel(failures: u64) -> LoopRecord {
    let (inner, later) = expiring_store();
    let store = FailingStore::over(inner);
    let calls: &[ModelAct] = &[
        ModelAct::Say("on it"),
        ModelAct::Call("a", "look"),
        ModelAct::Call("b", "look"),
    ];
    let world = EmbeddingFixture::with_store(store.clone(), &[calls]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let hooks = Arc::new(CancelBeforeTool {
        store,
        failures,
        cancel: CancellationToken::new(),
        after_tool: Notify::new(),
    });
    let options = PromptOptions {
        hooks: vec![hooks.clone()],
        cancel: hooks.cancel.clone(),
        ..PromptOptions::default()
    };
    let ticket = session.prompt(vec![Content::text("go")], options).unwrap();
    hooks.after_tool.notified().await;
    later.store(120, Ordering::SeqCst);
    let owner = Owner::for_this_process();
    world.store.claim(session.id(), &owner).await.unwrap();
    let loops = world.loops(session.id()).await;
    ticket.result().await.unwrap_err();
    assert_eq!(loops.len(), 1);
    LoopRecord::clone(&loops[0])
}

fn assert_complete(record: &LoopRecord) {
    assert_eq!(
        (record.status, record.on_chain),
        (LoopStatus::Aborted, true)
    );
    let has = |fits: fn(&Event) -> bool| record.events.iter().any(fits);
    assert!(has(|event| matches!(&event.kind,
        EventKind::ToolExecutionStart { call_id, runs: true, .. } if call_id.as_str() == "a")));
    assert!(has(|event| matches!(&event.kind,
        EventKind::ToolExecutionEnd { call_id, envelope, .. }
            if call_id.as_str() == "a" && envelope.to_model_text().contains("before it began"))));
}

// proves: S5
#[tokio::test(start_paused = true)]
pub(crate) async fn cancel_during_journal_write_leaves_no_hole() {
    assert_complete(&taken_over_after_cancel(0).await);
}

// proves: S5
#[tokio::test(start_paused = true)]
async fn failed_journal_write_restarts_from_first_event() {
    assert_complete(&taken_over_after_cancel(1).await);
}

/// Hook that takes the session over, as another process would, before the first call begins.
struct TakeOverBeforeTool {
    store: Arc<dyn Store>,
    /// Seconds by which the store's clock is ahead.
    later: Arc<AtomicI64>,
}

impl Hooks for TakeOverBeforeTool {
    fn hook_set(&self) -> HookSet {
        hook_set!(before_tool)
    }

    fn ask_hook<'a>(&'a self, cx: &'a HookCx, _: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        self.later.store(120, Ordering::SeqCst);
        Box::pin(async {
            let owner = Owner::for_this_process();
            self.store.claim(&cx.session_id, &owner).await.unwrap();
            HookVerdict::Continue
        })
    }
}

/// No time passes: the journal alone tells that the lane is lost.
// proves: S5, C-12
#[tokio::test(start_paused = true)]
pub(crate) async fn tool_does_not_run_once_the_lane_is_lost() {
    let (store, later) = expiring_store();
    let call: &[ModelAct] = &[ModelAct::Call("a", "look")];
    let end: &[ModelAct] = &[ModelAct::Say("done")];
    let world = EmbeddingFixture::with_store(store.clone(), &[call, end]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let options = PromptOptions {
        hooks: vec![Arc::new(TakeOverBeforeTool { store, later })],
        ..PromptOptions::default()
    };
    let ticket = session.prompt(vec![Content::text("go")], options).unwrap();
    let lost = Err(PromptError::Lost(CommitError::LaneLost));
    assert_eq!(ticket.result().await, lost);
    assert_eq!(*world.ran.lock().unwrap(), [""; 0]);
}

/// The end of the answer is in no journal when the commit begins: no time passes here.
// proves: S5
#[tokio::test(start_paused = true)]
async fn crash_between_commit_attempts_keeps_answer() {
    let (inner, later) = expiring_store();
    let store = FailingStore::over(inner);
    let world = EmbeddingFixture::with_store(store.clone(), &[&[ModelAct::Say("one")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    let ticket = start_text(&session, "go");
    yield_while(|| store.failed_commits.load(Ordering::SeqCst) == 0).await;
    later.store(120, Ordering::SeqCst);
    let owner = Owner::for_this_process();
    world.store.claim(session.id(), &owner).await.unwrap();
    assert_eq!(store.failed_commits.load(Ordering::SeqCst), 1);
    let loops = world.loops(session.id()).await;
    let messages = loops[0].messages.iter();
    let texts: Vec<_> = messages.map(|it| it.message.text()).collect();
    assert_eq!(texts[..2], ["go", "one"]);
    assert!(loops[0].on_chain);
    ticket.result().await.unwrap_err();
}
