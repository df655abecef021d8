//! Encodes the events of a session as `session/update` lines and sends them, in order, to the write queue.

use crate::{
    limits::LARGE_BATCH_THRESHOLD,
    server::{encoder::SharedEncoder, prompt_barrier::PromptBarrier},
    transport::{
        update_writer::UpdateWriter,
        writer::{WriteItem, WriteSender},
    },
};
use futures_util::future::BoxFuture;
use std::task::{Context, Poll, ready};
use tokio_util::sync::{CancellationToken, DropGuard, PollSender};
use turnery_agent::{
    Outbox, OutboxItem,
    view::{SessionCost, SessionView},
};
use turnery_engine::{EventKind, SessionId};

/// Outbox of one session.
pub(crate) struct WireOutbox {
    queue: PollSender<WriteItem>,
    /// Future that resolves when the outbox may send again: the response to the request that opens the
    /// session is written (SESS-7), that to the previous prompt is queued, or a large batch is written.
    gate: Option<BoxFuture<'static, ()>>,
    barrier: PromptBarrier,
    view: SessionView,
    encoder: SharedEncoder,
    writer: UpdateWriter,
}

impl WireOutbox {
    /// Creates an outbox that is closed until `gate` fires, which is when the response to the request that
    /// opens the session is written. Without a gate it is open at once, for a replay (LOAD-1).
    pub(crate) fn new(
        id: &SessionId,
        queue: WriteSender,
        barrier: PromptBarrier,
        view: SessionView,
        encoder: SharedEncoder,
        gate: Option<CancellationToken>,
    ) -> Self {
        Self {
            queue: PollSender::new(queue),
            gate: gate.map(|gate| -> BoxFuture<'static, ()> { Box::pin(gate.cancelled_owned()) }),
            barrier,
            view,
            encoder,
            writer: UpdateWriter::new(id.as_str()),
        }
    }
}

impl WireOutbox {
    /// Closes the outbox until the returned guard is dropped, in addition to any current gate.
    fn hold_until_written(&mut self) -> DropGuard {
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
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        // A closed queue accepts and discards everything.
        self.queue.poll_reserve(cx).map(|_| ())
    }

    fn session_cost_mut(&mut self) -> Option<&mut SessionCost> {
        Some(self.view.session_cost_mut())
    }

    /// In v1 every update belongs to a request of the client (PROMPT-7).
    fn shows_other_prompts(&self) -> bool {
        self.encoder.lock().reports_prompt_end()
    }

    fn wants_prompt_end(&self) -> bool {
        self.encoder.lock().reports_prompt_end()
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        if let OutboxItem::Live(event) = item
            && matches!(event.kind, EventKind::LoopStart { .. })
        {
            self.gate = Some(Box::pin(self.barrier.wait_for_responses()));
        }
        let encoder = self.encoder.clone();
        let mut encoder = encoder.lock();
        let writer = &mut self.writer;
        self.view
            .apply(item, &mut |change| encoder.encode(change, writer));
        if !self.writer.lines.is_empty() {
            let lines = std::mem::take(&mut self.writer.lines);
            let out = if lines.len() > LARGE_BATCH_THRESHOLD {
                WriteItem::Awaited(lines, self.hold_until_written())
            } else {
                WriteItem::Lines(lines)
            };
            let _ = self.queue.send_item(out);
        } else {
            // An event without updates must not keep a permit of the queue that all sessions share.
            self.release_slot();
        }
    }

    fn release_slot(&mut self) {
        self.queue.abort_send();
    }
}
