//! Shows a stored group to the client: the winner, as if it ran now.

use super::super::{SessionTask, command::SessionCommand, prompt_guard::PromptGuard};
use crate::{OutboxItem, sink::SessionOutput};
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};
use tokio::time::{Sleep, sleep};
use turnery_engine::{Content, Event, EventKind, LoopRecord, Message, StreamDelta};
use turnery_tools::grace;

/// Time limit for a client that does not read: none, or a short one after a cancel. Everything is stored by
/// then, so a client that loads the session misses nothing.
#[derive(Default)]
struct ReadTimeout {
    timer: Option<Pin<Box<Sleep>>>,
    is_expired: bool,
}

/// Next step of showing an item.
enum ShowStep {
    Mail(SessionCommand),
    Room,
    TimedOut,
}

impl SessionTask {
    /// Shows the winner, publishes the ends of the other candidates in their order, and then shows the end of
    /// the group (R4).
    pub(super) async fn show_group(
        &mut self,
        records: &[Arc<LoopRecord>],
        winner: usize,
        has_new_title: bool,
        watch: &mut PromptGuard,
    ) {
        let mut patience = ReadTimeout::default();
        let is_last = |event: &&Event| matches!(event.kind, EventKind::ParallelEnd { .. });
        for (place, record) in records.iter().enumerate() {
            let events = record.events.iter().take_while(|event| !is_last(event));
            if place == winner {
                self.show_loop(events, watch, &mut patience).await;
            } else if let Some(end) = events.last() {
                self.observing.push(end);
            }
        }
        if let Some(end) = records[winner].events.iter().find(is_last) {
            self.show_item(OutboxItem::Live(end), watch, &mut patience)
                .await;
        }
        if has_new_title {
            let title = self.info.title.clone();
            let item = OutboxItem::Info {
                title: title.as_deref(),
                updated_at: self.info.updated_at,
            };
            self.show_item(item, watch, &mut patience).await;
        }
    }

    /// Shows a loop, each text as one delta.
    async fn show_loop(
        &mut self,
        events: impl Iterator<Item = &Event>,
        watch: &mut PromptGuard,
        patience: &mut ReadTimeout,
    ) {
        let mut next = 0;
        for event in events {
            for fragment in fragments(event, next) {
                self.show_item(OutboxItem::Live(&fragment), watch, patience)
                    .await;
            }
            next = event.seq + 1;
            self.show_item(OutboxItem::Live(event), watch, patience)
                .await;
        }
    }

    async fn show_item(
        &mut self,
        item: OutboxItem<'_>,
        watch: &mut PromptGuard,
        patience: &mut ReadTimeout,
    ) {
        while !patience.is_expired {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(mail)) = self.poll_command(cx) {
                    return Poll::Ready(ShowStep::Mail(mail));
                }
                // The lane is held only if a frame follows, whose commit reports its loss.
                let _ = watch.poll_lane_lost(cx, &self.store);
                if self.session_output().poll_ready(cx).is_ready() {
                    return Poll::Ready(ShowStep::Room);
                }
                if watch.poll_cancelled(cx) {
                    let timer = || Box::pin(sleep(grace::CALL));
                    let timer = patience.timer.get_or_insert_with(timer);
                    return timer.as_mut().poll(cx).map(|()| ShowStep::TimedOut);
                }
                Poll::Pending
            });
            match next.await {
                ShowStep::Mail(mail) => self.mail(mail),
                ShowStep::Room => {
                    self.session_output().push(item);
                    return;
                }
                ShowStep::TimedOut => patience.is_expired = true,
            }
        }
        // Observers never block.
        if let OutboxItem::Live(event) = item {
            self.observing.push(event);
        }
    }

    fn session_output(&mut self) -> SessionOutput<'_> {
        SessionOutput {
            outbox: &mut *self.ports.outbox,
            tap: &mut self.tap,
            observing: &mut self.observing,
        }
    }
}

/// Rebuilds the deltas of a message, one for each block, since the original ones are not stored. They take
/// the sequence numbers left free from `next` on (LOOP-80); a model that did not stream left none, and only
/// the end of its message is shown.
fn fragments(event: &Event, next: u64) -> Vec<Event> {
    let EventKind::MessageEnd { message } = &event.kind else {
        return Vec::new();
    };
    let Message::Assistant { content, .. } = &message.message else {
        return Vec::new();
    };
    let fragments = content.iter().zip(0..).filter_map(|(content, block)| {
        Some(match content {
            Content::Text { text } if !text.is_empty() => StreamDelta::Text {
                block,
                text: text.clone(),
            },
            Content::Thinking { text, .. } if !text.is_empty() => StreamDelta::Thinking {
                block,
                text: text.clone(),
            },
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::ToolCall(_)
            | Content::Opaque { .. } => return None,
        })
    });
    let fragments: Vec<StreamDelta> = fragments.collect();
    let Some(first) = event
        .seq
        .checked_sub(fragments.len() as u64)
        .filter(|first| *first >= next)
    else {
        return Vec::new();
    };
    let fragments = fragments.into_iter().zip(first..);
    fragments
        .map(|(delta, seq)| Event {
            seq,
            kind: EventKind::Delta {
                message_id: message.message_id.clone(),
                delta,
            },
            ..event.clone()
        })
        .collect()
}
