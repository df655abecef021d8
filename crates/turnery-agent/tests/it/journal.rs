//! Tests that overlapping or failing journal writes leave no gap in the journal of a loop.

use crate::{
    failing_store::{ALWAYS, FailingStore},
    fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, hook_set, start_text, yield_while},
    recovery::expiring_store,
};
use futures_util::future::BoxFuture;
use std::{
    future::{pending, ready},
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::Notify;
use turnery_agent::{CancellationToken, HookCx, Hooks, PromptOptions};
use turnery_engine::{
    Content, Event, EventKind, HookRequest, HookSet, HookVerdict, LoopRecord, LoopStatus,
};
use turnery_store::Owner;

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
