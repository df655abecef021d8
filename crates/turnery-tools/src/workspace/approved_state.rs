//! Remembers the state of a file as shown to the user before they allowed a change.

use std::{
    collections::{VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::Path,
    sync::{Mutex, PoisonError},
};
use turnery_engine::CallId;

/// Calls that were shown but never run (refused, cancelled) leave their entry behind; the oldest are dropped.
const MAX_ENTRIES: usize = 64;

/// Hash of a file's path and of its text when a change was shown for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState(u64);

impl FileState {
    /// Returns the state of the file at a resolved path. `text` is `None` if the file does not exist or if
    /// its text does not matter.
    pub(crate) fn new(path: &Path, text: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (path, text).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// States shown for the calls of a session that have not run yet.
#[derive(Debug, Default)]
pub(crate) struct ApprovedStates(Mutex<VecDeque<(CallId, FileState)>>);

impl ApprovedStates {
    /// Stores the state shown for a call.
    pub(crate) fn remember(&self, call_id: &CallId, state: FileState) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(id, _)| id != call_id);
        if kept.len() == MAX_ENTRIES {
            kept.pop_front();
        }
        kept.push_back((call_id.clone(), state));
    }

    /// Returns true if the file is unchanged since it was shown for the call, or if nothing was shown.
    /// Removes the entry.
    pub(crate) fn check_unchanged(&self, call_id: &CallId, now: FileState) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().position(|(id, _)| id == call_id) {
            Some(index) => kept.remove(index).is_none_or(|(_, promise)| promise == now),
            None => true,
        }
    }
}
