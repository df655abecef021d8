//! Replays a stored session to a client (LOAD-1).

use super::damage_notice;
use crate::client::{Outbox, OutboxItem};
use std::{collections::VecDeque, future::poll_fn, sync::Arc};
use turnery_engine::{
    CallDetail, Content, Disposition, Event, EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus,
    Message, MessageStop, SessionId, ToolEnvelope, ToolErrorKind,
};
use turnery_store::{Damage, History, Store, StoreError, TranscriptNote};

const RESUME_HINT: &str = "\n\nTo let the model go on from here, send `/continue`. Calls that were done are not made again.";

/// Replays a stored conversation in order, with transcript notes at their recorded times, as fast as the
/// client accepts it. The store reads the next page while one is shown, so at most two pages are in memory.
/// `known` damage is reported with the damage found.
pub(super) async fn replay_session(
    store: &dyn Store,
    id: &SessionId,
    known: Vec<Damage>,
    outbox: &mut dyn Outbox,
) -> Result<History, StoreError> {
    let remarks = store.notes(id).await?.into_iter();
    let mut screen = Replayer {
        notes: remarks.map(|it| note_event(id, it)).collect(),
        outbox,
        last_loop_id: None,
    };
    let mut history = History {
        damage: known,
        ..History::default()
    };
    let mut page = store.replay_page(id, None).await?;
    loop {
        let coming = page
            .next_cursor
            .take()
            .map(|cursor| store.replay_page(id, Some(cursor)));
        let mut ended = page.loops.iter().peekable();
        for event in &page.events {
            while let Some(record) = ended.next_if(|it| it.loop_id != event.loop_id) {
                screen.end_loop(record).await;
            }
            screen.show_event(event).await;
        }
        for record in ended {
            screen.end_loop(record).await;
        }
        history.loops.append(&mut page.loops);
        history.damage.append(&mut page.damage);
        history.has_all_loops |= page.has_all_loops;
        page = match coming {
            Some(coming) => coming.await?,
            None => break,
        };
    }
    while let Some(remark) = screen.notes.pop_front() {
        screen.push_event(&remark).await;
    }
    if let Some(hint) = history.loops.last().and_then(|record| resume_hint(record)) {
        screen.push_event(&hint).await;
    }
    if !history.damage.is_empty() {
        // This message is not stored.
        let notice = TranscriptNote {
            at: turnery_store::now(),
            message: damage_notice::replay_message(id, &history.damage),
        };
        screen.push_event(&note_event(id, notice)).await;
    }
    Ok(history)
}

struct Replayer<'a> {
    outbox: &'a mut dyn Outbox,
    /// Transcript notes not shown yet.
    notes: VecDeque<Event>,
    /// Loop shown last.
    last_loop_id: Option<LoopId>,
}

impl Replayer<'_> {
    async fn show_event(&mut self, event: &Event) {
        while let Some(remark) = self.notes.pop_front_if(|remark| remark.at < event.at) {
            self.push_event(&remark).await;
        }
        self.push_event(event).await;
        if self.last_loop_id.as_ref() != Some(&event.loop_id) {
            self.last_loop_id = Some(event.loop_id.clone());
        }
    }

    /// Ends a loop. A loop without events was stored by an old version; its events are reconstructed from its
    /// messages (LOOP-83).
    async fn end_loop(&mut self, record: &LoopRecord) {
        if self.last_loop_id.as_ref() != Some(&record.loop_id) {
            for event in synthesize_events(record) {
                self.show_event(&event).await;
            }
        }
        if let Some(event) = interruption_event(record) {
            self.push_event(&event).await;
        }
    }

    async fn push_event(&mut self, event: &Event) {
        poll_fn(|cx| self.outbox.poll_ready(cx)).await;
        self.outbox.push(OutboxItem::Replay(event));
    }
}

/// Converts a transcript note to a settled message that belongs to no loop.
fn note_event(id: &SessionId, remark: TranscriptNote) -> Event {
    Event {
        session_id: id.clone(),
        loop_id: LoopId::from(format!("{id}.command")),
        seq: 0,
        turn_index: None,
        at: remark.at,
        kind: EventKind::MessageEnd {
            message: Arc::new(remark.message),
        },
    }
}

/// Says how an interrupted prompt, the last of the session, can go on. Not stored.
fn resume_hint(record: &LoopRecord) -> Option<Event> {
    let mut event = interruption_event(record).filter(|_| record.on_chain)?;
    let EventKind::MessageEnd { message } = &mut event.kind else {
        return None;
    };
    let message = Arc::make_mut(message);
    message.message_id = format!("{}.resume", message.message_id).into();
    if let Message::Assistant { content, .. } = &mut message.message {
        *content = vec![Content::text(RESUME_HINT)];
    }
    Some(event)
}

/// Converts the notice at the end of an interrupted loop to an agent message, since clients do not see system
/// messages.
fn interruption_event(record: &LoopRecord) -> Option<Event> {
    let last = record.messages.last()?;
    let (LoopStatus::Aborted, Message::System { text }) = (record.status, &last.message) else {
        return None;
    };
    let config = record.config.as_ref();
    let message = Message::Assistant {
        content: vec![Content::text(text)],
        stop: MessageStop::Aborted,
        model: config.map_or_else(String::new, |config| config.model.clone()),
        provider: config.map_or_else(String::new, |config| config.provider.clone()),
        usage: None,
        error: None,
        request: None,
    };
    Some(Event {
        session_id: record.session_id.clone(),
        loop_id: record.loop_id.clone(),
        seq: record.events.last().map_or(0, |event| event.seq + 1),
        turn_index: None,
        at: record.ended_at.unwrap_or(record.started_at),
        kind: EventKind::MessageEnd {
            message: Arc::new(LlmMessage {
                message_id: last.message_id.clone(),
                turn_id: None,
                message,
            }),
        },
    })
}

/// Reconstructs the events of a loop from its messages.
fn synthesize_events(record: &LoopRecord) -> Vec<Event> {
    let messages = record.messages.iter();
    let kinds = messages.flat_map(message_events);
    let events = kinds.zip(0..).map(|(kind, seq)| Event {
        session_id: record.session_id.clone(),
        loop_id: record.loop_id.clone(),
        seq,
        turn_index: None,
        at: record.started_at,
        kind,
    });
    events.collect()
}

fn message_events(message: &Arc<LlmMessage>) -> Vec<EventKind> {
    let mut kinds = vec![EventKind::MessageEnd {
        message: Arc::clone(message),
    }];
    for call in message.message.calls() {
        kinds.push(EventKind::ToolCallRequested {
            call: call.clone(),
            detail: CallDetail {
                title: call.name.clone(),
                ..CallDetail::default()
            },
        });
    }
    if let Message::ToolResult {
        call_id,
        tool_name,
        content,
        is_error,
    } = &message.message
    {
        let envelope = match is_error {
            true => ToolEnvelope::failed(ToolErrorKind::ExecutionError, message.message.text()),
            false => ToolEnvelope::ok(content.clone()),
        };
        kinds.push(EventKind::ToolExecutionEnd {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            envelope,
            disposition: Disposition::Executed,
            child_loop_id: None,
        });
    }
    kinds
}
