//! Shows a stored group to the client: the winner, as if it ran now.

use super::super::{command::SessionCommand, prompt_guard::PromptGuard, task::SessionTask};
use crate::client::OutboxItem;
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};
use tokio::time::{Sleep, sleep};
use turnery_engine::{Content, Event, EventKind, LoopRecord, Message, ModelDelta};
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
    Command(SessionCommand),
    Ready,
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
        guard: &mut PromptGuard,
    ) {
        let mut patience = ReadTimeout::default();
        let is_last = |event: &&Event| matches!(event.kind, EventKind::ParallelEnd { .. });
        for (place, record) in records.iter().enumerate() {
            let events = record.events.iter().take_while(|event| !is_last(event));
            if place == winner {
                self.show_loop(events, guard, &mut patience).await;
            } else if let Some(end) = events.last() {
                self.output.publisher.push_end(end);
            }
        }
        if let Some(end) = records[winner].events.iter().find(is_last) {
            self.show_item(OutboxItem::Live(end), guard, &mut patience)
                .await;
        }
        if has_new_title {
            let title = self.conversation.info.title.clone();
            let item = OutboxItem::Info {
                title: title.as_deref(),
                updated_at: self.conversation.info.updated_at,
            };
            self.show_item(item, guard, &mut patience).await;
        }
    }

    /// Shows a loop, each text as one delta.
    async fn show_loop(
        &mut self,
        events: impl Iterator<Item = &Event>,
        guard: &mut PromptGuard,
        patience: &mut ReadTimeout,
    ) {
        let mut next = 0;
        for event in events {
            for fragment in message_fragments(event, next) {
                self.show_item(OutboxItem::Live(&fragment), guard, patience)
                    .await;
            }
            next = event.seq + 1;
            self.show_item(OutboxItem::Live(event), guard, patience)
                .await;
        }
    }

    async fn show_item(
        &mut self,
        item: OutboxItem<'_>,
        guard: &mut PromptGuard,
        patience: &mut ReadTimeout,
    ) {
        while !patience.is_expired {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(command)) = self.poll_command(cx) {
                    return Poll::Ready(ShowStep::Command(command));
                }
                // The lane is held only if a frame follows, whose commit reports its loss.
                let _ = guard.poll_lane_lost(cx, &self.env.store);
                if self.output.poll_ready(cx).is_ready() {
                    return Poll::Ready(ShowStep::Ready);
                }
                if guard.poll_cancelled(cx) {
                    let timer = || Box::pin(sleep(grace::CALL));
                    let timer = patience.timer.get_or_insert_with(timer);
                    return timer.as_mut().poll(cx).map(|()| ShowStep::TimedOut);
                }
                Poll::Pending
            });
            match next.await {
                ShowStep::Command(command) => self.handle_command(command),
                ShowStep::Ready => {
                    self.output.push_winner(item);
                    return;
                }
                ShowStep::TimedOut => patience.is_expired = true,
            }
        }
        // Observers never block.
        if let OutboxItem::Live(event) = item {
            self.output.publisher.push_end(event);
        }
    }
}

/// Rebuilds the deltas of a message, one for each block, since the original ones are not stored. They take
/// the sequence numbers left free from `next` on (LOOP-80); a model that did not stream left none, and only
/// the end of its message is shown.
fn message_fragments(event: &Event, next: u64) -> Vec<Event> {
    let EventKind::MessageEnd { message } = &event.kind else {
        return Vec::new();
    };
    let Message::Assistant { content, .. } = &message.message else {
        return Vec::new();
    };
    let fragments = content.iter().zip(0..).filter_map(|(content, block)| {
        Some(match content {
            Content::Text { text } if !text.is_empty() => ModelDelta::Text {
                block,
                text: text.clone(),
            },
            Content::Thinking { text, .. } if !text.is_empty() => ModelDelta::Thinking {
                block,
                text: text.clone(),
            },
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::Document(_)
            | Content::ToolCall(_)
            | Content::Opaque { .. } => return None,
        })
    });
    let fragments: Vec<ModelDelta> = fragments.collect();
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
