//! Outbox: turns what happens in a session into `session/update` lines, in order, into the one write queue.

use crate::{
    barrier::Barrier,
    bounds::LARGE_BATCH,
    dialect::Encoder,
    update::UpdateWriter,
    writer::{Out, Sender},
};
use agent_client_protocol_schema::v1::{SessionInfoUpdate, SessionUpdate};
use futures_util::future::BoxFuture;
use std::task::{Context, Poll, ready};
use tokio_util::sync::{CancellationToken, DropGuard, PollSender};
use turnery_agent::{Item, Outbox};
use turnery_engine::{EventKind, SessionId, Timestamp};
use turnery_tools::visible_line;

/// The outbox of one session.
pub(crate) struct WireOutbox {
    queue: PollSender<Out>,
    /// What must have happened before anything is let through: the request that opens the session
    /// is answered (SESS-7), the prompt before this one is answered.
    gate: Option<BoxFuture<'static, ()>>,
    barrier: Barrier,
    writer: UpdateWriter,
    encoder: Encoder,
}

impl WireOutbox {
    /// The outbox is shut until `gate` fires: the answer to the request that opens the session is
    /// then in the queue. Without a gate it is open at once, for a replay (LOAD-1).
    pub(crate) fn new(
        id: &SessionId,
        queue: Sender,
        barrier: Barrier,
        encoder: Encoder,
        gate: Option<CancellationToken>,
    ) -> Self {
        Self {
            queue: PollSender::new(queue),
            gate: gate.map(|gate| -> BoxFuture<'static, ()> { Box::pin(gate.cancelled_owned()) }),
            barrier,
            writer: UpdateWriter::new(id.as_str()),
            encoder,
        }
    }
}

impl WireOutbox {
    /// Shut until the guard is gone, whatever else is waited for.
    fn wait_for_it(&mut self) -> DropGuard {
        let written = CancellationToken::new();
        let before = self.gate.take();
        let wait = written.clone().cancelled_owned();
        self.gate = Some(Box::pin(async move {
            if let Some(before) = before {
                before.await;
            }
            wait.await;
        }));
        written.drop_guard()
    }
}

impl Outbox for WireOutbox {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        // A closed queue takes everything and keeps nothing.
        self.queue.poll_reserve(cx).map(|_| ())
    }

    fn follows(&self) -> bool {
        self.encoder.follows()
    }

    fn push(&mut self, item: Item<'_>) {
        if let Item::Live(event) = item
            && matches!(event.kind, EventKind::LoopStart { .. })
        {
            self.gate = Some(Box::pin(self.barrier.pass()));
        }
        self.encoder.push(item, &mut self.writer);
        if !self.writer.lines.is_empty() {
            let lines = std::mem::take(&mut self.writer.lines);
            let out = if lines.len() > LARGE_BATCH {
                Out::Large(lines, self.wait_for_it())
            } else {
                Out::Lines(lines)
            };
            let _ = self.queue.send_item(out);
        } else {
            // An update that writes nothing must not keep a place in the one queue of all sessions.
            self.release_room();
        }
    }

    fn release_room(&mut self) {
        self.queue.abort_send();
    }
}

/// The session has a new title, or was active.
pub(crate) fn info(title: Option<&str>, updated_at: Timestamp) -> SessionUpdate {
    let mut info = SessionInfoUpdate::new().updated_at(rfc3339(updated_at));
    if let Some(title) = title {
        info = info.title(visible_line(title).into_owned());
    }
    SessionUpdate::SessionInfoUpdate(info)
}

/// A time as the wire wants it (LIST-6).
pub(crate) fn rfc3339(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
