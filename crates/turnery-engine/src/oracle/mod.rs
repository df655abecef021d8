//! Oracle: says whether a stream of events keeps the grammar of section 6.2. For tests, also of other crates.
//!
//! Written from the rules, not from the machine. Every complaint begins with the rule that it
//! is about: R1 to R5, I2 to I4, or a requirement's id.

mod call;
mod end;
mod turn;
mod watch;

use crate::{
    CallId, ContinuationKind, Event, EventKind, LlmMessage, LoopId, Message, MessageId,
    MessageStop, TurnId, TurnTrigger, Usage,
};
use end::Value;
use std::{collections::BTreeSet, sync::Arc};
use turn::Turn;
pub use watch::{Watch, check_record};

/// Check a whole stream as the client sees it: every number, streaming fragments too. Only the winner of a
/// group is shown from what was kept of it, without what its calls printed, so that numbers are left out.
/// It must begin with `LoopStart`, or before it the `ParallelStart` of a group. It need not end with
/// `LoopEnd`, since a loop may be lost (R4), nor with `ParallelEnd`, for the group may be lost too.
pub fn check(events: &[Event]) -> Result<(), String> {
    judge(Oracle::live(), events)
}

/// Check the stored stream of a record, whose numbers have gaps (LOOP-80).
pub fn check_stored(events: &[Event]) -> Result<(), String> {
    judge(Oracle::stored(), events)
}

fn judge(mut oracle: Oracle, events: &[Event]) -> Result<(), String> {
    for event in events {
        oracle.see(event)?;
    }
    oracle.closed()
}

/// Check that history can be sent to a model as it is: each call has exactly one result, in call
/// order, before anything else is said (UP-30, D-16).
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

/// Watches the events of one loop as they come.
#[derive(Clone, Debug)]
pub struct Oracle {
    dense: bool,
    next_seq: u64,
    loop_id: Option<LoopId>,
    /// The loops that were announced together with this one.
    group: Vec<LoopId>,
    kind: ContinuationKind,
    place: Place,
    turns: u32,
    usage: Usage,
    last_stop: Option<MessageStop>,
    /// What the last turn showed as final.
    value: Option<Value>,
    /// Inputs that were refused.
    refused: Vec<String>,
    limit: Limit,
    /// A compaction of its own has succeeded, or not (UP-13).
    compacted: Option<bool>,
    message_ids: BTreeSet<MessageId>,
    call_ids: BTreeSet<CallId>,
}

#[derive(Clone, Debug)]
enum Place {
    Before,
    Announced,
    Between,
    Notice(MessageId),
    Compacting,
    Turn(Turn),
    After,
    /// The group has ended too.
    Concluded,
}

/// What is left after a limit (C-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// None was reached.
    Far,
    /// It was told of: one reply, or the end.
    Told,
    /// The reply has been made: the end.
    Replied,
}

fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(complaint()) }
}

impl Oracle {
    /// For a stream without gaps.
    #[must_use]
    pub fn live() -> Self {
        Self {
            dense: true,
            next_seq: 0,
            loop_id: None,
            group: Vec::new(),
            kind: ContinuationKind::Initial,
            place: Place::Before,
            turns: 0,
            usage: Usage::default(),
            last_stop: None,
            value: None,
            refused: Vec::new(),
            limit: Limit::Far,
            compacted: None,
            message_ids: BTreeSet::new(),
            call_ids: BTreeSet::new(),
        }
    }

    /// For a stream from which events were left out.
    #[must_use]
    pub fn stored() -> Self {
        Self {
            dense: false,
            ..Self::live()
        }
    }

    /// Nothing is left open, but perhaps the loop itself.
    pub fn closed(&self) -> Result<(), String> {
        let is_closed = matches!(self.place, Place::Between | Place::After | Place::Concluded);
        ensure(is_closed, || {
            format!("R1: the stream ends inside {:?}", self.place)
        })
    }

    /// Take in the next event, or say which rule it breaks.
    pub fn see(&mut self, event: &Event) -> Result<(), String> {
        let in_order = if self.dense && self.group.is_empty() {
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
        match std::mem::replace(&mut self.place, Place::After) {
            Place::Turn(turn) if (issue || silence) && event.turn_index == Some(self.turns - 1) => {
                self.place = Place::Turn(turn);
            }
            place @ (Place::Between | Place::Notice(_) | Place::Compacting)
                if issue && event.turn_index.is_none() =>
            {
                self.place = place;
            }
            Place::Turn(turn) => {
                ensure(event.turn_index == Some(self.turns - 1), || {
                    format!(
                        "TURN-9: turn_index {:?} in turn {}",
                        event.turn_index,
                        self.turns - 1
                    )
                })?;
                self.place = match self.in_turn(turn, event)? {
                    Some(turn) => Place::Turn(turn),
                    None => Place::Between,
                };
            }
            Place::After => self.place = self.concluded(event)?,
            Place::Concluded => {
                return Err(format!("R4: after ParallelEnd came {:?}", event.kind));
            }
            place => self.place = self.outside(place, event)?,
        }
        Ok(())
    }

    fn outside(&mut self, place: Place, event: &Event) -> Result<Place, String> {
        let is_turn = matches!(event.kind, EventKind::TurnStart { .. });
        ensure(is_turn || event.turn_index.is_none(), || {
            format!("TURN-66: turn_index {:?} outside a turn", event.turn_index)
        })?;
        match (place, &event.kind) {
            (Place::Before, EventKind::ParallelStart { loop_ids, .. }) => {
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
                Ok(Place::Announced)
            }
            (
                Place::Before | Place::Announced,
                EventKind::LoopStart {
                    continuation_kind, ..
                },
            ) => {
                self.kind = *continuation_kind;
                Ok(Place::Between)
            }
            (Place::Between, EventKind::InputRejected { reason }) => {
                self.refused.push(reason.clone());
                Ok(Place::Between)
            }
            (Place::Between, EventKind::TurnStart { trigger }) => {
                ensure(event.turn_index == Some(self.turns), || {
                    format!(
                        "TURN-8: turn {:?} where {} is due",
                        event.turn_index, self.turns
                    )
                })?;
                self.may_begin(*trigger)?;
                self.turns += 1;
                self.value = None;
                Ok(Place::Turn(Turn::new()))
            }
            (Place::Between, EventKind::CompactionStarted { .. }) => {
                let alone = self.kind == ContinuationKind::Compaction && self.compacted.is_none();
                ensure(alone, || "UP-13: a compaction outside a turn".to_owned())?;
                Ok(Place::Compacting)
            }
            (Place::Compacting, EventKind::CompactionEnded { block, failure, .. }) => {
                ensure(block.is_some() != failure.is_some(), || {
                    format!("UP-10: a block and a failure, or neither: {:?}", event.kind)
                })?;
                self.compacted = Some(block.is_some());
                Ok(Place::Between)
            }
            (Place::Between, EventKind::MessageStart { message_id }) => {
                self.new_message(message_id)?;
                ensure(self.limit == Limit::Far, || {
                    "UP-2: a second limit".to_owned()
                })?;
                Ok(Place::Notice(message_id.clone()))
            }
            (Place::Notice(id), EventKind::MessageEnd { message }) => {
                self.settled(message, &id, false)?;
                let is_system = matches!(message.message, Message::System { .. });
                ensure(is_system, || format!("UP-2: {message:?} outside a turn"))?;
                self.limit = Limit::Told;
                Ok(Place::Between)
            }
            (
                Place::Between,
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
                self.fits(outcome, rejection.as_ref())?;
                Ok(Place::After)
            }
            (place, kind) => Err(format!("R1: in {place:?} came {kind:?}")),
        }
    }

    /// After the end of the loop there is only that of its group (R4, R5).
    fn concluded(&self, event: &Event) -> Result<Place, String> {
        let EventKind::ParallelEnd { winner, .. } = &event.kind else {
            return Err(format!("R5: after LoopEnd came {:?}", event.kind));
        };
        ensure(self.group.contains(winner), || {
            format!("LOOP-73: {winner:?} won, and was not announced")
        })?;
        Ok(Place::Concluded)
    }

    /// TURN-15 to TURN-22, UP-13, C-4.
    fn may_begin(&mut self, trigger: TurnTrigger) -> Result<(), String> {
        use TurnTrigger::{Branch, Continuation};
        let fits = match self.kind {
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
                self.turns, self.kind
            )
        })?;
        self.limit = match self.limit {
            Limit::Far => Limit::Far,
            Limit::Told => Limit::Replied,
            Limit::Replied => return Err("C-4: a second reply after the limit".to_owned()),
        };
        Ok(())
    }

    fn new_message(&mut self, id: &MessageId) -> Result<(), String> {
        ensure(self.message_ids.insert(id.clone()), || {
            format!("R1: message {id:?} begins twice")
        })
    }

    fn settled(&self, message: &LlmMessage, id: &MessageId, inside: bool) -> Result<(), String> {
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
