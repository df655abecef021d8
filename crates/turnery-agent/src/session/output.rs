//! Combines everything that a session task shows to its client.

use crate::{
    client::{Outbox, OutboxItem},
    observe::EventPublisher,
    sink::SinkDriver,
};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use turnery_engine::MessageId;

/// Outbox, sinks and observers of a session. Only the first two apply backpressure.
pub(crate) struct SessionOutput {
    pub(crate) outbox: Box<dyn Outbox>,
    /// Sinks of the running prompt.
    pub(crate) sinks: SinkDriver,
    /// Publishes events to observers of the session.
    pub(crate) publisher: EventPublisher,
    /// Receives the message id once the running prompt is inserted into history.
    pub(crate) inserted: Option<oneshot::Sender<MessageId>>,
}

impl SessionOutput {
    /// Creates the output of a session without a running prompt.
    pub(crate) fn new(outbox: Box<dyn Outbox>, publisher: EventPublisher) -> Self {
        Self {
            outbox,
            sinks: SinkDriver::default(),
            publisher,
            inserted: None,
        }
    }

    /// Resolves when an item may be pushed.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.sinks.poll_idle(cx));
        self.outbox.poll_ready(cx)
    }

    /// Resolves when the sink is idle, so that work other than output may be done.
    pub(crate) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sinks.poll_idle(cx)
    }

    /// Pushes an event of a winner, whose activities observers have seen while it ran.
    pub(crate) fn push_winner(&mut self, item: OutboxItem<'_>) {
        self.outbox.push(item);
        if let OutboxItem::Live(event) = item {
            self.sinks.push(event);
            self.publisher.push_end(event);
        }
    }

    pub(crate) fn push(&mut self, item: OutboxItem<'_>) {
        self.outbox.push(item);
        if let OutboxItem::Live(event) = item {
            self.sinks.push(event);
            self.publisher.push(event);
        }
    }
}
