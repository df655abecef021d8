//! Worker: a connection, and a thread that works with it. The thread starts with the first job and
//! ends, with all jobs done, when the worker is dropped.
//!
//! All reading and writing happens on that thread, since any of it may hang: a disk on a network, a lock
//! held by another process. Whoever asks never waits for more than the mutex of the queue, which nobody
//! holds while reading or writing. A job that takes too long is answered with an error meanwhile.
//!
//! What was committed is flushed to the disk by the thread, at once; whoever committed does not wait
//! for it. Once a flush has failed, nothing more is promised until the disk has kept everything.

use super::{
    db::Db,
    deadlines::{Deadline, Deadlines, Ticket},
    fault::{Fault, PATIENCE},
    flush::Flush,
    journal::Append,
    queue::{CAPACITY, PushError, Queue, Taken},
    tidy::{Occasion, TIME_AT_END},
};
use crate::{COMMIT_PATIENCE, Lane, StoreError};
use futures_util::future::BoxFuture;
use std::{
    collections::{HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use turnery_engine::{LoopId, SessionId};

/// After this long without a job the log is copied back into the database, so that no commit has to.
const IDLE: Duration = Duration::from_secs(2);

/// How long the journal alone may wait for another process that writes. What cannot be written then is
/// kept for later.
const JOURNAL_PATIENCE: Duration = Duration::from_secs(1);

/// Journal entries that are kept for later while the disk is full or another process keeps the database
/// locked.
const UNWRITTEN: usize = 4096;

type Work = Box<dyn FnOnce(Result<&mut Db, StoreError>) + Send>;

/// The loops whose journals a job will drop, each for the holder of a lane.
pub(super) type Settles = Vec<(Lane, LoopId)>;

enum Job {
    Append {
        append: Append,
        /// Who waits until it is written.
        ticket: Option<Arc<Ticket<()>>>,
    },
    Call {
        flush: Flush,
        settles: Settles,
        /// Session whose journal the job needs to be complete.
        needs: Option<SessionId>,
        deadline: Arc<dyn Deadline>,
        work: Work,
    },
}

pub(super) struct Worker {
    path: PathBuf,
    name: &'static str,
    running: OnceLock<Result<Running, StoreError>>,
    /// Cut where they did not fit in the queue.
    cut: CutJournals,
}

struct Running {
    queue: Arc<Queue<Job>>,
    deadlines: Arc<Deadlines>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(super) fn new(path: PathBuf, name: &'static str) -> Self {
        Self {
            path,
            name,
            running: OnceLock::new(),
            cut: CutJournals::default(),
        }
    }

    /// Queues a job. It is done even if nobody waits for the answer any more, unless its time is up
    /// before it has begun.
    pub(super) fn call<T: Send + 'static>(
        &self,
        flush: Flush,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        self.call_within(PATIENCE, flush, settles, work)
    }

    /// Like `call`, for a job that ends a lane of a session. Fails if something that was journalled under it
    /// cannot be written yet: it would be lost with the lane.
    pub(super) fn settle<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let needs = Some(session.clone());
        self.queue(PATIENCE, Flush::Later, Settles::new(), needs, work)
    }

    /// Like `call`, with the patience that a commit deserves.
    pub(super) fn commit<T: Send + 'static>(
        &self,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        self.call_within(COMMIT_PATIENCE, Flush::Now, settles, work)
    }

    pub(super) fn call_within<T: Send + 'static>(
        &self,
        patience: Duration,
        flush: Flush,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        self.queue(patience, flush, settles, None, work)
    }

    fn queue<T: Send + 'static>(
        &self,
        patience: Duration,
        flush: Flush,
        settles: Settles,
        needs: Option<SessionId>,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        for (_, loop_id) in &settles {
            self.cut.settle(loop_id);
        }
        let (answer, answered) = oneshot::channel();
        let ticket = Ticket::new(patience, answer);
        let deadline: Arc<dyn Deadline> = Arc::<Ticket<T>>::clone(&ticket);
        let path = self.path.clone();
        let queued = self.running().and_then(|running| {
            let work: Work = Box::new(move |db| {
                ticket.answer(db.and_then(|db| work(db).map_err(|fault| fault.at(&path))));
            });
            let job = Job::Call {
                flush,
                settles,
                needs,
                deadline: Arc::clone(&deadline),
                work,
            };
            self.push(running, job)?;
            // Only now, so that the job is begun while the deadlines are woken.
            running.deadlines.add(&deadline);
            Ok(())
        });
        let path = self.path.clone();
        Box::pin(async move {
            queued?;
            answered.await.unwrap_or_else(|_| Err(ended(&path)))
        })
    }

    /// Queues events for the journal, and answers when they are written. Fails if earlier events of the loop
    /// are missing.
    pub(super) fn append_now(&self, append: Append) -> BoxFuture<'static, Result<(), StoreError>> {
        if !self.cut.admits(&append) {
            return Box::pin(std::future::ready(Err(hole(&append))));
        }
        let loop_id = append.loop_id().clone();
        let (answer, answered) = oneshot::channel();
        let ticket = Ticket::new(PATIENCE, answer);
        let queued = self.running().and_then(|running| {
            let deadline: Arc<dyn Deadline> = Arc::<Ticket<()>>::clone(&ticket);
            let ticket = Some(ticket);
            self.push(running, Job::Append { append, ticket })?;
            running.deadlines.add(&deadline);
            Ok(())
        });
        if let Err(error) = &queued {
            self.cut.cut(loop_id, &error.to_string());
        }
        let path = self.path.clone();
        Box::pin(async move {
            queued?;
            answered.await.unwrap_or_else(|_| Err(ended(&path)))
        })
    }

    fn push(&self, running: &Running, job: Job) -> Result<(), StoreError> {
        running.queue.push(job, true).map_err(|error| match error {
            PushError::Full => StoreError::Broken(format!(
                "{} does not keep up: {CAPACITY} requests wait for it already; check its disk, and \
                 whether another program keeps it locked, then try again",
                self.path.display()
            )),
            PushError::Closed => ended(&self.path),
        })
    }

    /// Queues events for the journal. While the disk hangs there may be no room: then the loop's journal
    /// ends here.
    pub(super) fn append(&self, append: Append) {
        if !self.cut.admits(&append) {
            return;
        }
        let loop_id = append.loop_id().clone();
        let queued = self.running().map_err(|error| error.to_string());
        let queued = queued.and_then(|running| {
            let ticket = None;
            let pushed = running.queue.push(Job::Append { append, ticket }, false);
            pushed.map_err(|error| format!("the queue is {error:?}"))
        });
        if let Err(error) = queued {
            self.cut.cut(loop_id, &error);
        }
    }

    fn running(&self) -> Result<&Running, StoreError> {
        let running = self.running.get_or_init(|| self.start()).as_ref();
        running.map_err(Clone::clone)
    }

    fn start(&self) -> Result<Running, StoreError> {
        let start = || {
            let queue = Arc::new(Queue::new());
            let theirs = Arc::clone(&queue);
            let path = self.path.clone();
            let thread = std::thread::Builder::new().name(self.name.to_owned());
            let thread = thread.spawn(move || {
                let _last = Abandon(&theirs);
                run(&path, &theirs);
            })?;
            let deadlines = Deadlines::start(self.path.clone())?;
            Ok(Running {
                queue,
                deadlines,
                thread,
            })
        };
        start().map_err(|error: std::io::Error| {
            StoreError::Broken(format!("the store's thread cannot start: {error}"))
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(Ok(running)) = self.running.take() {
            running.queue.close();
            // A thread that panicked has told so already.
            let _ = running.thread.join();
            running.deadlines.close();
        }
    }
}

fn hole(append: &Append) -> StoreError {
    StoreError::Broken(format!(
        "earlier events of loop {} are not in its journal; journal it again from its first event",
        append.loop_id()
    ))
}

fn ended(path: &Path) -> StoreError {
    StoreError::Broken(format!(
        "the store at {} has stopped after a fault; start again",
        path.display()
    ))
}

/// However the thread ends, nobody waits for it any more.
struct Abandon<'a>(&'a Queue<Job>);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Loops whose journal has lost events. What follows them is left out too: a journal that ends early is
/// honest, one with a gap is not.
#[derive(Default)]
pub(super) struct CutJournals(Mutex<HashSet<LoopId>>);

impl CutJournals {
    /// False if earlier events of the loop are missing. A loop that begins again is always admitted.
    fn admits(&self, append: &Append) -> bool {
        let mut cut = self.lock();
        if append.begins() {
            cut.remove(append.loop_id());
        }
        cut.is_empty() || !cut.contains(append.loop_id())
    }

    pub(super) fn cut(&self, loop_id: LoopId, error: &str) {
        tracing::warn!(%loop_id, error, "the journal of a loop ends early");
        self.lock().insert(loop_id);
    }

    fn settle(&self, loop_id: &LoopId) {
        self.lock().remove(loop_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LoopId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(path: &Path, queue: &Arc<Queue<Job>>) {
    let mut opened: Option<Db> = None;
    // Cut where they could not be written.
    let cut = &CutJournals::default();
    let mut appends = Vec::new();
    loop {
        let has_rest = |db: &&Db| db.dirty || db.tidy.is_due() || !appends.is_empty();
        let idle = opened.as_ref().filter(has_rest).map(|_| IDLE);
        match (queue.take(idle), &mut opened) {
            (Taken::Closed, db) => {
                if let Some(db) = db {
                    journal(db, path, &mut appends, cut, JOURNAL_PATIENCE);
                    if db.tidy.is_due() {
                        let end = Instant::now() + TIME_AT_END;
                        db.clean_up(path, Occasion::End, move || Instant::now() >= end);
                    }
                    db.log.pay();
                }
                return;
            }
            (Taken::Idle, None) => {}
            (Taken::Idle, Some(db)) => {
                journal(db, path, &mut appends, cut, JOURNAL_PATIENCE);
                db.checkpoint();
                let queue = Arc::clone(queue);
                db.clean_up(path, Occasion::Idle, move || queue.has_jobs());
            }
            (Taken::Batch(batch), db) => {
                let db = match db {
                    Some(db) => Ok(db),
                    None => Db::open(path).map(|opened| db.insert(opened)),
                };
                match db {
                    Ok(db) => {
                        work_off(db, path, batch, &mut appends, cut);
                        db.log.pay();
                    }
                    Err(error) => refuse(batch, &error, cut),
                }
            }
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
                flush,
                settles,
                needs,
                deadline,
                work,
            } => {
                if deadline.is_answered() {
                    continue;
                }
                // What the commit would only remove again need not be written.
                for (lane, loop_id) in &settles {
                    appends.retain(|append| !append.is_of(lane, loop_id));
                    cut.settle(loop_id);
                }
                let written = db.journal(path, appends, cut, deadline.time_left());
                if let (Err(error), Some(session)) = (written, needs)
                    && appends.iter().any(|append| append.is_in(&session))
                {
                    work(Err(error));
                    continue;
                }
                let ready = db
                    .wait_for_locks(deadline.time_left())
                    .and_then(|()| db.check_files())
                    .and_then(|()| db.log.ready(flush, &db.sql));
                match ready {
                    Ok(()) => work(Ok(db)),
                    Err(fault) => work(Err(fault.at(path))),
                }
                if flush == Flush::Now {
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

#[cfg(test)]
mod tests;
