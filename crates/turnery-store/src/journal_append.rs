//! Events on their way to the journal.

use crate::{Lane, StoreError};
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};
use turnery_engine::{Event, EventKind, LoopId, SessionId};

/// Events to be journalled.
pub(crate) struct JournalAppend {
    pub(crate) lane: Lane,
    pub(crate) loop_id: LoopId,
    pub(crate) events: Vec<Event>,
}

impl JournalAppend {
    /// Returns `None` if no event would be stored: deltas of the model's text are not journalled.
    pub(crate) fn new(lane: &Lane, loop_id: &LoopId, mut events: Vec<Event>) -> Option<Self> {
        events.retain(|event| !matches!(event.kind, EventKind::Delta { .. }));
        (!events.is_empty()).then(|| Self {
            lane: lane.clone(),
            loop_id: loop_id.clone(),
            events,
        })
    }

    /// True if these are the first events of the loop.
    pub(crate) fn starts_loop(&self) -> bool {
        self.events.first().is_some_and(|event| event.seq == 0)
    }

    pub(crate) fn is_in_session(&self, session: &SessionId) -> bool {
        self.lane.session_id == *session
    }

    pub(crate) fn is_for(&self, lane: &Lane, loop_id: &LoopId) -> bool {
        self.lane == *lane && self.loop_id == *loop_id
    }
}

/// Returns the error of events that cannot follow, because earlier ones are missing.
pub(crate) fn gap_error(append: &JournalAppend) -> StoreError {
    StoreError::Broken(format!(
        "earlier events of loop {} are not in its journal; journal it again from its first event",
        append.loop_id
    ))
}

/// Loops whose journal has lost events. Later events of these loops are dropped too: a journal may end early,
/// but must not have a gap.
#[derive(Default)]
pub(crate) struct TruncatedJournals(Mutex<HashSet<LoopId>>);

impl TruncatedJournals {
    /// Returns false if earlier events of the loop are missing. A loop that starts again is always accepted.
    pub(crate) fn accepts(&self, append: &JournalAppend) -> bool {
        let mut truncated = self.lock();
        if append.starts_loop() {
            truncated.remove(&append.loop_id);
        }
        truncated.is_empty() || !truncated.contains(&append.loop_id)
    }

    pub(crate) fn add(&self, loop_id: LoopId, error: &str) {
        tracing::warn!(%loop_id, error, "the journal of a loop ends early");
        self.lock().insert(loop_id);
    }

    /// Adds a loop whose commit may make its journal superfluous.
    #[cfg(feature = "postgres")]
    pub(crate) fn add_silently(&self, loop_id: LoopId) {
        self.lock().insert(loop_id);
    }

    pub(crate) fn clear(&self, loop_id: &LoopId) {
        self.lock().remove(loop_id);
    }

    #[cfg(test)]
    pub(crate) fn clear_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LoopId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
