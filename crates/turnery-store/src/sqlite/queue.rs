//! Bounded queue to a thread that takes jobs in batches. Pushing never waits.
//!
//! Urgent jobs, whose answer somebody awaits, wake the thread. The others may stay for [`LINGER`], so
//! that a whole turn's journal is written at once, or not at all when its commit comes first.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Jobs that may wait. A store that is stuck refuses further ones at once.
pub(super) const CAPACITY: usize = 16_384;

/// Longest time that a job may stay which is not urgent.
const LINGER: Duration = Duration::from_millis(20);

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    jobs: VecDeque<T>,
    urgent: bool,
    closed: bool,
}

/// Why a job was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushError {
    /// [`CAPACITY`] jobs are waiting already.
    Full,
    /// The thread has ended or is about to.
    Closed,
}

/// Next thing for the thread to do.
pub(super) enum Taken<T> {
    Batch(VecDeque<T>),
    /// No job arrived in the given time.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                urgent: false,
                closed: false,
            }),
            filled: Condvar::new(),
        }
    }

    pub(super) fn push(&self, job: T, urgent: bool) -> Result<(), PushError> {
        let mut state = self.lock();
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.jobs.len() >= CAPACITY {
            return Err(PushError::Full);
        }
        state.jobs.push_back(job);
        let full = state.jobs.len() >= CAPACITY / 32;
        let wake = state.jobs.len() == 1 || (!state.urgent && (urgent || full));
        state.urgent |= urgent || full;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// True if the thread has something better to do than housekeeping.
    pub(super) fn has_jobs(&self) -> bool {
        let state = self.lock();
        state.closed || !state.jobs.is_empty()
    }

    /// Waits for jobs, at most for `idle` if given.
    pub(super) fn take(&self, idle: Option<Duration>) -> Taken<T> {
        let mut state = self.lock();
        let deadline = idle.map(|idle| Instant::now() + idle);
        while state.jobs.is_empty() {
            if state.closed {
                return Taken::Closed;
            }
            let in_time;
            (state, in_time) = self.wait(state, deadline);
            if !in_time {
                return Taken::Idle;
            }
        }
        let deadline = Instant::now() + LINGER;
        let mut in_time = true;
        while in_time && !state.urgent && !state.closed {
            (state, in_time) = self.wait(state, Some(deadline));
        }
        state.urgent = false;
        Taken::Batch(std::mem::take(&mut state.jobs))
    }

    /// Refuses further jobs; those that are queued are still handed out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Refuses further jobs and drops those that are queued.
    pub(super) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        // Dropped without the lock: a job's answer may wake somebody.
        drop(jobs);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flag is false once the deadline has passed.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State<T>>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, State<T>>, bool) {
        let Some(deadline) = deadline else {
            let state = self.filled.wait(state);
            return (state.unwrap_or_else(PoisonError::into_inner), true);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, false);
        }
        let state = self.filled.wait_timeout(state, left);
        (state.unwrap_or_else(PoisonError::into_inner).0, true)
    }
}
