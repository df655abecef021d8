//! Bounded queue to a thread that takes jobs in batches. Pushing never waits.
//!
//! The caller that pushes may also take the batch and do it in place of the thread. To keep the order of jobs,
//! either takes a batch only once the other has done the last one.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Jobs that may wait. A store that is stuck refuses further ones at once.
pub(super) const CAPACITY: usize = 16_384;

/// Longest time that a job may stay which is not urgent.
const LINGER: Duration = Duration::from_millis(20);

/// When a job is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// At once: somebody awaits its answer.
    Now,
    /// After [`LINGER`] at the latest, so that a whole turn's journal is written at once, or not at all
    /// when its commit comes first.
    Later,
    /// By whoever pushed it, who calls [`Queue::take`] next, or [`Queue::wake`] if it cannot.
    Here,
}

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    jobs: VecDeque<T>,
    /// The thread is to come round, even if there is no job.
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
pub(super) enum Next {
    /// There may be jobs to be taken.
    Jobs,
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

    pub(super) fn push(&self, job: T, urgency: Urgency) -> Result<(), PushError> {
        let mut state = self.lock();
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.jobs.len() >= CAPACITY {
            return Err(PushError::Full);
        }
        state.jobs.push_back(job);
        let urgent = urgency == Urgency::Now || state.jobs.len() >= CAPACITY / 32;
        let is_first = state.jobs.len() == 1 && urgency == Urgency::Later;
        let wake = is_first || (!state.urgent && urgent);
        state.urgent |= urgent;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Has the thread come round: for the jobs that there are, or to see what was done in its place.
    pub(super) fn wake(&self) {
        self.lock().urgent = true;
        self.filled.notify_one();
    }

    /// Takes all jobs.
    pub(super) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut self.lock().jobs)
    }

    /// True if the thread has something better to do than housekeeping.
    pub(super) fn has_jobs(&self) -> bool {
        let state = self.lock();
        state.closed || !state.jobs.is_empty()
    }

    /// Waits until jobs are to be taken, at most for `idle` if given.
    pub(super) fn next(&self, idle: Option<Duration>) -> Next {
        let mut state = self.lock();
        let deadline = idle.map(|idle| Instant::now() + idle);
        while state.jobs.is_empty() && !state.urgent {
            if state.closed {
                return Next::Closed;
            }
            let in_time;
            (state, in_time) = self.wait(state, deadline);
            if !in_time {
                return Next::Idle;
            }
        }
        let deadline = Instant::now() + LINGER;
        let mut in_time = true;
        while in_time && !state.urgent && !state.closed {
            (state, in_time) = self.wait(state, Some(deadline));
        }
        state.urgent = false;
        Next::Jobs
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
