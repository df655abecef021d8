//! Passes jobs in batches to a thread through a bounded queue. Pushing never waits.
//!
//! The caller that pushes a job may also take the batch and run it in place of the thread. To keep jobs in
//! order, either takes a batch only after the other has finished the last one.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of waiting jobs. A stuck store refuses further jobs at once.
pub(super) const CAPACITY: usize = 16_384;

/// Longest time that a job with [`Urgency::Later`] stays in the queue.
const LINGER: Duration = Duration::from_millis(20);

/// Time at which a job is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Immediately: a caller awaits the answer.
    Now,
    /// After [`LINGER`] at the latest, so that the journal of a whole turn is written in one step, or not at
    /// all if its commit arrives first.
    Later,
    /// By the pushing caller, which then calls [`JobQueue::take`], or [`JobQueue::wake`] if it cannot.
    Inline,
}

pub(super) struct JobQueue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
}

struct QueueState<T> {
    jobs: VecDeque<T>,
    /// The thread must wake up, even without a job.
    is_urgent: bool,
    is_closed: bool,
}

/// Reason why a job was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushError {
    /// [`CAPACITY`] jobs are already waiting.
    Full,
    /// The thread has ended or is about to end.
    Closed,
}

/// Next event for the thread.
pub(super) enum QueueEvent {
    /// Jobs may be available.
    Jobs,
    /// No job arrived in the given time.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

impl<T> JobQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                jobs: VecDeque::new(),
                is_urgent: false,
                is_closed: false,
            }),
            filled: Condvar::new(),
        }
    }

    pub(super) fn push(&self, job: T, urgency: Urgency) -> Result<(), PushError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(PushError::Closed);
        }
        if state.jobs.len() >= CAPACITY {
            return Err(PushError::Full);
        }
        state.jobs.push_back(job);
        let is_urgent = urgency == Urgency::Now || state.jobs.len() >= CAPACITY / 32;
        let is_first = state.jobs.len() == 1 && urgency == Urgency::Later;
        let wake = is_first || (!state.is_urgent && is_urgent);
        state.is_urgent |= is_urgent;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Wakes the thread, to run queued jobs or to follow up on jobs run in its place.
    pub(super) fn wake(&self) {
        self.lock().is_urgent = true;
        self.filled.notify_one();
    }

    /// Takes all jobs.
    pub(super) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut self.lock().jobs)
    }

    /// Returns true if jobs take precedence over housekeeping.
    pub(super) fn has_jobs(&self) -> bool {
        let state = self.lock();
        state.is_closed || !state.jobs.is_empty()
    }

    /// Waits until jobs are available, for at most `idle` if given.
    pub(super) fn next(&self, idle: Option<Duration>) -> QueueEvent {
        let mut state = self.lock();
        let deadline = idle.map(|idle| Instant::now() + idle);
        while state.jobs.is_empty() && !state.is_urgent {
            if state.is_closed {
                return QueueEvent::Closed;
            }
            let in_time;
            (state, in_time) = self.wait(state, deadline);
            if !in_time {
                return QueueEvent::Idle;
            }
        }
        let deadline = Instant::now() + LINGER;
        let mut in_time = true;
        while in_time && !state.is_urgent && !state.is_closed {
            (state, in_time) = self.wait(state, Some(deadline));
        }
        state.is_urgent = false;
        QueueEvent::Jobs
    }

    /// Refuses further jobs; queued jobs are still handed out.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// Refuses further jobs and drops the queued ones.
    pub(super) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        // Dropped without the lock: answering a job may wake a task.
        drop(jobs);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns false in the flag once the deadline has passed.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState<T>>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, QueueState<T>>, bool) {
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
