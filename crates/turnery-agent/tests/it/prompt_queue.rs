//! Tests of the message id of a prompt, of withdrawing queued prompts, and of prompt ends pushed to an
//! outbox.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, live_events, run_text, start_text,
};
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::sync::Notify;
use turnery_agent::{
    CancellationToken, Outbox, OutboxItem, PromptError, PromptHandle, PromptOptions, Session,
};
use turnery_engine::{Content, EventKind, Message};

fn start_discardable(session: &Session, text: &str, cancel: CancellationToken) -> PromptHandle {
    let options = PromptOptions {
        discard_if_not_started: true,
        ..PromptOptions::cancelled_by(cancel)
    };
    session.prompt(vec![Content::text(text)], options).unwrap()
}

// proves: V2-4
/// The id arrives long before the prompt ends, and is that of the message shown.
#[tokio::test(start_paused = true)]
async fn handle_reports_inserted_message_id() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Hang]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let mut ticket = start_text(&session, "hi");
    let inserted = ticket.inserted().await.unwrap();
    session.cancel_prompts();
    ticket.result().await.unwrap();
    let shown = live_events(&drain(&mut seen))
        .into_iter()
        .find_map(|event| {
            let EventKind::MessageEnd { message } = event.kind else {
                return None;
            };
            matches!(message.message, Message::User { .. }).then(|| message.message_id.clone())
        });
    assert_eq!(shown, Some(inserted));
}

// proves: V2-7
/// A queued prompt is withdrawn at once, by its own token or with all others, and leaves nothing; the one
/// before it continues.
#[tokio::test(start_paused = true)]
async fn waiting_prompt_can_be_cancelled() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one"), ModelAct::Wait(signal.clone())],
        &[ModelAct::Say("three")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let mut first = start_text(&session, "first");
    first.inserted().await.unwrap();
    let cancel = CancellationToken::new();
    let mut second = start_discardable(&session, "second", cancel.clone());
    cancel.cancel();
    assert_eq!(second.inserted().await, None);
    assert_eq!(second.result().await.unwrap_err(), PromptError::Withdrawn);
    let third = start_discardable(&session, "third", CancellationToken::new());
    signal.notify_one();
    first.result().await.unwrap();
    third.result().await.unwrap();
    assert_eq!(world.model.request(1), ["first", "one", "third"]);
}

// proves: V2-7
/// A cancel before the prompt begins leaves nothing behind, even if the message id is not awaited.
#[tokio::test(start_paused = true)]
async fn cancel_before_start_leaves_nothing() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("ok")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let first = start_discardable(&session, "first", CancellationToken::new());
    let second = start_discardable(&session, "second", CancellationToken::new());
    session.cancel_prompts();
    for ticket in [first, second] {
        assert_eq!(ticket.result().await.unwrap_err(), PromptError::Withdrawn);
    }
    assert!(drain(&mut seen).is_empty());
    run_text(&session, "third").await;
    assert_eq!(world.model.request(0), ["third"]);
}

/// Outbox that requests prompt ends and logs them, with the starts and ends of loops, as one word each.
#[derive(Clone, Default)]
struct EndTrackingOutbox(Arc<Mutex<Vec<&'static str>>>);

impl Outbox for EndTrackingOutbox {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        let mut log = self.0.lock().unwrap();
        match item {
            OutboxItem::Live(event) if matches!(event.kind, EventKind::LoopStart { .. }) => {
                log.push("start");
            }
            OutboxItem::Live(event) if matches!(event.kind, EventKind::LoopEnd { .. }) => {
                log.push("end");
            }
            OutboxItem::Live(_)
            | OutboxItem::Replay(_)
            | OutboxItem::ReplayEnd
            | OutboxItem::Info { .. } => {}
            OutboxItem::PromptEnd(end) => log.push(match end {
                Ok(_) => "ended",
                Err(_) => "failed",
            }),
        }
    }

    fn wants_prompt_end(&self) -> bool {
        true
    }
}

// proves: V2-8
/// The end comes after all other items of a prompt, and before its result.
#[tokio::test(start_paused = true)]
async fn outbox_gets_prompt_end_last() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("one")], &[ModelAct::Say("two")]]);
    let (mut ports, _seen) = world.ports(LARGE_CAPACITY);
    let following = EndTrackingOutbox::default();
    ports.outbox = Box::new(following.clone());
    let made = world.agent.create(world.request(), |_| ports).await;
    let session = made.unwrap();
    let log = || following.0.lock().unwrap().clone();
    run_text(&session, "first").await;
    assert_eq!(log(), ["start", "end", "ended"]);
    run_text(&session, "second").await;
    assert_eq!(log()[3..], ["start", "end", "ended"]);
}
