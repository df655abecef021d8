//! Batch: the calls of one turn, and how far each of them is.
//!
//! An answer may hold very many calls, so nothing here looks through all of them: the calls that run
//! and the one that is being decided are kept beside the slots, and ids lead to places.

use super::Announced;
use crate::{CallId, Hook, Message, MessageId, ToolCall, ToolControl, Usage};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

/// The calls of one turn.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Of the answer that asked for them.
    pub(super) usage: Option<Usage>,
    slots: Vec<Slot>,
    /// Places of the calls, by id. Of calls with the same id the first counts.
    places: Arc<BTreeMap<CallId, usize>>,
    /// Places of the calls that run.
    running: BTreeSet<usize>,
    /// Those of them that may not run beside others.
    running_alone: usize,
    /// The call that is being decided.
    undecided: Option<usize>,
    /// What calls decide about the loop, and what they told the model, by place.
    pub(super) controls: BTreeMap<usize, (ToolControl, String)>,
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
struct Slot {
    call: ToolCall,
    parallel: bool,
    phase: Phase,
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

impl Phase {
    /// Returns whether the call is being decided.
    fn is_undecided(&self) -> bool {
        match self {
            Self::Gating | Self::Asked | Self::Cleared => true,
            Self::Waiting | Self::Running | Self::Ended { .. } | Self::Told => false,
        }
    }

    fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }
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
            })
            .collect();
        let mut places = BTreeMap::new();
        for (at, slot) in slots.iter().enumerate() {
            places.entry(slot.call.call_id.clone()).or_insert(at);
        }
        Self {
            usage,
            places: Arc::new(places),
            running: BTreeSet::new(),
            running_alone: 0,
            undecided: None,
            controls: BTreeMap::new(),
            next: 0,
            untold: 0,
            results: Vec::with_capacity(slots.len()),
            slots,
            hook: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// All calls, in call order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.slots
            .iter()
            .inspect(|_| visit())
            .map(|slot| &slot.call)
    }

    pub(super) fn call(&self, at: usize) -> &ToolCall {
        &self.slot(at).call
    }

    pub(super) fn phase(&self, at: usize) -> &Phase {
        &self.slot(at).phase
    }

    fn slot(&self, at: usize) -> &Slot {
        visit();
        &self.slots[at]
    }

    pub(super) fn find(&self, call_id: &CallId) -> Option<(usize, &Phase)> {
        let at = *self.places.get(call_id)?;
        Some((at, self.phase(at)))
    }

    /// Moves a call to another phase; the phase before is returned.
    pub(super) fn set_phase(&mut self, at: usize, phase: Phase) -> Phase {
        visit();
        let slot = &mut self.slots[at];
        let alone = usize::from(!slot.parallel);
        if slot.phase.is_running() && self.running.remove(&at) {
            self.running_alone -= alone;
        }
        if self.undecided == Some(at) {
            self.undecided = None;
        }
        if phase.is_running() && self.running.insert(at) {
            self.running_alone += alone;
        }
        if phase.is_undecided() {
            self.undecided = Some(at);
        }
        mem::replace(&mut slot.phase, phase)
    }

    /// The calls that run, in call order.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.running.iter().copied().inspect(|_| visit())
    }

    /// The call that is being decided.
    pub(super) fn undecided(&self) -> Option<usize> {
        self.undecided
    }

    /// Whether the next call may run beside those that run.
    pub(super) fn has_room(&self, most: usize) -> bool {
        self.running.is_empty()
            || (self.slot(self.next).parallel
                && self.running_alone == 0
                && self.running.len() < most)
    }
}

#[cfg(test)]
thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a look at a slot, for the tests that bound the work of a batch.
fn visit() {
    #[cfg(test)]
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

/// Looks at slots on this thread so far.
#[cfg(test)]
pub(crate) fn visits() -> u64 {
    VISITS.with(std::cell::Cell::get)
}
