//! Tracks the calls of an interrupted turn by id.
//!
//! A journal holds several events for each call, so no event may cause a search through all calls.

use crate::{
    CallId, Disposition, Message, ToolCall, ToolEnvelope, ToolErrorKind, visits::count_visit,
};
use std::collections::HashMap;

const INTERRUPTED_WHILE_RUNNING: &str = "interrupted: turnery ended while this call was running, so it may or may not \
     have had effects; check before repeating it";

const INTERRUPTED_BEFORE_START: &str = "not run: turnery ended before this call began";

/// Call of an interrupted turn.
pub(super) struct OpenCall {
    pub(super) call: ToolCall,
    /// True if a message requested the call, so that its result is due.
    pub(super) is_requested: bool,
    pub(super) is_announced: bool,
    pub(super) is_permission_pending: bool,
    pub(super) denial: Option<String>,
    /// State of the start event: `None` before it, else true if the tool actually runs.
    pub(super) started: Option<bool>,
    /// Result message, once the call has ended.
    pub(super) result: Option<Message>,
    pub(super) is_result_delivered: bool,
}

impl OpenCall {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            call: call.clone(),
            is_requested: true,
            is_announced: false,
            is_permission_pending: false,
            denial: None,
            started: None,
            result: None,
            is_result_delivered: false,
        }
    }

    /// Returns the result and disposition of a call whose end was not journalled.
    pub(super) fn interrupted_result(&self) -> (ToolEnvelope, Disposition) {
        match (&self.denial, self.started) {
            (Some(why), _) => (
                ToolEnvelope::failed(ToolErrorKind::Denied, why.clone()),
                Disposition::Denied,
            ),
            (None, Some(true)) => (
                ToolEnvelope::failed(ToolErrorKind::Cancelled, INTERRUPTED_WHILE_RUNNING),
                Disposition::Cancelled,
            ),
            (None, Some(false) | None) => (
                ToolEnvelope::failed(ToolErrorKind::Skipped, INTERRUPTED_BEFORE_START),
                Disposition::Skipped,
            ),
        }
    }
}

/// Calls of a turn, in call order.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: Vec<OpenCall>,
    /// Index of each call. The first of several calls with the same id counts.
    index_by_id: HashMap<CallId, usize>,
}

impl OpenCalls {
    pub(super) fn push(&mut self, open: OpenCall) {
        let call_id = open.call.call_id.clone();
        self.index_by_id.entry(call_id).or_insert(self.calls.len());
        self.calls.push(open);
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn get(&self, at: usize) -> &OpenCall {
        count_visit();
        &self.calls[at]
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut OpenCall {
        count_visit();
        &mut self.calls[at]
    }

    pub(super) fn find(&mut self, call_id: &CallId) -> Option<&mut OpenCall> {
        let at = *self.index_by_id.get(call_id)?;
        Some(self.get_mut(at))
    }

    /// Returns the indices of all calls in an order in which they can end: call order, but each call after its
    /// nested calls.
    pub(super) fn closing_order(&self) -> Vec<usize> {
        let mut nested: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut stack = Vec::new();
        for (at, open) in self.calls.iter().enumerate() {
            count_visit();
            let parent = open.call.parent_call_id.as_ref();
            match parent.and_then(|parent| self.index_by_id.get(parent)) {
                Some(parent) if *parent < at => nested.entry(*parent).or_default().push(at),
                Some(_) | None => stack.push(at),
            }
        }
        // Parents before their nested calls, in reverse.
        let mut order = Vec::with_capacity(self.calls.len());
        while let Some(at) = stack.pop() {
            order.push(at);
            stack.extend(nested.remove(&at).unwrap_or_default());
        }
        if !faulty!(RecoverParentsFirst) {
            order.reverse();
        }
        order
    }

    /// Returns the first call whose result is not in history yet. Scans all calls.
    pub(super) fn first_undelivered(&mut self) -> Option<&mut OpenCall> {
        self.calls
            .iter_mut()
            .inspect(|_| count_visit())
            .find(|open| open.is_requested && !open.is_result_delivered)
    }
}

impl FromIterator<OpenCall> for OpenCalls {
    fn from_iter<I: IntoIterator<Item = OpenCall>>(calls: I) -> Self {
        let mut this = Self::default();
        for open in calls {
            this.push(open);
        }
        this
    }
}
