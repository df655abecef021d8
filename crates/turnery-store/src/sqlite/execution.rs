//! Executes the jobs of a worker, on its thread or in place of it.

use super::{
    cleanup::{CleanupTrigger, TIME_AT_SHUTDOWN},
    db::Db,
    deadlines::{Deadline, DeadlineWatcher, JobReply},
    flush::Flush,
    inline_runtime::{InlineRuntime, yield_to_ready_tasks},
    journal,
    open_files::DatabaseIdentity,
    queue::{JobQueue, QueueEvent},
};
use crate::{
    Durability, Lane, StoreError,
    journal_append::{JournalAppend, TruncatedJournals, gap_error},
    owner::process_identity,
};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use turnery_engine::{LoopId, SessionId};

/// Idle time after which the log is checkpointed, so that commits need not do it.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// Duration of a batch above which the next jobs are left to the thread.
pub(super) const MAX_QUICK_BATCH: Duration = Duration::from_millis(2);

/// Duration of the preparation above which the first jobs are left to the thread. It opens the database, and flushes
/// twice.
const MAX_QUICK_PREPARATION: Duration = Duration::from_millis(20);

/// Number of times that the tasks woken by an inline job go first: until a response to a client is written.
const YIELDS_BEFORE_WAKE: usize = 3;

/// Longest time that the journal alone waits for another writing process. Events that cannot be written then
/// are kept for later.
const JOURNAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of journal entries kept while the disk is full or the database is locked.
const MAX_UNWRITTEN: usize = 4096;

pub(super) type JobFn = Box<dyn FnOnce(Result<&mut Db, StoreError>) + Send>;

/// Loops whose journals a job drops, each with the lane of its holder.
pub(super) type SettledLoops = Vec<(Lane, LoopId)>;

pub(super) enum Job {
    /// Prepares for the first of the other jobs, unless there is no database yet. Starts the watcher of their deadlines.
    Prepare(Arc<DeadlineWatcher>),
    Append {
        append: JournalAppend,
        /// Answered once the events are written, if the caller awaits that.
        reply: Option<Arc<JobReply<()>>>,
    },
    Call {
        options: JobOptions,
        deadline: Arc<dyn Deadline>,
        work: JobFn,
    },
}

/// Options of a job.
pub(super) struct JobOptions {
    pub(super) timeout: Duration,
    pub(super) flush: Flush,
    pub(super) settled_loops: SettledLoops,
    /// Session whose journal must be complete before the job runs.
    pub(super) needs_journal_of: Option<SessionId>,
    /// True if the job is usually short.
    pub(super) is_short: bool,
}

impl JobOptions {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            flush: Flush::Later,
            settled_loops: SettledLoops::new(),
            needs_journal_of: None,
            is_short: false,
        }
    }
}

/// Queue and state shared by the executors of the jobs.
pub(super) struct WorkerShared {
    path: PathBuf,
    durability: Durability,
    identity: Arc<DatabaseIdentity>,
    pub(super) queue: JobQueue<Job>,
    state: Mutex<WorkerState>,
    was_quick: AtomicBool,
    /// True while jobs run in place of the thread.
    is_inline: AtomicBool,
}

#[derive(Default)]
struct WorkerState {
    /// `None` before the first job.
    db: Option<Db>,
    /// Events that could not be written yet.
    appends: Vec<JournalAppend>,
    /// Journals truncated because their events could not be written.
    truncated: TruncatedJournals,
}

/// Result of running jobs in place of the thread.
enum InlineBatch {
    /// Nothing is left to do.
    Done,
    /// The thread has to follow up.
    NeedsThread,
    /// The thread has to run the jobs.
    NotRun,
}

/// Closes the queue after a panic, so that no caller waits for an answer.
struct AbandonOnPanic<'a>(&'a JobQueue<Job>);

impl Drop for AbandonOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

impl WorkerShared {
    pub(super) fn new(
        path: PathBuf,
        durability: Durability,
        identity: Arc<DatabaseIdentity>,
    ) -> Self {
        Self {
            path,
            durability,
            identity,
            queue: JobQueue::new(),
            state: Mutex::default(),
            was_quick: AtomicBool::new(false),
            is_inline: AtomicBool::new(false),
        }
    }

    /// Returns true if the last jobs were done quickly.
    pub(super) fn was_quick(&self) -> bool {
        self.was_quick.load(Ordering::Relaxed)
    }

    /// Returns true if the database is open and nothing is to be done.
    pub(super) fn is_idle(&self) -> bool {
        let is_done = |state: MutexGuard<'_, WorkerState>| {
            // Events that wait for the lock of another process would be written first.
            state.db.is_some() && state.appends.is_empty()
        };
        !self.queue.has_jobs() && self.state.try_lock().is_ok_and(is_done)
    }

    fn lock_state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all jobs until the queue is closed.
    pub(super) fn run(self: Arc<Self>) {
        let _abandon = AbandonOnPanic(&self.queue);
        loop {
            let idle = self.lock_state().has_idle_work().then_some(IDLE_AFTER);
            match self.queue.next(idle) {
                QueueEvent::Closed => {
                    // The connection must be closed by the thread that is joined.
                    let state = std::mem::take(&mut *self.lock_state());
                    return state.shut_down(&self.path);
                }
                QueueEvent::Idle => self.lock_state().do_idle_work(&self),
                QueueEvent::Jobs => {
                    let mut state = self.lock_state();
                    self.run_batch(&mut state);
                    let log = state.db.as_ref().map(|db| Arc::clone(&db.wal));
                    drop(state);
                    // Flushed without the state, so that others can use the connection meanwhile.
                    if let Some(log) = log {
                        log.flush_pending();
                    }
                }
            }
        }
    }

    /// Runs queued jobs in place of the thread, unless the thread is busy. Then wakes it if something is left to do, such
    /// as a flush, but only after the tasks that the jobs' answers wake: they have a response to write.
    pub(super) async fn work_inline(&self) {
        match self.run_batch_inline() {
            InlineBatch::Done => return,
            InlineBatch::NotRun => {}
            InlineBatch::NeedsThread => {
                for _ in 0..YIELDS_BEFORE_WAKE {
                    yield_to_ready_tasks().await;
                }
            }
        }
        self.queue.wake();
    }

    fn run_batch_inline(&self) -> InlineBatch {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return InlineBatch::NotRun,
        };
        if state.db.is_none() {
            return InlineBatch::NotRun;
        }
        let _abandon = AbandonOnPanic(&self.queue);
        let had_rest = state.has_idle_work();
        self.is_inline.store(true, Ordering::Relaxed);
        self.run_batch(&mut state);
        self.is_inline.store(false, Ordering::Relaxed);
        let is_owed = state
            .db
            .as_ref()
            .is_some_and(|db| db.wal.is_flush_pending());
        let has_idle_work = state.has_idle_work();
        match is_owed || (has_idle_work && !had_rest) {
            true => InlineBatch::NeedsThread,
            false => InlineBatch::Done,
        }
    }

    /// Handles a slow job: if it runs inline, another runtime thread must take over the other tasks; if its
    /// task has not started, the thread runs the job.
    pub(super) fn on_stall(&self, inline: &InlineRuntime) {
        if self.is_inline.load(Ordering::Relaxed) {
            (inline.on_stall)();
        }
        self.queue.wake();
    }

    /// Runs all queued jobs on the calling thread.
    #[cfg(test)]
    pub(super) fn run_queued(&self) {
        self.run_batch(&mut self.lock_state());
    }

    /// Forgets everything that is only in memory, except for the connection itself.
    #[cfg(test)]
    pub(super) fn forget(&self) {
        drop(self.queue.take());
        let mut state = self.lock_state();
        state.appends.clear();
        state.truncated.clear_all();
        if let Some(db) = &mut state.db {
            db.empty_journals.clear();
            db.loop_numbers.clear();
        }
    }

    /// Runs all queued jobs.
    fn run_batch(&self, state: &mut WorkerState) {
        let batch = self.queue.take();
        if batch.is_empty() {
            return;
        }
        let begun = Instant::now();
        let WorkerState {
            db,
            appends,
            truncated,
        } = state;
        let is_prepare = |job: &Job| matches!(job, Job::Prepare(_));
        let only_prepares = batch.iter().all(is_prepare);
        let begins_log = batch.iter().any(is_prepare);
        if db.is_none() && only_prepares && !self.path.exists() {
            return;
        }
        let db = match db {
            Some(db) => Ok(db),
            None => Db::open_same(&self.path, self.durability, &self.identity, begins_log)
                .map(|opened| db.insert(opened)),
        };
        match db {
            Ok(db) => run_jobs(db, &self.path, batch, appends, truncated),
            Err(error) => refuse_batch(batch, &error, truncated),
        }
        let limit = match only_prepares {
            true => MAX_QUICK_PREPARATION,
            false => MAX_QUICK_BATCH,
        };
        self.was_quick
            .store(begun.elapsed() < limit, Ordering::Relaxed);
    }
}

impl WorkerState {
    /// Returns true if there is housekeeping to do while idle.
    fn has_idle_work(&self) -> bool {
        let has_idle_work =
            |db: &Db| db.needs_checkpoint || db.cleanup.is_due() || !self.appends.is_empty();
        self.db.as_ref().is_some_and(has_idle_work)
    }

    /// Writes the kept events as far as possible; the rest is logged and kept for the next attempt.
    fn write_appends(&mut self, path: &Path) {
        if let Some(db) = &mut self.db {
            let _ = write_journal(
                db,
                path,
                &mut self.appends,
                &self.truncated,
                JOURNAL_TIMEOUT,
            );
        }
    }

    fn do_idle_work(&mut self, shared: &Arc<WorkerShared>) {
        self.write_appends(&shared.path);
        if let Some(db) = &mut self.db {
            if db.checkpoint() {
                db.begin_log();
            }
            let waiting = Arc::clone(shared);
            db.clean_up(&shared.path, CleanupTrigger::Idle, move || {
                waiting.queue.has_jobs()
            });
        }
    }

    fn shut_down(mut self, path: &Path) {
        self.write_appends(path);
        if let Some(db) = &mut self.db {
            if db.cleanup.is_due() {
                let end = Instant::now() + TIME_AT_SHUTDOWN;
                db.clean_up(path, CleanupTrigger::Shutdown, move || {
                    Instant::now() >= end
                });
            }
            db.wal.flush_pending();
            db.prepare_close();
        }
    }
}

fn refuse_batch(batch: VecDeque<Job>, error: &StoreError, truncated: &TruncatedJournals) {
    for job in batch {
        match job {
            Job::Append { append, reply } => {
                truncated.add(append.loop_id.clone(), &error.to_string());
                if let Some(reply) = reply {
                    reply.send(Err(error.clone()));
                }
            }
            Job::Call { work, .. } => work(Err(error.clone())),
            Job::Prepare(_) => tracing::debug!(%error, "failed to open the store early"),
        }
    }
}

fn run_jobs(
    db: &mut Db,
    path: &Path,
    batch: VecDeque<Job>,
    appends: &mut Vec<JournalAppend>,
    truncated: &TruncatedJournals,
) {
    for job in batch {
        match job {
            Job::Prepare(deadlines) => {
                // Read from the system once, for the first claim.
                let _ = process_identity();
                if db.wal.is_empty() {
                    db.begin_log();
                }
                db.warm_up();
                // The first of the other jobs would start it, and wait for that.
                if let Err(error) = deadlines.start() {
                    tracing::debug!(%error, "failed to watch deadlines early");
                }
            }
            Job::Append { append, reply } => {
                let kept = queue_append(append, appends, truncated);
                if let Some(reply) = reply {
                    // Written with all earlier events, in order: a journal must not have a gap.
                    let written = kept.and_then(|session| {
                        match write_journal(db, path, appends, truncated, reply.time_left())? {
                            true => Ok(()),
                            false => Err(StoreError::LaneLost(session)),
                        }
                    });
                    reply.send(written);
                }
            }
            Job::Call {
                options,
                deadline,
                work,
            } => {
                if deadline.is_answered() {
                    continue;
                }
                // Events whose journal the commit drops need not be written.
                for (lane, loop_id) in &options.settled_loops {
                    appends.retain(|append| !append.is_for(lane, loop_id));
                    truncated.clear(loop_id);
                }
                let written = write_journal(db, path, appends, truncated, deadline.time_left());
                if let (Err(error), Some(session)) = (written, options.needs_journal_of)
                    && appends.iter().any(|append| append.is_in_session(&session))
                {
                    work(Err(error));
                    continue;
                }
                let ready = db
                    .set_lock_timeout(deadline.time_left())
                    .and_then(|()| db.check_files())
                    .and_then(|()| match options.flush {
                        Flush::Now => db.wal.recover_from_failed_flush(&db.sql),
                        Flush::Later => Ok(()),
                    });
                match ready {
                    Ok(()) => work(Ok(db)),
                    Err(error) => work(Err(error.into_store_error(path))),
                }
                if options.flush == Flush::Now {
                    db.wal.request_flush();
                    db.cleanup.note_commit();
                }
            }
        }
    }
    // Logged; the rest is kept for the next attempt.
    let _ = write_journal(db, path, appends, truncated, JOURNAL_TIMEOUT);
    db.needs_checkpoint = true;
    if db.wal.is_long() {
        let _ = db.checkpoint();
    }
}

/// Keeps events until they are written. Returns their session. Fails if earlier events of the loop are missing.
fn queue_append(
    append: JournalAppend,
    appends: &mut Vec<JournalAppend>,
    truncated: &TruncatedJournals,
) -> Result<SessionId, StoreError> {
    if append.starts_loop() {
        // A loop whose journal is written again from its first event.
        appends.retain(|earlier| !earlier.is_for(&append.lane, &append.loop_id));
    }
    if appends.len() >= MAX_UNWRITTEN {
        appends.retain(|earlier| earlier.loop_id != append.loop_id);
        let loop_id = append.loop_id.clone();
        truncated.add(loop_id, "too much is waiting to be written");
    }
    if !truncated.accepts(&append) {
        return Err(gap_error(&append));
    }
    let session = append.lane.session_id.clone();
    appends.push(append);
    Ok(session)
}

/// Writes events to the journal and removes them from `appends`. After a transient error, such as a full
/// disk or a lock held for longer than `timeout`, they remain there for the next attempt; after any other,
/// they are dropped and their loops are added to `truncated`. Logs the error that it returns. Returns true if the lane of
/// the last append is held.
fn write_journal(
    db: &mut Db,
    path: &Path,
    appends: &mut Vec<JournalAppend>,
    truncated: &TruncatedJournals,
    timeout: Duration,
) -> Result<bool, StoreError> {
    if appends.is_empty() {
        return Ok(true);
    }
    let written = db
        .set_lock_timeout(timeout)
        .and_then(|()| db.check_files())
        .and_then(|()| journal::write_appends(db, appends));
    let error = match written {
        Ok(is_held) => {
            appends.clear();
            return Ok(is_held);
        }
        Err(error) => error,
    };
    let may_pass = error.is_transient();
    let error = error.into_store_error(path);
    if may_pass {
        tracing::warn!(%error, "failed to journal; trying again later");
    } else {
        for append in appends.drain(..) {
            truncated.add(append.loop_id, &error.to_string());
        }
    }
    Err(error)
}
