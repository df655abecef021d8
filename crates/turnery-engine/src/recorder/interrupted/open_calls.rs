//! The calls of an interrupted turn, found by id.
//!
//! A journal holds several events for each call, so no event may cause a search through all calls.

use crate::{CallId, Disposition, FailureKind, Message, ToolCall, ToolEnvelope};
use std::collections::HashMap;

const RUNNING: &str = "interrupted: turnery ended while this call was running, so it may or may not \
     have had effects; check before repeating it";

const NOT_RUN: &str = "not run: turnery ended before this call began";

/// A call of the turn.
pub(super) struct OpenCall {
    pub(super) call: ToolCall,
    /// Whether a message has asked for it, so that its result is due.
    pub(super) wanted: bool,
    pub(super) announced: bool,
    pub(super) asked: bool,
    pub(super) denied: Option<String>,
    /// Whether its bracket is open, and it really runs.
    pub(super) started: Option<bool>,
    /// For the model, once the call has ended.
    pub(super) result: Option<Message>,
    pub(super) told: bool,
}

impl OpenCall {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            call: call.clone(),
            wanted: true,
            announced: false,
            asked: false,
            denied: None,
            started: None,
            result: None,
            told: false,
        }
    }

    /// How a call ends that the process did not see the end of.
    pub(super) fn end(&self) -> (ToolEnvelope, Disposition) {
        match (&self.denied, self.started) {
            (Some(why), _) => (
                ToolEnvelope::failed(FailureKind::Denied, why.clone()),
                Disposition::Denied,
            ),
            (None, Some(true)) => (
                ToolEnvelope::failed(FailureKind::Cancelled, RUNNING),
                Disposition::Cancelled,
            ),
            (None, Some(false) | None) => (
                ToolEnvelope::failed(FailureKind::Skipped, NOT_RUN),
                Disposition::Skipped,
            ),
        }
    }
}

/// The calls of a turn, in call order.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: Vec<OpenCall>,
    /// Index of each call. The first of several calls with the same id counts.
    places: HashMap<CallId, usize>,
}

impl OpenCalls {
    pub(super) fn push(&mut self, open: OpenCall) {
        let call_id = open.call.call_id.clone();
        self.places.entry(call_id).or_insert(self.calls.len());
        self.calls.push(open);
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn get(&self, at: usize) -> &OpenCall {
        visit();
        &self.calls[at]
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut OpenCall {
        visit();
        &mut self.calls[at]
    }

    pub(super) fn find(&mut self, call_id: &CallId) -> Option<&mut OpenCall> {
        let at = *self.places.get(call_id)?;
        Some(self.get_mut(at))
    }

    /// Returns the first call whose result the model is still to be told. Looks through all calls.
    pub(super) fn first_untold(&mut self) -> Option<&mut OpenCall> {
        self.calls
            .iter_mut()
            .inspect(|_| visit())
            .find(|open| open.wanted && !open.told)
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

#[cfg(test)]
thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a look at a call, for the test that bounds the work of closing a journal.
fn visit() {
    #[cfg(test)]
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

/// Looks at calls on this thread so far.
#[cfg(test)]
pub(crate) fn visits() -> u64 {
    VISITS.with(std::cell::Cell::get)
}
