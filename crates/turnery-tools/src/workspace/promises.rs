//! Promises: what a person was shown of a file before they allowed a call to change it.

use std::{
    collections::{VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::{Mutex, PoisonError},
};
use turnery_engine::CallId;

/// Calls that were shown but never run (refused, cancelled) leave their entry behind: the oldest go.
const KEPT: usize = 64;

/// The state that a file was in when its diff was shown; `None` when it did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise(Option<u64>);

impl Promise {
    /// Of this text.
    pub(crate) fn of(text: Option<&str>) -> Self {
        Self(text.map(|text| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        }))
    }
}

/// One entry for each call of the session that has been shown and not run yet.
#[derive(Debug, Default)]
pub(crate) struct Promises(Mutex<VecDeque<(CallId, Promise)>>);

impl Promises {
    /// Remember what was shown for a call.
    pub(crate) fn give(&self, call_id: &CallId, promise: Promise) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(id, _)| id != call_id);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((call_id.clone(), promise));
    }

    /// Whether the file is still as it was shown for the call; true when nothing was shown.
    pub(crate) fn keep(&self, call_id: &CallId, now: Promise) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().position(|(id, _)| id == call_id) {
            Some(index) => kept.remove(index).is_none_or(|(_, promise)| promise == now),
            None => true,
        }
    }
}
