//! Remembers the state of a file as shown to the user before they allowed a change.

use std::{
    collections::{VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::{Mutex, PoisonError},
};
use turnery_engine::CallId;

/// Calls that were shown but never run (refused, cancelled) leave their entry behind; the oldest are dropped.
const MAX_ENTRIES: usize = 64;

/// Hash of a file's text when its diff was shown; `None` if the file did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise(Option<u64>);

impl Promise {
    /// Returns the state of a file with this text.
    pub(crate) fn of(text: Option<&str>) -> Self {
        Self(text.map(|text| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        }))
    }
}

/// States shown for the calls of a session that have not run yet.
#[derive(Debug, Default)]
pub(crate) struct Promises(Mutex<VecDeque<(CallId, Promise)>>);

impl Promises {
    /// Stores the state shown for a call.
    pub(crate) fn give(&self, call_id: &CallId, promise: Promise) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(id, _)| id != call_id);
        if kept.len() == MAX_ENTRIES {
            kept.pop_front();
        }
        kept.push_back((call_id.clone(), promise));
    }

    /// Returns true if the file is unchanged since it was shown for the call, or if nothing was shown.
    /// Removes the entry.
    pub(crate) fn keep(&self, call_id: &CallId, now: Promise) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().position(|(id, _)| id == call_id) {
            Some(index) => kept.remove(index).is_none_or(|(_, promise)| promise == now),
            None => true,
        }
    }
}
