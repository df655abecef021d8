//! Numbers the events and messages of a loop, and collects its effects.

use super::Effect;
use crate::{
    Event, EventKind, LlmMessage, LoopId, Message, MessageId, SessionId, Timestamp, TurnId,
};
use std::sync::Arc;

/// Assigns event numbers and message ids.
#[derive(Clone, Debug)]
pub(super) struct EventEmitter {
    session_id: SessionId,
    loop_id: LoopId,
    next_seq: u64,
    message_count: u64,
    /// Index of the running turn; `None` before, between and after turns.
    pub(super) turn_index: Option<u32>,
    /// Time of the current input.
    pub(super) now: Timestamp,
    /// Effects of the current input so far.
    pub(super) effects: Vec<Effect>,
}

impl EventEmitter {
    pub(super) fn new(session_id: SessionId, loop_id: LoopId, now: Timestamp) -> Self {
        Self {
            session_id,
            loop_id,
            next_seq: 0,
            message_count: 0,
            turn_index: None,
            now,
            effects: Vec::new(),
        }
    }

    /// Creates the next event. Every event takes a number, streaming fragments too (LOOP-80).
    pub(super) fn next_event(&mut self, kind: EventKind) -> Event {
        let seq = self.next_seq;
        self.next_seq += 1;
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
        let event = self.next_event(kind);
        self.effects.push(Effect::Emit(event));
    }

    /// Starts a message. The id derives from the loop id, so replays produce the same.
    pub(super) fn start_message(&mut self) -> MessageId {
        let message_id = MessageId::from(format!("{}.m{}", self.loop_id, self.message_count));
        self.message_count += 1;
        self.emit(EventKind::MessageStart {
            message_id: message_id.clone(),
        });
        message_id
    }

    /// Ends a message of the running turn (TURN-7), or of no turn (UP-2).
    pub(super) fn end_message(
        &mut self,
        message_id: MessageId,
        message: Message,
    ) -> Arc<LlmMessage> {
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
