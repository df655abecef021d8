//! Replay: shows a client what is stored of a session (LOAD-1).

use super::damage_notice;
use crate::{Item, Outbox};
use std::{collections::VecDeque, future::poll_fn, sync::Arc};
use turnery_engine::{
    CallDetail, Content, Disposition, Event, EventKind, FailureKind, LlmMessage, LoopId,
    LoopRecord, LoopStatus, Message, MessageStop, SessionId, ToolEnvelope,
};
use turnery_store::{Damage, History, Remark, Store, StoreError};

/// Show a stored conversation, in order, as fast as the client takes it; and what was said beside it, at
/// the time when it was. The store reads one page of it while another is shown; the events of no more than
/// these two are held. Damage that is known already is told with what is found.
pub(super) async fn show(
    store: &dyn Store,
    id: &SessionId,
    known: Vec<Damage>,
    outbox: &mut dyn Outbox,
) -> Result<History, StoreError> {
    let remarks = store.remarks(id).await?.into_iter();
    let mut screen = Screen {
        remarks: remarks.map(|it| event_of(id, it)).collect(),
        outbox,
        last: None,
    };
    let mut history = History {
        damage: known,
        ..History::default()
    };
    let mut page = store.shown(id, None).await?;
    loop {
        let coming = page.rest.take().map(|rest| store.shown(id, Some(rest)));
        let mut ended = page.loops.iter().peekable();
        for event in &page.events {
            while let Some(record) = ended.next_if(|it| it.loop_id != event.loop_id) {
                screen.end(record).await;
            }
            screen.event(event).await;
        }
        for record in ended {
            screen.end(record).await;
        }
        history.loops.append(&mut page.loops);
        history.damage.append(&mut page.damage);
        page = match coming {
            Some(coming) => coming.await?,
            None => break,
        };
    }
    while let Some(remark) = screen.remarks.pop_front() {
        screen.put(&remark).await;
    }
    if !history.damage.is_empty() {
        // A message that is stored nowhere.
        let notice = Remark {
            at: turnery_store::now(),
            message: damage_notice::message(id, &history.damage),
        };
        screen.put(&event_of(id, notice)).await;
    }
    Ok(history)
}

struct Screen<'a> {
    outbox: &'a mut dyn Outbox,
    /// Those that are still to come.
    remarks: VecDeque<Event>,
    /// The loop that was shown last.
    last: Option<LoopId>,
}

impl Screen<'_> {
    async fn event(&mut self, event: &Event) {
        while let Some(remark) = self.remarks.pop_front_if(|remark| remark.at < event.at) {
            self.put(&remark).await;
        }
        self.put(event).await;
        if self.last.as_ref() != Some(&event.loop_id) {
            self.last = Some(event.loop_id.clone());
        }
    }

    /// A loop is at its end. One that nothing was shown of was stored before there were events; what is
    /// known of it then are its messages (LOOP-83).
    async fn end(&mut self, record: &LoopRecord) {
        if self.last.as_ref() != Some(&record.loop_id) {
            for event in told(record) {
                self.event(&event).await;
            }
        }
        if let Some(event) = interruption(record) {
            self.put(&event).await;
        }
    }

    async fn put(&mut self, event: &Event) {
        poll_fn(|cx| self.outbox.poll_room(cx)).await;
        self.outbox.push(Item::Replay(event));
    }
}

/// A remark as what it is for a client: a settled message. It is of no loop.
fn event_of(id: &SessionId, remark: Remark) -> Event {
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

/// The notice at the end of an interrupted loop, as a message of the agent: clients are not shown those
/// of the engine.
fn interruption(record: &LoopRecord) -> Option<Event> {
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

/// What must have happened in a loop for its messages to be what they are.
fn told(record: &LoopRecord) -> Vec<Event> {
    let messages = record.messages.iter();
    let kinds = messages.flat_map(of);
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

fn of(message: &Arc<LlmMessage>) -> Vec<EventKind> {
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
            true => ToolEnvelope::failed(FailureKind::ExecutionError, message.message.text()),
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
