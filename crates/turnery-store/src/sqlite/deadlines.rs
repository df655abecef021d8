//! Answers jobs whose deadline has passed while the thread that runs them is stuck in I/O.
//!
//! Uses its own thread and the real clock: the caller's runtime may have no timer, or a paused one.

use super::job_error::JobError;
use crate::StoreError;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Interval at which deadlines are checked while jobs are under way.
const TICK: Duration = Duration::from_millis(50);

/// Number of further checks after the last job. Waking the thread for each job would cost more than these
/// checks.
const IDLE_TICKS: u32 = 100;

/// Duration after which a job counts as stalled.
const STALL_THRESHOLD: Duration = Duration::from_millis(50);

/// Time allowed beyond the timeout of a job. A wait for a lock ends earlier, with its own error.
const GRACE: Duration = Duration::from_secs(1);

/// Sender of a job's answer, usable until the answer is given or the deadline passes.
pub(super) struct JobReply<T> {
    started_at: Instant,
    timeout: Duration,
    sender: Mutex<Option<oneshot::Sender<Result<T, StoreError>>>>,
}

impl<T> JobReply<T> {
    pub(super) fn new(
        timeout: Duration,
        answer: oneshot::Sender<Result<T, StoreError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            started_at: Instant::now(),
            timeout,
            sender: Mutex::new(Some(answer)),
        })
    }

    /// Sends the answer, unless the deadline has passed.
    pub(super) fn send(&self, result: Result<T, StoreError>) {
        if let Some(answer) = self.lock().take() {
            let _ = answer.send(result);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<oneshot::Sender<Result<T, StoreError>>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deadline of a job with any type of answer.
pub(super) trait Deadline: Send + Sync {
    /// Returns true once the job has been answered.
    fn is_answered(&self) -> bool;

    /// Returns the time left to wait for a lock.
    fn time_left(&self) -> Duration;

    /// Returns true if the job takes so long that others must go on without it.
    fn is_stalled(&self) -> bool;

    /// Answers with an error if the deadline has passed.
    fn expire(&self, path: &Path);
}

impl<T: Send> Deadline for JobReply<T> {
    fn is_answered(&self) -> bool {
        self.lock().is_none()
    }

    fn time_left(&self) -> Duration {
        self.timeout.saturating_sub(self.started_at.elapsed())
    }

    fn is_stalled(&self) -> bool {
        self.started_at.elapsed() > STALL_THRESHOLD
    }

    fn expire(&self, path: &Path) {
        if self.started_at.elapsed() > self.timeout + GRACE {
            self.send(Err(JobError::TimedOut(self.timeout).into_store_error(path)));
        }
    }
}

/// Deadlines of the jobs under way.
pub(super) struct DeadlineWatcher {
    path: PathBuf,
    /// Called at each check while a job is stalled.
    on_stall: Box<dyn Fn() + Send + Sync>,
    state: Mutex<DeadlineState>,
    changed: Condvar,
}

#[derive(Default)]
struct DeadlineState {
    /// True once the thread has been started.
    has_thread: bool,
    /// Weak: a job dropped by a panic is answered by being dropped.
    deadlines: Vec<Weak<dyn Deadline>>,
    /// True while the thread checks periodically.
    is_ticking: bool,
    is_closed: bool,
}

impl DeadlineWatcher {
    /// Creates a watcher. Call [`start`](Self::start) before the first deadline is added.
    pub(super) fn new(path: PathBuf, on_stall: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self {
            path,
            on_stall,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Starts the thread, unless it is running. Without it, a job that hangs is never answered.
    pub(super) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let mut state = self.lock();
        if !state.has_thread && !state.is_closed {
            let theirs = Arc::clone(self);
            thread::Builder::new()
                .name("store-deadlines".to_owned())
                .stack_size(128 << 10)
                .spawn(move || theirs.run())?;
            state.has_thread = true;
        }
        Ok(())
    }

    pub(super) fn add(&self, deadline: &Arc<dyn Deadline>) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.deadlines.push(Arc::downgrade(deadline));
        if !std::mem::replace(&mut state.is_ticking, true) {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut state = self.lock();
        // The first jobs follow soon.
        let mut ticks_left = IDLE_TICKS;
        while !state.is_closed {
            ticks_left = match state.deadlines.is_empty() {
                true => ticks_left.saturating_sub(1),
                false => IDLE_TICKS,
            };
            state.is_ticking = ticks_left > 0;
            state = if state.is_ticking {
                let waited = self.changed.wait_timeout(state, TICK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.changed.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
            let mut is_stalled = false;
            state.deadlines.retain(|deadline| {
                let Some(deadline) = deadline.upgrade() else {
                    return false;
                };
                deadline.expire(&self.path);
                let is_open = !deadline.is_answered();
                is_stalled |= is_open && deadline.is_stalled();
                is_open
            });
            if is_stalled {
                (self.on_stall)();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DeadlineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
