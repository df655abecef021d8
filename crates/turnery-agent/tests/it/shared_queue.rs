//! Tests that an idle session holds no slot in a queue that outboxes share.

use crate::evaluation::{evaluate_with_cancel, fixture_with, three_models};
use crate::fixture::yield_while;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use turnery_agent::{CancellationToken, ClientPorts, Outbox, OutboxItem, SelectionStrategy};

/// Full queue that records whether a session waits for a slot.
#[derive(Clone, Default)]
struct FullOutbox {
    waiting: Arc<AtomicBool>,
}

impl Outbox for FullOutbox {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        self.waiting.store(true, Ordering::SeqCst);
        Poll::Pending
    }

    fn push(&mut self, _item: OutboxItem<'_>) {
        panic!("there is no room");
    }

    fn release_slot(&mut self) {
        self.waiting.store(false, Ordering::SeqCst);
    }
}

/// Cancelled candidates are not shown to a client that does not read: the session must stop waiting for a
/// slot, or it would later receive one and keep it.
#[tokio::test(start_paused = true)]
pub(crate) async fn idle_session_releases_its_slot() {
    let world = fixture_with(&three_models());
    let queue = FullOutbox::default();
    let ports = ClientPorts::local(world.client.clone(), Box::new(queue.clone()));
    let session = world
        .agent
        .create(world.request(), |_| ports)
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    let prompt = evaluate_with_cancel(
        &session,
        &["a", "b"],
        SelectionStrategy::First,
        cancel.clone(),
    );
    let prompt = async {
        let _ = prompt.await;
    };
    let client_waits = async {
        yield_while(|| !queue.waiting.load(Ordering::SeqCst)).await;
        cancel.cancel();
    };
    tokio::join!(prompt, client_waits);
    // An idle session handles option changes, so it is idle once this returns.
    session.set_title("idle").await.unwrap();
    assert!(!queue.waiting.load(Ordering::SeqCst));
}
