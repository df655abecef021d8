//! State of the tool calls of one turn, or of the nested calls that a running call has requested at once.
//!
//! A response may contain very many calls, so methods that concern one call never scan all of them: running and
//! undecided calls are indexed separately, and ids map to indices.

use super::CallAnnouncement;
use crate::{
    CallId, HookRequest, Message, MessageId, ToolCall, ToolControl, ToolEnvelope, Usage,
    visits::count_visit,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

/// Tool calls of one turn, or nested calls.
#[derive(Clone, Debug)]
pub(super) struct CallBatch {
    /// Batch of the call that requested these nested calls; `None` if the model did.
    pub(super) outer: Option<Box<OuterBatch>>,
    /// Usage of the response that requested these calls.
    pub(super) usage: Option<Usage>,
    slots: Vec<CallSlot>,
    /// Index of each call by id; the first one counts if ids repeat.
    index_by_id: Arc<BTreeMap<CallId, usize>>,
    /// Indices of the running calls.
    running: BTreeSet<usize>,
    /// Number of running calls that must run alone.
    running_exclusive: usize,
    /// Index of the call whose permission or hook is pending.
    undecided: Option<usize>,
    /// Decisions of calls about the loop, by index.
    pub(super) controls: BTreeMap<usize, CallDecision>,
    /// Index of the first call that has not been considered yet.
    pub(super) next_to_start: usize,
    /// Index of the first call whose result was not added to history.
    pub(super) next_to_deliver: usize,
    pub(super) results: Vec<MessageId>,
    /// Results of nested calls, in call order.
    pub(super) nested_results: Vec<ToolEnvelope>,
    /// Index of the call that a hook is running for: before the tool if permitted, else after it.
    pub(super) hook_call: Option<usize>,
}

/// Batch with a running call that waits for the results of its nested calls.
#[derive(Clone, Debug)]
pub(super) struct OuterBatch {
    pub(super) batch: CallBatch,
    /// Index of the running call.
    pub(super) parent: usize,
}

/// Decision of a call about the loop.
#[derive(Clone, Debug)]
pub(super) struct CallDecision {
    pub(super) control: ToolControl,
    pub(super) tool_name: String,
    /// Text of the call's result.
    pub(super) text: String,
}

/// Result of an ended call, which is held back until the calls before it have theirs (R3).
#[derive(Clone, Debug)]
pub(super) enum CallResult {
    /// Message for the model.
    Message(Message),
    /// Result for the call that requested this nested call.
    Nested(ToolEnvelope),
}

/// A call and its phase.
#[derive(Clone, Debug)]
struct CallSlot {
    call: ToolCall,
    is_parallel: bool,
    phase: CallPhase,
}

#[derive(Clone, Debug)]
pub(super) enum CallPhase {
    /// Not considered yet.
    Waiting,
    /// Permission is pending.
    Gating,
    /// Permission is pending, and the user was asked.
    AwaitingPermission,
    /// Permitted; the before-tool hook has not answered yet.
    Permitted,
    /// Running.
    Running,
    /// Ended, with an end event.
    Ended {
        result: Box<CallResult>,
        /// Request to the after-tool hook.
        hook: Option<Box<HookRequest>>,
    },
    /// The result was added to history.
    Delivered,
}

impl CallPhase {
    /// Returns true if the permission or the before-tool hook is pending.
    fn is_undecided(&self) -> bool {
        match self {
            Self::Gating | Self::AwaitingPermission | Self::Permitted => true,
            Self::Waiting | Self::Running | Self::Ended { .. } | Self::Delivered => false,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }
}

impl CallBatch {
    pub(super) fn new(
        calls: Vec<ToolCall>,
        usage: Option<Usage>,
        announcements: &[CallAnnouncement],
    ) -> Self {
        let slots: Vec<CallSlot> = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| CallSlot {
                call,
                is_parallel: announcements.get(at).is_some_and(|known| known.is_parallel),
                phase: CallPhase::Waiting,
            })
            .collect();
        let mut places = BTreeMap::new();
        for (at, slot) in slots.iter().enumerate() {
            places.entry(slot.call.call_id.clone()).or_insert(at);
        }
        Self {
            outer: None,
            usage,
            index_by_id: Arc::new(places),
            running: BTreeSet::new(),
            running_exclusive: 0,
            undecided: None,
            controls: BTreeMap::new(),
            next_to_start: 0,
            next_to_deliver: 0,
            results: Vec::with_capacity(slots.len()),
            nested_results: Vec::new(),
            slots,
            hook_call: None,
        }
    }

    /// Returns this batch and those around it, from the innermost outwards.
    pub(super) fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |batch| {
            batch.outer.as_deref().map(|outer| &outer.batch)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns all calls, in call order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.slots
            .iter()
            .inspect(|_| count_visit())
            .map(|slot| &slot.call)
    }

    pub(super) fn call(&self, at: usize) -> &ToolCall {
        &self.slot(at).call
    }

    pub(super) fn phase(&self, at: usize) -> &CallPhase {
        &self.slot(at).phase
    }

    fn slot(&self, at: usize) -> &CallSlot {
        count_visit();
        &self.slots[at]
    }

    pub(super) fn find(&self, call_id: &CallId) -> Option<(usize, &CallPhase)> {
        let at = *self.index_by_id.get(call_id)?;
        Some((at, self.phase(at)))
    }

    /// Moves a call to another phase and returns the previous phase.
    pub(super) fn set_phase(&mut self, at: usize, phase: CallPhase) -> CallPhase {
        count_visit();
        let slot = &mut self.slots[at];
        let alone = usize::from(!slot.is_parallel);
        if slot.phase.is_running() && self.running.remove(&at) {
            self.running_exclusive -= alone;
        }
        if self.undecided == Some(at) {
            self.undecided = None;
        }
        if phase.is_running() && self.running.insert(at) {
            self.running_exclusive += alone;
        }
        if phase.is_undecided() {
            self.undecided = Some(at);
        }
        mem::replace(&mut slot.phase, phase)
    }

    /// Returns the indices of the running calls, in call order.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.running.iter().copied().inspect(|_| count_visit())
    }

    /// Returns the index of the call whose permission or hook is pending.
    pub(super) fn undecided(&self) -> Option<usize> {
        self.undecided
    }

    /// Returns true if the next call may start alongside the running ones.
    pub(super) fn can_start_next(&self, max: usize) -> bool {
        self.running.is_empty()
            || (self.slot(self.next_to_start).is_parallel
                && self.running_exclusive == 0
                && self.running.len() < max)
    }
}
