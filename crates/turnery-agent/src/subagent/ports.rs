//! Ports: how a sub-agent reaches the person and shows what it does: through the call that it works for.

use crate::{Answer, Ask, Client, Item, Outbox};
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;
use turnery_engine::{CallId, ChildUsage, EventKind, SessionId, StreamDelta, Usage, usage::source};
use turnery_models::MissingKey;
use turnery_tools::{Progress, visible_line};

/// The parent's client, asked in the name of the parent's session and call: the person knows no other.
pub(super) struct ParentClient {
    pub(super) client: Arc<dyn Client>,
    pub(super) session_id: SessionId,
    pub(super) call_id: CallId,
}

impl Client for ParentClient {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        self.client.ask(Ask {
            session_id: self.session_id.clone(),
            call_id: self.call_id.clone(),
            ..ask
        })
    }

    fn wants_key(&self, _: SessionId, missing: MissingKey) -> BoxFuture<'_, ()> {
        self.client.wants_key(self.session_id.clone(), missing)
    }
}

/// Turns the child's events into reports of the parent's call. Bounded by the parent's own pace.
pub(super) struct ChildOutbox {
    session_id: SessionId,
    model: String,
    progress: PollSender<Progress>,
    /// Turns so far, over all loops.
    turns: u32,
    spent: Usage,
    summaries: Usage,
    /// Whether text has been shown since the last line of our own.
    in_text: bool,
}

impl ChildOutbox {
    pub(super) fn new(
        session_id: SessionId,
        model: String,
        progress: mpsc::Sender<Progress>,
    ) -> Self {
        Self {
            session_id,
            model,
            progress: PollSender::new(progress),
            turns: 0,
            spent: Usage::default(),
            summaries: Usage::default(),
            in_text: false,
        }
    }

    fn usage(&self, source: &str, usage: Option<Usage>, cumulative: Usage) -> ChildUsage {
        ChildUsage {
            session_id: self.session_id.clone(),
            source: source.to_owned(),
            model: self.model.clone(),
            iteration: self.turns.saturating_sub(1),
            usage,
            cumulative,
        }
    }

    /// What a person at the parent's end wants to see of it.
    fn report(&mut self, kind: &EventKind) -> Option<Progress> {
        match kind {
            EventKind::TurnStart { .. } => {
                self.turns += 1;
                None
            }
            EventKind::UsageReported { usage, .. } => {
                self.spent += usage.unwrap_or_default();
                let spent = self.usage(source::SUBAGENT, *usage, self.spent);
                Some(Progress::Spent(spent))
            }
            EventKind::CompactionEnded {
                usage: Some(usage), ..
            } => {
                self.summaries += *usage;
                let spent = self.usage(source::COMPACTION, Some(*usage), self.summaries);
                Some(Progress::Spent(spent))
            }
            EventKind::ChildUsageReported { child, .. } => Some(Progress::Spent(child.clone())),
            EventKind::Delta {
                delta: StreamDelta::Text { text, .. },
                ..
            } => {
                self.in_text = !text.ends_with('\n');
                Some(Progress::Printed(text.clone()))
            }
            EventKind::ToolCallRequested { detail, .. } => {
                let before = if std::mem::take(&mut self.in_text) {
                    "\n"
                } else {
                    ""
                };
                Some(Progress::Printed(format!(
                    "{before}• {}\n",
                    visible_line(&detail.title)
                )))
            }
            EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { usage: None, .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta {
                delta: StreamDelta::Thinking { .. } | StreamDelta::ToolCallArgs { .. },
                ..
            }
            | EventKind::MessageEnd { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolExecutionEnd { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => None,
        }
    }
}

impl Outbox for ChildOutbox {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // An error means that the parent's call is over: then there is room, and nobody who reads.
        self.progress.poll_reserve(cx).map(|_| ())
    }

    fn push(&mut self, item: Item<'_>) {
        let report = match item {
            Item::Live(event) => self.report(&event.kind),
            Item::Replay(_) | Item::Info { .. } | Item::Ended(_) => None,
        };
        match report {
            Some(report) => {
                let _ = self.progress.send_item(report);
            }
            None => self.release_room(),
        }
    }

    fn release_room(&mut self) {
        self.progress.abort_send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::poll_fn;
    use turnery_engine::{Event, LoopId};

    /// The reports of a call go through one channel, whoever makes them.
    #[test]
    fn unreported_events_keep_no_place() {
        let (progress, reports) = mpsc::channel(1);
        let mut outbox = ChildOutbox::new(SessionId::from("s"), "m".to_owned(), progress.clone());
        let event = Event {
            session_id: SessionId::from("s"),
            loop_id: LoopId::from("s.m.1"),
            seq: 0,
            turn_index: Some(0),
            at: chrono::DateTime::UNIX_EPOCH,
            kind: EventKind::MessageStart {
                message_id: turnery_engine::MessageId::from("m"),
            },
        };
        let items = [
            Item::Live(&event),
            Item::Replay(&event),
            Item::Info {
                title: None,
                updated_at: event.at,
            },
        ];
        for item in items {
            let room = poll_fn(|cx| outbox.poll_room(cx)).now_or_never();
            assert_eq!(room, Some(()), "the place was kept before {item:?}");
            outbox.push(item);
            assert_eq!(progress.capacity(), 1, "{item:?}");
        }
        drop(reports);
    }
}
