//! Answers jobs whose time is up, while the thread that should do them is stuck in the disk.
//!
//! A thread of its own on the real clock: the caller's runtime may have none, or a paused one.

use super::fault::Fault;
use crate::StoreError;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// How often deadlines are looked at while jobs are under way.
const TICK: Duration = Duration::from_millis(50);

/// How many more times they are looked at after the last job. Waking the thread for each job would cost a
/// session in use more than the looking does.
const TICKS_AFTER: u32 = 100;

/// A job that takes longer is taken to hang.
const STALL: Duration = Duration::from_millis(50);

/// How much longer than its patience a job may take. A wait for a lock ends before, with an error that
/// says so.
const GRACE: Duration = Duration::from_secs(1);

/// Receiver of a job's answer, until the answer is given or its time is up.
pub(super) struct Ticket<T> {
    begun: Instant,
    patience: Duration,
    answer: Mutex<Option<oneshot::Sender<Result<T, StoreError>>>>,
}

impl<T> Ticket<T> {
    pub(super) fn new(
        patience: Duration,
        answer: oneshot::Sender<Result<T, StoreError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            patience,
            answer: Mutex::new(Some(answer)),
        })
    }

    /// Gives the answer, unless the time was up before.
    pub(super) fn answer(&self, result: Result<T, StoreError>) {
        if let Some(answer) = self.lock().take() {
            let _ = answer.send(result);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<oneshot::Sender<Result<T, StoreError>>>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deadline of a job, whatever it answers.
pub(super) trait Deadline: Send + Sync {
    /// True once the job has been answered.
    fn is_answered(&self) -> bool;

    /// Time left to wait for a lock.
    fn time_left(&self) -> Duration;

    /// True if it takes so long that others have to go on without it.
    fn is_stalled(&self) -> bool;

    /// Answers with an error if the time is up.
    fn expire(&self, path: &Path);
}

impl<T: Send> Deadline for Ticket<T> {
    fn is_answered(&self) -> bool {
        self.lock().is_none()
    }

    fn time_left(&self) -> Duration {
        self.patience.saturating_sub(self.begun.elapsed())
    }

    fn is_stalled(&self) -> bool {
        self.begun.elapsed() > STALL
    }

    fn expire(&self, path: &Path) {
        if self.begun.elapsed() > self.patience + GRACE {
            self.answer(Err(Fault::Stuck(self.patience).at(path)));
        }
    }
}

/// Deadlines of the jobs under way.
pub(super) struct Deadlines {
    path: PathBuf,
    /// Called at each look while a job hangs.
    on_stall: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    /// Held by the jobs alone: one that is dropped, as by a panic, is answered by that.
    tickets: Vec<Weak<dyn Deadline>>,
    /// The thread looks again by itself.
    ticking: bool,
    closed: bool,
}

impl Deadlines {
    /// Starts the thread.
    pub(super) fn start(
        path: PathBuf,
        on_stall: Box<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<Arc<Self>> {
        let deadlines = Arc::new(Self {
            path,
            on_stall,
            state: Mutex::default(),
            more: Condvar::new(),
        });
        let theirs = Arc::clone(&deadlines);
        thread::Builder::new()
            .name("store-deadlines".to_owned())
            .stack_size(128 << 10)
            .spawn(move || theirs.run())?;
        Ok(deadlines)
    }

    pub(super) fn add(&self, ticket: &Arc<dyn Deadline>) {
        let mut state = self.lock();
        state.tickets.push(Arc::downgrade(ticket));
        if !std::mem::replace(&mut state.ticking, true) {
            drop(state);
            self.more.notify_one();
        }
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.more.notify_one();
    }

    fn run(&self) {
        let mut state = self.lock();
        let mut ticks_left: u32 = 0;
        while !state.closed {
            ticks_left = match state.tickets.is_empty() {
                true => ticks_left.saturating_sub(1),
                false => TICKS_AFTER,
            };
            state.ticking = ticks_left > 0;
            state = if state.ticking {
                let waited = self.more.wait_timeout(state, TICK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.more.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
            let mut is_stalled = false;
            state.tickets.retain(|ticket| {
                let Some(ticket) = ticket.upgrade() else {
                    return false;
                };
                ticket.expire(&self.path);
                let is_open = !ticket.is_answered();
                is_stalled |= is_open && ticket.is_stalled();
                is_open
            });
            if is_stalled {
                (self.on_stall)();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
