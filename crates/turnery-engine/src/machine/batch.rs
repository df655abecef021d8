//! Batch: the calls of one turn, and how far each of them is.

use super::Announced;
use crate::{CallId, Hook, Message, MessageId, ToolCall, ToolControl, Usage};

/// The calls of one turn.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Of the answer that asked for them.
    pub(super) usage: Option<Usage>,
    pub(super) slots: Vec<Slot>,
    /// The first call of which nothing has been decided.
    pub(super) next: usize,
    /// The first call whose result the model has not been told.
    pub(super) untold: usize,
    pub(super) results: Vec<MessageId>,
    /// A hook is asked about this call: before it if it is cleared, else after it.
    pub(super) hook: Option<usize>,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) call: ToolCall,
    parallel: bool,
    pub(super) phase: Phase,
    /// What it decides about the loop, and what it told the model.
    pub(super) control: Option<(ToolControl, String)>,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Nothing is decided yet.
    Waiting,
    /// It is being decided whether it may run.
    Gating,
    /// The same, and a person has been asked.
    Asked,
    /// It may; only the hook has not said so.
    Cleared,
    /// It runs.
    Running,
    /// Its bracket is closed.
    Ended {
        /// What the model is told of it.
        message: Box<Message>,
        /// Who else is told.
        hook: Option<Box<Hook>>,
    },
    /// The model has been told.
    Told,
}

impl Batch {
    pub(super) fn new(calls: Vec<ToolCall>, usage: Option<Usage>, known: &[Announced]) -> Self {
        let slots: Vec<Slot> = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| Slot {
                call,
                parallel: known.get(at).is_some_and(|known| known.parallel),
                phase: Phase::Waiting,
                control: None,
            })
            .collect();
        Self {
            usage,
            next: 0,
            untold: 0,
            results: Vec::with_capacity(slots.len()),
            slots,
            hook: None,
        }
    }

    pub(super) fn phase(&self, call_id: &CallId) -> Option<(usize, &Phase)> {
        let mut slots = self.slots.iter().enumerate();
        let (at, slot) = slots.find(|(_, slot)| slot.call.call_id == *call_id)?;
        Some((at, &slot.phase))
    }

    /// The calls that run, in call order.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, slot)| matches!(slot.phase, Phase::Running))
            .map(|(at, _)| at)
    }

    /// The call that is being decided.
    pub(super) fn undecided(&self) -> Option<usize> {
        let slots = self.slots.iter();
        slots
            .enumerate()
            .find(|(_, slot)| match slot.phase {
                Phase::Gating | Phase::Asked | Phase::Cleared => true,
                Phase::Waiting | Phase::Running | Phase::Ended { .. } | Phase::Told => false,
            })
            .map(|(at, _)| at)
    }

    /// Whether the next call may run beside those that run.
    pub(super) fn has_room(&self, most: usize) -> bool {
        let mut beside = self.running().peekable();
        beside.peek().is_none()
            || (self.slots[self.next].parallel
                && beside.all(|at| self.slots[at].parallel)
                && self.running().count() < most)
    }
}
