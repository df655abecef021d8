//! Sessions whose outboxes share one queue: a session that is idle keeps no place in it.

use crate::evaluating::{cancelled_by, three, world};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use turnery_agent::{CancellationToken, Item, Outbox, Pick, Ports};

/// A queue without room: remembers whether somebody stands in line for it.
#[derive(Clone, Default)]
struct FullQueue {
    waiting: Arc<AtomicBool>,
}

impl Outbox for FullQueue {
    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        self.waiting.store(true, Ordering::SeqCst);
        Poll::Pending
    }

    fn push(&mut self, _item: Item<'_>) {
        panic!("there is no room");
    }

    fn release_room(&mut self) {
        self.waiting.store(false, Ordering::SeqCst);
    }
}

/// Candidates that were cancelled are not shown to a client that does not read: the session must then
/// leave the line, or it is given a place later and keeps it.
#[tokio::test(start_paused = true)]
pub(crate) async fn idle_session_leaves_the_line_for_the_queue() {
    let world = world(&three());
    let queue = FullQueue::default();
    let ports = Ports::local(world.person.clone(), Box::new(queue.clone()));
    let session = world
        .agent
        .create(world.request(), |_| ports)
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    let prompt = cancelled_by(&session, &["a", "b"], Pick::First, cancel.clone());
    let prompt = async {
        let _ = prompt.await;
    };
    let client_waits = async {
        while !queue.waiting.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    tokio::join!(prompt, client_waits);
    // Settings are changed by an idle session, so it is idle once that is done.
    session.set_title("idle").await.unwrap();
    assert!(!queue.waiting.load(Ordering::SeqCst));
}
