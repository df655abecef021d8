//! Mint: numbers the events and the messages of one loop, and collects its effects.

use super::Effect;
use crate::{
    Event, EventKind, LlmMessage, LoopId, Message, MessageId, SessionId, Timestamp, TurnId,
};
use std::sync::Arc;

/// Where the next event and the next message stand.
#[derive(Clone, Debug)]
pub(super) struct Mint {
    session_id: SessionId,
    loop_id: LoopId,
    seq: u64,
    messages: u64,
    /// The turn under way; `None` before, between and after turns.
    pub(super) turn_index: Option<u32>,
    /// When the input came that is being answered.
    pub(super) now: Timestamp,
    /// What it is answered with, so far.
    pub(super) out: Vec<Effect>,
}

impl Mint {
    pub(super) fn new(session_id: SessionId, loop_id: LoopId, now: Timestamp) -> Self {
        Self {
            session_id,
            loop_id,
            seq: 0,
            messages: 0,
            turn_index: None,
            now,
            out: Vec::new(),
        }
    }

    /// The next event. Every one takes a number, streaming fragments too (LOOP-80).
    pub(super) fn event(&mut self, kind: EventKind) -> Event {
        let seq = self.seq;
        self.seq += 1;
        Event {
            session_id: self.session_id.clone(),
            loop_id: self.loop_id.clone(),
            seq,
            turn_index: self.turn_index,
            at: self.now,
            kind,
        }
    }

    pub(super) fn emit(&mut self, kind: EventKind) {
        let event = self.event(kind);
        self.out.push(Effect::Emit(event));
    }

    /// Open a message. The id follows from the loop's own, so a rerun of the machine mints the same.
    pub(super) fn open_message(&mut self) -> MessageId {
        let message_id = MessageId::from(format!("{}.m{}", self.loop_id, self.messages));
        self.messages += 1;
        self.emit(EventKind::MessageStart {
            message_id: message_id.clone(),
        });
        message_id
    }

    /// Settle a message; it belongs to the turn under way (TURN-7), or to none (UP-2).
    pub(super) fn settle(&mut self, message_id: MessageId, message: Message) -> Arc<LlmMessage> {
        let turn_id = self.turn_index.map(|turn_index| TurnId {
            loop_id: self.loop_id.clone(),
            turn_index,
        });
        let message = Arc::new(LlmMessage {
            message_id,
            turn_id,
            message,
        });
        self.emit(EventKind::MessageEnd {
            message: Arc::clone(&message),
        });
        message
    }
}
