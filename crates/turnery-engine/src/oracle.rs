//! Checks streams of events against the event grammar (R1 to R5), for tests of this and other crates.
//!
//! Written from the rules, independently of the machine. Every violation starts with its rule: R1 to R5, I2
//! to I4, or a requirement id.

mod call_tracker;
pub(crate) mod ensure;
mod loop_oracles;
mod outcome_check;
mod turn_progress;

use crate::{
    CallId, ContinuationKind, Event, EventKind, LlmMessage, LoopId, Message, MessageId,
    MessageStop, TurnId, TurnTrigger, Usage,
};
use ensure::ensure;
pub use loop_oracles::{LoopOracles, check_record};
use std::{collections::BTreeSet, sync::Arc};
use turn_progress::{FinalValue, TurnProgress};

/// Checks a live stream, in which `seq` has no gaps because streaming events are included. Gaps are allowed
/// in any stream of a group, because that of the winner is replayed from its record without tool output. The
/// stream must begin with `LoopStart`, or in a group with `ParallelStart`. It may end before `LoopEnd` and
/// `ParallelEnd`, since loops and groups may be lost (R4).
pub fn check_live(events: &[Event]) -> Result<(), String> {
    check_with(Oracle::for_live_stream(), events)
}

/// Checks the stored stream of a record, whose numbers have gaps (LOOP-80).
pub fn check_stored(events: &[Event]) -> Result<(), String> {
    check_with(Oracle::for_stored_stream(), events)
}

fn check_with(mut oracle: Oracle, events: &[Event]) -> Result<(), String> {
    for event in events {
        oracle.observe(event)?;
    }
    oracle.check_closed()
}

/// Checks that history can be sent to a model unchanged: each call has exactly one result, in call order,
/// before any other message (UP-30, D-16).
pub fn check_history(messages: &[Arc<LlmMessage>]) -> Result<(), String> {
    let mut due: Vec<&CallId> = Vec::new();
    for message in messages {
        match &message.message {
            Message::ToolResult { call_id, .. } => {
                ensure(due.first() == Some(&call_id), || {
                    format!("D-16: a result for {call_id:?}, due are {due:?}")
                })?;
                due.remove(0);
            }
            other => {
                ensure(due.is_empty(), || format!("D-16: no result for {due:?}"))?;
                due.extend(other.calls().map(|call| &call.call_id));
            }
        }
    }
    ensure(due.is_empty(), || format!("D-16: no result for {due:?}"))
}

/// Checks the events of one loop as they arrive.
#[derive(Clone, Debug)]
pub struct Oracle {
    is_gapless: bool,
    next_seq: u64,
    loop_id: Option<LoopId>,
    /// Loops announced in the same group, including this one.
    group: Vec<LoopId>,
    continuation_kind: ContinuationKind,
    position: StreamPosition,
    turns: u32,
    usage: Usage,
    last_stop: Option<MessageStop>,
    /// Final value shown in the last turn.
    final_value: Option<FinalValue>,
    /// Rejected inputs.
    rejected_inputs: Vec<String>,
    limit_state: LimitState,
    /// Result of a standalone compaction (UP-13).
    compaction_succeeded: Option<bool>,
    message_ids: BTreeSet<MessageId>,
    call_ids: BTreeSet<CallId>,
}

#[derive(Clone, Debug)]
enum StreamPosition {
    BeforeStart,
    Announced,
    BetweenTurns,
    Notice(MessageId),
    Compacting,
    Turn(TurnProgress),
    AfterEnd,
    /// The loop and its group have ended.
    GroupEnded,
}

/// State of the loop's limit (C-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitState {
    /// No limit was reached.
    NotReached,
    /// The limit notice was emitted; a last reply or the end follows.
    Reached,
    /// The last reply was started; the end follows.
    ReplyStarted,
}

impl Oracle {
    /// Creates an oracle for a stream without gaps.
    #[must_use]
    pub fn for_live_stream() -> Self {
        Self {
            is_gapless: true,
            next_seq: 0,
            loop_id: None,
            group: Vec::new(),
            continuation_kind: ContinuationKind::Initial,
            position: StreamPosition::BeforeStart,
            turns: 0,
            usage: Usage::default(),
            last_stop: None,
            final_value: None,
            rejected_inputs: Vec::new(),
            limit_state: LimitState::NotReached,
            compaction_succeeded: None,
            message_ids: BTreeSet::new(),
            call_ids: BTreeSet::new(),
        }
    }

    /// Creates an oracle for a stream with omitted events.
    #[must_use]
    pub fn for_stored_stream() -> Self {
        Self {
            is_gapless: false,
            ..Self::for_live_stream()
        }
    }

    /// Checks that nothing is open, except possibly the loop itself.
    pub fn check_closed(&self) -> Result<(), String> {
        let is_closed = matches!(
            self.position,
            StreamPosition::BetweenTurns | StreamPosition::AfterEnd | StreamPosition::GroupEnded
        );
        ensure(is_closed, || {
            format!("R1: the stream ends inside {:?}", self.position)
        })
    }

    /// Checks the next event. Fails with the rule that the event violates.
    pub fn observe(&mut self, event: &Event) -> Result<(), String> {
        let in_order = if self.is_gapless && self.group.is_empty() {
            event.seq == self.next_seq
        } else {
            event.seq >= self.next_seq
        };
        ensure(in_order, || {
            format!("LOOP-80: seq {} where {} is due", event.seq, self.next_seq)
        })?;
        self.next_seq = event.seq + 1;
        let loop_id = self.loop_id.get_or_insert_with(|| event.loop_id.clone());
        ensure(*loop_id == event.loop_id, || {
            format!("LOOP-82: an event of {:?}", event.loop_id)
        })?;
        let issue = matches!(event.kind, EventKind::Issue { .. });
        let silence = matches!(event.kind, EventKind::ModelSilent { .. });
        match std::mem::replace(&mut self.position, StreamPosition::AfterEnd) {
            StreamPosition::Turn(turn)
                if (issue || silence) && event.turn_index == Some(self.turns - 1) =>
            {
                self.position = StreamPosition::Turn(turn);
            }
            place @ (StreamPosition::BetweenTurns
            | StreamPosition::Notice(_)
            | StreamPosition::Compacting)
                if issue && event.turn_index.is_none() =>
            {
                self.position = place;
            }
            StreamPosition::Turn(turn) => {
                ensure(event.turn_index == Some(self.turns - 1), || {
                    format!(
                        "TURN-9: turn_index {:?} in turn {}",
                        event.turn_index,
                        self.turns - 1
                    )
                })?;
                self.position = match self.observe_in_turn(turn, event)? {
                    Some(turn) => StreamPosition::Turn(turn),
                    None => StreamPosition::BetweenTurns,
                };
            }
            StreamPosition::AfterEnd => self.position = self.observe_after_end(event)?,
            StreamPosition::GroupEnded => {
                return Err(format!("R4: after ParallelEnd came {:?}", event.kind));
            }
            place => self.position = self.observe_outside_turn(place, event)?,
        }
        Ok(())
    }

    fn observe_outside_turn(
        &mut self,
        place: StreamPosition,
        event: &Event,
    ) -> Result<StreamPosition, String> {
        let is_turn = matches!(event.kind, EventKind::TurnStart { .. });
        ensure(is_turn || event.turn_index.is_none(), || {
            format!("TURN-66: turn_index {:?} outside a turn", event.turn_index)
        })?;
        match (place, &event.kind) {
            (StreamPosition::BeforeStart, EventKind::ParallelStart { loop_ids, .. }) => {
                let distinct: BTreeSet<&LoopId> = loop_ids.iter().collect();
                let is_whole = distinct.len() == loop_ids.len()
                    && self
                        .loop_id
                        .as_ref()
                        .is_some_and(|id| distinct.contains(id));
                ensure(is_whole, || {
                    format!("LOOP-72: {loop_ids:?} are not all loops of the group, each once")
                })?;
                self.group.clone_from(loop_ids);
                Ok(StreamPosition::Announced)
            }
            (
                StreamPosition::BeforeStart | StreamPosition::Announced,
                EventKind::LoopStart {
                    continuation_kind, ..
                },
            ) => {
                self.continuation_kind = *continuation_kind;
                Ok(StreamPosition::BetweenTurns)
            }
            (StreamPosition::BetweenTurns, EventKind::InputRejected { reason }) => {
                self.rejected_inputs.push(reason.clone());
                Ok(StreamPosition::BetweenTurns)
            }
            (StreamPosition::BetweenTurns, EventKind::TurnStart { trigger }) => {
                ensure(event.turn_index == Some(self.turns), || {
                    format!(
                        "TURN-8: turn {:?} where {} is due",
                        event.turn_index, self.turns
                    )
                })?;
                self.check_turn_start(*trigger)?;
                self.turns += 1;
                self.final_value = None;
                Ok(StreamPosition::Turn(TurnProgress::new()))
            }
            (StreamPosition::BetweenTurns, EventKind::CompactionStarted { .. }) => {
                let alone = self.continuation_kind == ContinuationKind::Compaction
                    && self.compaction_succeeded.is_none();
                ensure(alone, || "UP-13: a compaction outside a turn".to_owned())?;
                Ok(StreamPosition::Compacting)
            }
            (StreamPosition::Compacting, EventKind::CompactionEnded { block, failure, .. }) => {
                ensure(block.is_some() != failure.is_some(), || {
                    format!("UP-10: a block and a failure, or neither: {:?}", event.kind)
                })?;
                self.compaction_succeeded = Some(block.is_some());
                Ok(StreamPosition::BetweenTurns)
            }
            (StreamPosition::BetweenTurns, EventKind::MessageStart { message_id }) => {
                self.register_message(message_id)?;
                ensure(self.limit_state == LimitState::NotReached, || {
                    "UP-2: a second limit".to_owned()
                })?;
                Ok(StreamPosition::Notice(message_id.clone()))
            }
            (StreamPosition::Notice(id), EventKind::MessageEnd { message }) => {
                self.check_message_end(message, &id, false)?;
                let is_system = matches!(message.message, Message::System { .. });
                ensure(is_system, || format!("UP-2: {message:?} outside a turn"))?;
                self.limit_state = LimitState::Reached;
                Ok(StreamPosition::BetweenTurns)
            }
            (
                StreamPosition::BetweenTurns,
                EventKind::LoopEnd {
                    outcome,
                    usage,
                    rejection,
                    ..
                },
            ) => {
                ensure(*usage == self.usage, || {
                    format!("I3: LoopEnd has {usage:?}, the turns {:?}", self.usage)
                })?;
                self.check_outcome(outcome, rejection.as_ref())?;
                Ok(StreamPosition::AfterEnd)
            }
            (place, kind) => Err(format!("R1: in {place:?} came {kind:?}")),
        }
    }

    /// Checks an event after the end of the loop: only the end of its group is allowed (R4, R5).
    fn observe_after_end(&self, event: &Event) -> Result<StreamPosition, String> {
        let EventKind::ParallelEnd { winner, .. } = &event.kind else {
            return Err(format!("R5: after LoopEnd came {:?}", event.kind));
        };
        ensure(self.group.contains(winner), || {
            format!("LOOP-73: {winner:?} won, and was not announced")
        })?;
        Ok(StreamPosition::GroupEnded)
    }

    /// Checks the start of a turn (TURN-15 to TURN-22, UP-13, C-4).
    fn check_turn_start(&mut self, trigger: TurnTrigger) -> Result<(), String> {
        use TurnTrigger::{Branch, Continuation};
        let fits = match self.continuation_kind {
            _ if self.turns > 0 => trigger == Continuation,
            ContinuationKind::Initial => trigger != Branch,
            ContinuationKind::Default | ContinuationKind::Rerun => trigger == Continuation,
            ContinuationKind::Branch => trigger == Branch,
            ContinuationKind::Compaction => {
                return Err("UP-13: a turn in a compaction".to_owned());
            }
        };
        ensure(fits, || {
            format!(
                "TURN-22: turn {} of {:?} triggered by {trigger:?}",
                self.turns, self.continuation_kind
            )
        })?;
        self.limit_state = match self.limit_state {
            LimitState::NotReached => LimitState::NotReached,
            LimitState::Reached => LimitState::ReplyStarted,
            LimitState::ReplyStarted => {
                return Err("C-4: a second reply after the limit".to_owned());
            }
        };
        Ok(())
    }

    fn register_message(&mut self, id: &MessageId) -> Result<(), String> {
        ensure(self.message_ids.insert(id.clone()), || {
            format!("R1: message {id:?} begins twice")
        })
    }

    fn check_message_end(
        &self,
        message: &LlmMessage,
        id: &MessageId,
        inside: bool,
    ) -> Result<(), String> {
        ensure(message.message_id == *id, || {
            format!("R1: {:?} ends where {id:?} is open", message.message_id)
        })?;
        let is_in_turn = match (&message.message, &message.turn_id) {
            (Message::System { .. }, None) => !inside,
            (
                _,
                Some(TurnId {
                    loop_id,
                    turn_index,
                }),
            ) => Some(loop_id) == self.loop_id.as_ref() && turn_index + 1 == self.turns,
            (_, None) => false,
        };
        ensure(is_in_turn, || {
            format!("TURN-7: {id:?} says {:?}", message.turn_id)
        })
    }
}
