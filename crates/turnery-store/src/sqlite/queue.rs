//! Queue: a bounded way to a thread that takes jobs in batches.
//!
//! Jobs that somebody waits for are urgent and wake the thread. The others may lie for [`LINGER`], so
//! that a whole turn's journal is written at once, or not at all when its commit comes first.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Jobs that may wait. Whoever finds the queue full waits for the disk.
const CAPACITY: usize = 1024;

/// The longest that a job which nobody waits for may lie.
const LINGER: Duration = Duration::from_millis(20);

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    emptied: Condvar,
}

struct State<T> {
    jobs: VecDeque<T>,
    urgent: bool,
    closed: bool,
    /// A batch has been given out, and the thread is not through with it.
    at_work: bool,
}

/// What the thread is to do next.
pub(super) enum Taken<T> {
    Batch(VecDeque<T>),
    /// Nothing came for as long as asked.
    Idle,
    /// Closed, and all that was in it has been given out.
    Closed,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                urgent: false,
                closed: false,
                at_work: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Gives the job back if the queue is closed.
    pub(super) fn push(&self, job: T, urgent: bool) -> Result<(), T> {
        let mut state = self.lock();
        while state.jobs.len() >= CAPACITY && !state.closed {
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        let full = state.jobs.len() >= CAPACITY / 2;
        let wake = state.jobs.len() == 1 || (!state.urgent && (urgent || full));
        state.urgent |= urgent || full;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// All that went in has been done.
    pub(super) fn is_done(&self) -> bool {
        let state = self.lock();
        state.jobs.is_empty() && !state.at_work
    }

    /// The thread has done its batch, but does not come back for the next yet.
    pub(super) fn rest(&self) {
        self.lock().at_work = false;
    }

    /// Wait for jobs, at most for `idle` if given.
    pub(super) fn take(&self, idle: Option<Duration>) -> Taken<T> {
        let mut state = self.lock();
        state.at_work = false;
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
        let batch = std::mem::take(&mut state.jobs);
        state.at_work = true;
        drop(state);
        self.emptied.notify_all();
        Taken::Batch(batch)
    }

    /// Nothing goes in any more; what is in it is still given out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Nothing goes in any more, and what is in it is dropped.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().jobs.clear();
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
