//! Worker: a connection, and a thread that works with it. The thread starts with the first job and
//! ends, with all jobs done, when the worker is dropped.
//!
//! A job that somebody waits for may be done right where it is asked for: when nothing is before it,
//! nobody else is at work, and the last one was quick. That spares two changes of thread, which take
//! longer than the job.
//!
//! What was committed is flushed to the disk by the thread, at once; whoever committed does not wait
//! for it. Once a flush has failed, nothing more is promised.

use super::{
    db::Db,
    fault::Fault,
    flush::{Flush, Log},
    journal::Append,
    queue::{Queue, Taken},
};
use crate::{Lane, StoreError};
use futures_util::future::BoxFuture;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use turnery_engine::LoopId;

/// After this long without a job the log is copied back into the database, so that no commit has to.
const IDLE: Duration = Duration::from_secs(2);

/// After a job that took longer the next is waited for by the thread, not by whoever asks.
const QUICK: Duration = Duration::from_millis(2);

type Work = Box<dyn FnOnce(Result<&mut Db, StoreError>) + Send>;

/// The loops whose journals a job will drop, each for the holder of a lane.
pub(super) type Settles = Vec<(Lane, LoopId)>;

enum Job {
    Append(Append),
    /// Nothing but to come round.
    Rouse,
    Call {
        flush: Flush,
        settles: Settles,
        work: Work,
    },
}

pub(super) struct Worker {
    path: PathBuf,
    name: &'static str,
    running: OnceLock<Result<Running, StoreError>>,
}

struct Running {
    queue: Arc<Queue<Job>>,
    desk: Arc<Desk>,
    thread: JoinHandle<()>,
}

/// Where the connection lies for whoever works with it.
struct Desk {
    db: Mutex<Option<Db>>,
    /// Whether the last job that is to be flushed took less than [`QUICK`].
    quick: AtomicBool,
    log: Log,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Option<Db>> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    pub(super) fn new(path: PathBuf, name: &'static str) -> Self {
        Self {
            path,
            name,
            running: OnceLock::new(),
        }
    }

    /// Queue a job. It is done even if nobody waits for the answer any more.
    pub(super) fn call<T: Send + 'static>(
        &self,
        flush: Flush,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let path = self.path.clone();
        let job = Job::Call {
            flush,
            settles,
            work: Box::new(move |db| {
                let result = db.and_then(|db| work(db).map_err(|fault| fault.at(&path)));
                let _ = answer.send(result);
            }),
        };
        let queued = self.push(job, true);
        let path = self.path.clone();
        Box::pin(async move {
            queued?;
            answered.await.unwrap_or_else(|_| Err(ended(&path)))
        })
    }

    /// As `call`, but at once and here if that takes no waiting.
    pub(super) fn soon<T: Send + 'static>(
        &self,
        flush: Flush,
        settles: Settles,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        match self.here(flush, &work) {
            Some(done) => Box::pin(std::future::ready(
                done.map_err(|fault| fault.at(&self.path)),
            )),
            None => self.call(flush, settles, work),
        }
    }

    /// `None` if somebody or something would have to be waited for; nothing has been done then.
    fn here<T>(
        &self,
        flush: Flush,
        work: impl Fn(&mut Db) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        let running = self.running.get()?.as_ref().ok()?;
        let Running { queue, desk, .. } = running;
        if !desk.quick.load(Ordering::Relaxed) || !queue.is_done() {
            return None;
        }
        let mut db = desk.db.try_lock().ok()?;
        let db = db.as_mut()?;
        if let Err(error) = desk.log.may(flush) {
            return Some(Err(error.into()));
        }
        let begun = Instant::now();
        let done = db.impatiently(work);
        let quick = begun.elapsed() < QUICK;
        desk.quick.store(quick, Ordering::Relaxed);
        let idle = !std::mem::replace(&mut db.dirty, true);
        if desk.log.owe(flush) || idle {
            // The thread flushes, and copies the log back once nothing happens any more.
            let _ = queue.push(Job::Rouse, true);
        }
        done
    }

    #[cfg(test)]
    pub(super) fn log(&self) -> Option<&Log> {
        Some(&self.running.get()?.as_ref().ok()?.desk.log)
    }

    pub(super) fn append(&self, append: Append) {
        if let Err(error) = self.push(Job::Append(append), false) {
            tracing::warn!(%error, "failed to journal");
        }
    }

    fn push(&self, job: Job, urgent: bool) -> Result<(), StoreError> {
        let running = self.running.get_or_init(|| self.start()).as_ref();
        let queue = &running.map_err(Clone::clone)?.queue;
        queue.push(job, urgent).map_err(|_| ended(&self.path))
    }

    fn start(&self) -> Result<Running, StoreError> {
        let queue = Arc::new(Queue::new());
        let desk = Arc::new(Desk {
            db: Mutex::new(None),
            quick: AtomicBool::new(false),
            log: Log::of(&self.path),
        });
        let (theirs, at) = (queue.clone(), desk.clone());
        let path = self.path.clone();
        std::thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || {
                let _last = Abandon(&theirs);
                run(&path, &theirs, &at);
                // Closed by the thread that is waited for.
                *at.lock() = None;
            })
            .map(|thread| Running {
                queue,
                desk,
                thread,
            })
            .map_err(|error| {
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
        }
    }
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

fn run(path: &Path, queue: &Queue<Job>, desk: &Desk) {
    loop {
        let idle = desk.lock().as_ref().filter(|db| db.dirty).map(|_| IDLE);
        match queue.take(idle) {
            Taken::Closed => return desk.log.pay(),
            Taken::Idle => {
                if let Some(db) = &mut *desk.lock() {
                    db.checkpoint();
                }
            }
            Taken::Batch(batch) => {
                let mut db = desk.lock();
                let opened = match &mut *db {
                    Some(db) => Ok(db),
                    None => Db::open(path).map(|opened| db.insert(opened)),
                };
                match opened {
                    Ok(db) => work_off(db, path, batch, desk),
                    Err(error) => refuse(batch, &error),
                }
                drop(db);
                // Whoever asks meanwhile does the job there, and need not wait for the disk.
                queue.rest();
                desk.log.pay();
            }
        }
    }
}

fn refuse(batch: VecDeque<Job>, error: &StoreError) {
    for job in batch {
        match job {
            Job::Append(_) | Job::Rouse => {}
            Job::Call { work, .. } => work(Err(error.clone())),
        }
    }
}

fn work_off(db: &mut Db, path: &Path, batch: VecDeque<Job>, desk: &Desk) {
    let mut appends: Vec<Append> = Vec::new();
    for job in batch {
        match job {
            Job::Append(append) => appends.push(append),
            Job::Rouse => {}
            Job::Call {
                flush,
                settles,
                work,
            } => {
                // What the commit would only remove again need not be written.
                for (lane, loop_id) in &settles {
                    appends.retain(|append| !append.is_of(lane, loop_id));
                }
                db.journal(path, &mut appends);
                let begun = Instant::now();
                work(desk.log.may(flush).map(|()| &mut *db));
                if desk.log.owe(flush) {
                    let quick = begun.elapsed() < QUICK;
                    desk.quick.store(quick, Ordering::Relaxed);
                }
            }
        }
    }
    db.journal(path, &mut appends);
    db.dirty = true;
}
