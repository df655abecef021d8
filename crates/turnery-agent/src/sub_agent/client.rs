//! Connects a sub-agent to the parent's client and reports its progress through the parent's call.

use crate::client::{Client, Outbox, OutboxItem, PermissionAnswer, PermissionRequest};
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;
use turnery_engine::{CallId, ChildUsage, EventKind, ModelDelta, SessionId, Usage, usage::source};
use turnery_models::MissingKeyError;
use turnery_tools::{Progress, escape_invisible_line};

/// Forwards permission requests to the parent's client under the parent's session and call, the only ones the
/// user sees.
pub(super) struct ParentClient {
    pub(super) client: Arc<dyn Client>,
    pub(super) session_id: SessionId,
    pub(super) call_id: CallId,
}

impl Client for ParentClient {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        self.client.request_permission(PermissionRequest {
            session_id: self.session_id.clone(),
            call_id: self.call_id.clone(),
            ..ask
        })
    }

    fn request_key(&self, _: SessionId, missing: MissingKeyError) -> BoxFuture<'_, ()> {
        self.client.request_key(self.session_id.clone(), missing)
    }
}

/// Converts the child's events to progress reports of the parent's call. Slowed down by the parent's own
/// pace.
pub(super) struct ChildOutbox {
    session_id: SessionId,
    model: String,
    progress: PollSender<Progress>,
    /// Turns so far, across all loops.
    turns: u32,
    turn_usage: Usage,
    compaction_usage: Usage,
    /// True if streamed text did not end with a newline.
    is_mid_line: bool,
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
            turn_usage: Usage::default(),
            compaction_usage: Usage::default(),
            is_mid_line: false,
        }
    }

    fn child_usage(&self, source: &str, usage: Option<Usage>, cumulative: Usage) -> ChildUsage {
        ChildUsage {
            session_id: self.session_id.clone(),
            source: source.to_owned(),
            model: self.model.clone(),
            iteration: self.turns.saturating_sub(1),
            usage,
            cumulative,
        }
    }

    /// Returns the progress report for an event, if the user should see one.
    fn project_event(&mut self, kind: &EventKind) -> Option<Progress> {
        match kind {
            EventKind::TurnStart { .. } => {
                self.turns += 1;
                None
            }
            EventKind::UsageReported { usage, .. } => {
                self.turn_usage += usage.unwrap_or_default();
                let turn_usage = self.child_usage(source::SUBAGENT, *usage, self.turn_usage);
                Some(Progress::ChildUsage(turn_usage))
            }
            EventKind::CompactionEnded {
                usage: Some(usage), ..
            } => {
                self.compaction_usage += *usage;
                let turn_usage =
                    self.child_usage(source::COMPACTION, Some(*usage), self.compaction_usage);
                Some(Progress::ChildUsage(turn_usage))
            }
            EventKind::ChildUsageReported { child, .. } => {
                Some(Progress::ChildUsage(child.clone()))
            }
            EventKind::Delta {
                delta: ModelDelta::Text { text, .. },
                ..
            } => {
                self.is_mid_line = !text.ends_with('\n');
                Some(Progress::Output(text.clone()))
            }
            EventKind::ToolCallRequested { detail, .. } => {
                let before = if std::mem::take(&mut self.is_mid_line) {
                    "\n"
                } else {
                    ""
                };
                Some(Progress::Output(format!(
                    "{before}• {}\n",
                    escape_invisible_line(&detail.title)
                )))
            }
            // The parent's user sees no other events of a child session.
            _ => None,
        }
    }
}

impl Outbox for ChildOutbox {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // An error means that the parent's call is over: report room, since there is no reader to wait for.
        self.progress.poll_reserve(cx).map(|_| ())
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        let report = match item {
            OutboxItem::Live(event) => self.project_event(&event.kind),
            OutboxItem::Replay(_)
            | OutboxItem::ReplayEnd
            | OutboxItem::Info { .. }
            | OutboxItem::PromptEnd(_) => None,
        };
        match report {
            Some(report) => {
                let _ = self.progress.send_item(report);
            }
            None => self.release_slot(),
        }
    }

    fn release_slot(&mut self) {
        self.progress.abort_send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::poll_fn;
    use turnery_engine::{Event, LoopId};

    /// All reports of a call share one channel.
    #[test]
    fn unreported_events_release_their_slot() {
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
            OutboxItem::Live(&event),
            OutboxItem::Replay(&event),
            OutboxItem::Info {
                title: None,
                updated_at: event.at,
            },
        ];
        for item in items {
            let room = poll_fn(|cx| outbox.poll_ready(cx)).now_or_never();
            assert_eq!(room, Some(()), "the place was kept before {item:?}");
            outbox.push(item);
            assert_eq!(progress.capacity(), 1, "{item:?}");
        }
        drop(reports);
    }
}
