//! Counts open prompts and pending interjections.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counter of open prompts or pending interjections.
#[derive(Clone, Default)]
pub(crate) struct SharedCounter(Arc<AtomicUsize>);

impl SharedCounter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Increments the counter until the guard is dropped.
    pub(crate) fn increment(&self) -> CounterGuard {
        CounterGuard {
            before: self.0.fetch_add(1, Ordering::AcqRel),
            counter: self.clone(),
        }
    }
}

/// Guard that decrements the counter on drop.
pub(crate) struct CounterGuard {
    counter: SharedCounter,
    pub(super) before: usize,
}

impl Drop for CounterGuard {
    fn drop(&mut self) {
        self.counter.0.fetch_sub(1, Ordering::AcqRel);
    }
}
