//! Execution: how the jobs of a worker are done, by its thread or in place of it.

use super::super::{
    db::Db,
    deadlines::{Deadline, Ticket},
    flush::Flush,
    inline::Inline,
    journal::Append,
    queue::{Next, Queue},
    tidy::{Occasion, TIME_AT_END},
};
use crate::{Lane, StoreError};
use std::{
    collections::{HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use turnery_engine::{LoopId, SessionId};

/// After this long without a job the log is copied back into the database, so that no commit has to.
const IDLE: Duration = Duration::from_secs(2);

/// After jobs that took longer, the next ones are left to the thread.
pub(super) const QUICK: Duration = Duration::from_millis(2);

/// How long the journal alone may wait for another process that writes. What cannot be written then is
/// kept for later.
const JOURNAL_PATIENCE: Duration = Duration::from_secs(1);

/// Journal entries that are kept for later while the disk is full or another process keeps the database
/// locked.
const UNWRITTEN: usize = 4096;

pub(super) type Work = Box<dyn FnOnce(Result<&mut Db, StoreError>) + Send>;

/// The loops whose journals a job will drop, each for the holder of a lane.
pub(in super::super) type Settles = Vec<(Lane, LoopId)>;

pub(super) enum Job {
    Append {
        append: Append,
        /// Answered when it is written, if anybody waits for that.
        ticket: Option<Arc<Ticket<()>>>,
    },
    Call {
        order: Order,
        deadline: Arc<dyn Deadline>,
        work: Work,
    },
}

/// Says how a job is to be done.
pub(super) struct Order {
    pub(super) patience: Duration,
    pub(super) flush: Flush,
    pub(super) settles: Settles,
    /// Session whose journal the job needs to be complete.
    pub(super) needs: Option<SessionId>,
    /// True if the job is usually a short one.
    pub(super) is_short: bool,
}

/// The jobs, and what whoever does them works with.
pub(super) struct Shared {
    path: PathBuf,
    pub(super) queue: Queue<Job>,
    state: Mutex<State>,
    is_quick: AtomicBool,
    /// Jobs are being done in place of the thread.
    is_inline: AtomicBool,
}

#[derive(Default)]
struct State {
    /// `None` before the first job.
    db: Option<Db>,
    /// Events that could not be written yet.
    appends: Vec<Append>,
    /// Cut where they could not be written.
    cut: CutJournals,
}

/// After a panic nobody waits for an answer any more.
struct Abandon<'a>(&'a Queue<Job>);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

pub(super) fn hole(append: &Append) -> StoreError {
    StoreError::Broken(format!(
        "earlier events of loop {} are not in its journal; journal it again from its first event",
        append.loop_id()
    ))
}

/// Loops whose journal has lost events. What follows them is left out too: a journal that ends early is
/// honest, one with a gap is not.
#[derive(Default)]
pub(in super::super) struct CutJournals(Mutex<HashSet<LoopId>>);

impl CutJournals {
    /// False if earlier events of the loop are missing. A loop that begins again is always admitted.
    pub(super) fn admits(&self, append: &Append) -> bool {
        let mut cut = self.lock();
        if append.begins() {
            cut.remove(append.loop_id());
        }
        cut.is_empty() || !cut.contains(append.loop_id())
    }

    pub(in super::super) fn cut(&self, loop_id: LoopId, error: &str) {
        tracing::warn!(%loop_id, error, "the journal of a loop ends early");
        self.lock().insert(loop_id);
    }

    pub(super) fn settle(&self, loop_id: &LoopId) {
        self.lock().remove(loop_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LoopId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            queue: Queue::new(),
            state: Mutex::default(),
            is_quick: AtomicBool::new(false),
            is_inline: AtomicBool::new(false),
        }
    }

    /// Returns true if the last jobs were done quickly.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all jobs until the queue is closed.
    pub(super) fn run(self: Arc<Self>) {
        let _abandon = Abandon(&self.queue);
        loop {
            let idle = self.state().has_rest().then_some(IDLE);
            match self.queue.next(idle) {
                Next::Closed => {
                    // The connection is closed by the thread that is waited for.
                    let state = std::mem::take(&mut *self.state());
                    return state.end(&self.path);
                }
                Next::Idle => self.state().rest(&self),
                Next::Jobs => {
                    let mut state = self.state();
                    self.work_off(&mut state);
                    let log = state.db.as_ref().map(|db| Arc::clone(&db.log));
                    drop(state);
                    // Others may use the connection meanwhile.
                    if let Some(log) = log {
                        log.pay();
                    }
                }
            }
        }
    }

    /// Does what is queued in place of the thread, unless that is at work.
    pub(super) fn work_inline(&self) {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return self.queue.wake(),
        };
        if state.db.is_none() {
            return self.queue.wake();
        }
        let _abandon = Abandon(&self.queue);
        let had_rest = state.has_rest();
        self.is_inline.store(true, Ordering::Relaxed);
        self.work_off(&mut state);
        self.is_inline.store(false, Ordering::Relaxed);
        let is_owed = state.db.as_ref().is_some_and(|db| db.log.is_owed());
        let has_rest = state.has_rest();
        drop(state);
        if is_owed || (has_rest && !had_rest) {
            self.queue.wake();
        }
    }

    /// A job takes long. If it is done here, another thread of the runtime has to take over the rest; if its
    /// task was never begun, the thread does it.
    pub(super) fn on_stall(&self, inline: &Inline) {
        if self.is_inline.load(Ordering::Relaxed) {
            (inline.on_stall)();
        }
        self.queue.wake();
    }

    /// Does all jobs that are queued.
    fn work_off(&self, state: &mut State) {
        let batch = self.queue.take();
        if batch.is_empty() {
            return;
        }
        let begun = Instant::now();
        let State { db, appends, cut } = state;
        let db = match db {
            Some(db) => Ok(db),
            None => Db::open(&self.path).map(|opened| db.insert(opened)),
        };
        match db {
            Ok(db) => work_off(db, &self.path, batch, appends, cut),
            Err(error) => refuse(batch, &error, cut),
        }
        let is_quick = begun.elapsed() < QUICK;
        self.is_quick.store(is_quick, Ordering::Relaxed);
    }
}

impl State {
    /// Returns true if there is something to do once nothing else is asked for.
    fn has_rest(&self) -> bool {
        let has_rest = |db: &Db| db.dirty || db.tidy.is_due() || !self.appends.is_empty();
        self.db.as_ref().is_some_and(has_rest)
    }

    fn rest(&mut self, shared: &Arc<Shared>) {
        if let Some(db) = &mut self.db {
            journal(
                db,
                &shared.path,
                &mut self.appends,
                &self.cut,
                JOURNAL_PATIENCE,
            );
            db.checkpoint();
            let waiting = Arc::clone(shared);
            db.clean_up(&shared.path, Occasion::Idle, move || {
                waiting.queue.has_jobs()
            });
        }
    }

    fn end(mut self, path: &Path) {
        if let Some(db) = &mut self.db {
            journal(db, path, &mut self.appends, &self.cut, JOURNAL_PATIENCE);
            if db.tidy.is_due() {
                let end = Instant::now() + TIME_AT_END;
                db.clean_up(path, Occasion::End, move || Instant::now() >= end);
            }
            db.log.pay();
        }
    }
}

fn refuse(batch: VecDeque<Job>, error: &StoreError, cut: &CutJournals) {
    for job in batch {
        match job {
            Job::Append { append, ticket } => {
                cut.cut(append.loop_id().clone(), &error.to_string());
                if let Some(ticket) = ticket {
                    ticket.answer(Err(error.clone()));
                }
            }
            Job::Call { work, .. } => work(Err(error.clone())),
        }
    }
}

fn work_off(
    db: &mut Db,
    path: &Path,
    batch: VecDeque<Job>,
    appends: &mut Vec<Append>,
    cut: &CutJournals,
) {
    for job in batch {
        match job {
            Job::Append { append, ticket } => {
                let kept = keep(append, appends, cut);
                if let Some(ticket) = ticket {
                    // With all that came before it, and in order: a journal must not have a gap.
                    let written =
                        kept.and_then(|()| db.journal(path, appends, cut, ticket.time_left()));
                    ticket.answer(written);
                }
            }
            Job::Call {
                order,
                deadline,
                work,
            } => {
                if deadline.is_answered() {
                    continue;
                }
                // What the commit would only remove again need not be written.
                for (lane, loop_id) in &order.settles {
                    appends.retain(|append| !append.is_of(lane, loop_id));
                    cut.settle(loop_id);
                }
                let written = db.journal(path, appends, cut, deadline.time_left());
                if let (Err(error), Some(session)) = (written, order.needs)
                    && appends.iter().any(|append| append.is_in(&session))
                {
                    work(Err(error));
                    continue;
                }
                let ready = db
                    .wait_for_locks(deadline.time_left())
                    .and_then(|()| db.check_files())
                    .and_then(|()| db.log.ready(order.flush, &db.sql));
                match ready {
                    Ok(()) => work(Ok(db)),
                    Err(fault) => work(Err(fault.at(path))),
                }
                if order.flush == Flush::Now {
                    db.log.owe();
                    db.tidy.note_commit();
                }
            }
        }
    }
    journal(db, path, appends, cut, JOURNAL_PATIENCE);
    db.dirty = true;
}

/// Keeps events until they are written. Fails if earlier ones of the loop are missing.
fn keep(append: Append, appends: &mut Vec<Append>, cut: &CutJournals) -> Result<(), StoreError> {
    if append.begins() {
        // A loop whose journal is written again from its beginning.
        appends.retain(|earlier| !earlier.is_of(append.lane(), append.loop_id()));
    }
    if appends.len() >= UNWRITTEN {
        appends.retain(|earlier| earlier.loop_id() != append.loop_id());
        let loop_id = append.loop_id().clone();
        cut.cut(loop_id, "too much is waiting to be written");
    }
    if !cut.admits(&append) {
        return Err(hole(&append));
    }
    appends.push(append);
    Ok(())
}

/// Writes what is kept, as far as that succeeds; the rest stays for the next time, and has been logged.
fn journal(
    db: &mut Db,
    path: &Path,
    appends: &mut Vec<Append>,
    cut: &CutJournals,
    patience: Duration,
) {
    let _ = db.journal(path, appends, cut, patience);
}
