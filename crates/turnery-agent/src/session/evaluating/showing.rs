//! Showing: what the client sees of a group once it is stored: the winner, as if it ran now.

use super::super::{Task, mail::Mail, watch::Watch};
use crate::{Item, sink::Shown};
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};
use tokio::time::{Sleep, sleep};
use turnery_engine::{Content, Event, EventKind, LoopRecord, Message, StreamDelta};
use turnery_tools::grace;

/// How long a client that does not read is waited for: for ever, or a moment once the prompt has been
/// cancelled. All is stored by then, so that whoever loads the session misses nothing.
#[derive(Default)]
struct Patience {
    left: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

/// What came first.
enum Next {
    Mail(Mail),
    Room,
    GivenUp,
}

impl Task {
    /// Tell of a group: the winner is shown, of the others their ends are told, in the order of the
    /// configurations, and then the end of the group (R4).
    pub(super) async fn show(
        &mut self,
        records: &[Arc<LoopRecord>],
        winner: usize,
        is_titled: bool,
        watch: &mut Watch,
    ) {
        let mut patience = Patience::default();
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
            self.show_item(Item::Live(end), watch, &mut patience).await;
        }
        if is_titled {
            let title = self.info.title.clone();
            let item = Item::Info {
                title: title.as_deref(),
                updated_at: self.info.updated_at,
            };
            self.show_item(item, watch, &mut patience).await;
        }
    }

    /// Each text in one piece.
    async fn show_loop(
        &mut self,
        events: impl Iterator<Item = &Event>,
        watch: &mut Watch,
        patience: &mut Patience,
    ) {
        let mut next = 0;
        for event in events {
            for fragment in fragments(event, next) {
                self.show_item(Item::Live(&fragment), watch, patience).await;
            }
            next = event.seq + 1;
            self.show_item(Item::Live(event), watch, patience).await;
        }
    }

    async fn show_item(&mut self, item: Item<'_>, watch: &mut Watch, patience: &mut Patience) {
        while !patience.is_over {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(mail)) = self.poll_mail(cx) {
                    return Poll::Ready(Next::Mail(mail));
                }
                // Held only while a frame is to follow, whose commit will tell.
                let _ = watch.poll_lane(cx, &self.store);
                if self.shown().poll_room(cx).is_ready() {
                    return Poll::Ready(Next::Room);
                }
                if watch.poll_cancelled(cx) {
                    let left = || Box::pin(sleep(grace::CALL));
                    let left = patience.left.get_or_insert_with(left);
                    return left.as_mut().poll(cx).map(|()| Next::GivenUp);
                }
                Poll::Pending
            });
            match next.await {
                Next::Mail(mail) => self.mail(mail),
                Next::Room => {
                    self.shown().push(item);
                    return;
                }
                Next::GivenUp => patience.is_over = true,
            }
        }
        // Observers are in nobody's way.
        if let Item::Live(event) = item {
            self.observing.push(event);
        }
    }

    fn shown(&mut self) -> Shown<'_> {
        Shown {
            outbox: &mut *self.ports.outbox,
            tap: &mut self.tap,
            observing: &mut self.observing,
        }
    }
}

/// What streamed before this event, in one piece for each block of a message: the fragments themselves
/// are not kept. They take the numbers that those left free from `next` on (LOOP-80); a model that did
/// not stream left none, and its message is shown by its end alone.
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
