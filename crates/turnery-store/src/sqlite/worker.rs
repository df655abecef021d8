//! Runs jobs on a thread with its own connection. The thread starts with the first job, and ends after all
//! jobs are done when the worker is dropped.
//!
//! Every read or write may hang, on a network disk or on a lock of another process. So callers only ever wait
//! for the queue's mutex, which is not held during I/O, and a job that takes too long is answered with an
//! error.
//!
//! Switching threads takes longer than a short job. With an [`InlineRuntime`], which keeps running while one
//! of its threads hangs, jobs that are usually short run as a task of that runtime.
//!
//! Commits are flushed to disk by the thread, immediately but without making the caller wait, or by SQLite before
//! they are answered ([`Durability`]). After a failed flush, commits fail until the disk has stored everything.

use super::{
    db::Db,
    deadlines::{Deadline, DeadlineWatcher, JobReply},
    execution::{Job, JobFn, JobOptions, SettledLoops, WorkerShared},
    flush::Flush,
    inline_runtime::InlineRuntime,
    job_error::{JOB_TIMEOUT, JobError},
    open_files::DatabaseIdentity,
    queue::{CAPACITY, PushError, Urgency},
};
use crate::{
    Durability, StoreError, StoreFuture,
    journal_append::{JournalAppend, TruncatedJournals, gap_error},
    lease::COMMIT_TIMEOUT,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;
use turnery_engine::SessionId;

pub(super) struct Worker {
    path: PathBuf,
    name: &'static str,
    inline_runtime: Option<InlineRuntime>,
    durability: Durability,
    identity: Arc<DatabaseIdentity>,
    running: OnceLock<Result<WorkerThread, StoreError>>,
    /// Journals truncated because the queue was full.
    truncated: TruncatedJournals,
}

struct WorkerThread {
    shared: Arc<WorkerShared>,
    deadlines: Arc<DeadlineWatcher>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(super) fn new(path: PathBuf, name: &'static str) -> Self {
        Self {
            path,
            name,
            inline_runtime: None,
            durability: Durability::default(),
            identity: Arc::default(),
            running: OnceLock::new(),
            truncated: TruncatedJournals::default(),
        }
    }

    /// Returns the path of the database.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs jobs that are usually short on this runtime. Call before the first job.
    pub(super) fn set_inline_runtime(&mut self, inline: InlineRuntime) {
        self.inline_runtime = Some(inline);
    }

    /// Opens only the file that the other workers of a store open. Call before the first job.
    pub(super) fn with_identity(mut self, identity: &Arc<DatabaseIdentity>) -> Self {
        self.identity = Arc::clone(identity);
        self
    }

    /// Sets what the jobs' writes survive. Call before the first job.
    pub(super) fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Opens the database, if there is one, and begins its log, before the first job needs them.
    pub(super) fn prepare(&self) {
        if let Ok(running) = self.get_or_start_thread()
            && let Err(error) = running
                .shared
                .queue
                .push(Job::Prepare(Arc::clone(&running.deadlines)), Urgency::Now)
        {
            tracing::debug!("failed to open the store early: the queue is {error:?}");
        }
    }

    /// Returns true once a job was queued.
    pub(super) fn is_started(&self) -> bool {
        self.running.get().is_some()
    }

    /// Returns true if the database is open and nothing is to be done.
    pub(super) fn is_idle(&self) -> bool {
        let running = self.running.get().and_then(|it| it.as_ref().ok());
        running.is_some_and(|it| it.shared.is_idle())
    }

    /// Queues a job. The job runs even if the future is dropped, unless its deadline passes before it starts.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.call_with_timeout(JOB_TIMEOUT, Flush::Later, work)
    }

    /// Like `call`, for a job that is usually short.
    pub(super) fn call_short<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let options = JobOptions {
            is_short: true,
            ..JobOptions::new(JOB_TIMEOUT)
        };
        self.queue(options, work)
    }

    /// Like `call_short`, for a job whose writes are flushed to disk at once.
    pub(super) fn call_short_flushed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let options = JobOptions {
            flush: Flush::Now,
            is_short: true,
            ..JobOptions::new(JOB_TIMEOUT)
        };
        self.queue(options, work)
    }

    /// Like `call`, for a job whose writes are flushed to disk at once.
    pub(super) fn call_flushed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.call_with_timeout(JOB_TIMEOUT, Flush::Now, work)
    }

    pub(super) fn call_with_timeout<T: Send + 'static>(
        &self,
        timeout: Duration,
        flush: Flush,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let options = JobOptions {
            flush,
            ..JobOptions::new(timeout)
        };
        self.queue(options, work)
    }

    /// Like `call`, for a job that starts or ends a lane of a session. Fails if journalled events of the
    /// previous lane cannot be written yet, because they would be lost.
    pub(super) fn call_for_lane<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let options = JobOptions {
            needs_journal_of: Some(session.clone()),
            is_short: true,
            ..JobOptions::new(JOB_TIMEOUT)
        };
        self.queue(options, work)
    }

    /// Like `call`, with the longer timeout of a commit.
    pub(super) fn commit<T: Send + 'static>(
        &self,
        settles: SettledLoops,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let options = JobOptions {
            flush: Flush::Now,
            settled_loops: settles,
            is_short: true,
            ..JobOptions::new(COMMIT_TIMEOUT)
        };
        self.queue(options, work)
    }

    fn queue<T: Send + 'static>(
        &self,
        options: JobOptions,
        work: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        for (_, loop_id) in &options.settled_loops {
            self.truncated.clear(loop_id);
        }
        let (timeout, is_short) = (options.timeout, options.is_short);
        let path = self.path.clone();
        let queued = self.submit(timeout, is_short, |reply: Arc<JobReply<T>>| {
            let deadline: Arc<dyn Deadline> = Arc::<JobReply<T>>::clone(&reply);
            let work: JobFn = Box::new(move |db| {
                reply.send(
                    db.and_then(|db| work(db).map_err(|error| error.into_store_error(&path))),
                );
            });
            Job::Call {
                options,
                deadline,
                work,
            }
        });
        self.await_reply(queued)
    }

    /// Queues events for the journal, and resolves when they are written. Fails if earlier events of the loop
    /// are missing.
    pub(super) fn append_and_wait(&self, append: JournalAppend) -> StoreFuture<'static, ()> {
        if !self.truncated.accepts(&append) {
            return Box::pin(std::future::ready(Err(gap_error(&append))));
        }
        let loop_id = append.loop_id.clone();
        let queued = self.submit(JOB_TIMEOUT, true, |reply| {
            let reply = Some(reply);
            Job::Append { append, reply }
        });
        if let Err(error) = &queued {
            self.truncated.add(loop_id, &error.to_string());
        }
        self.await_reply(queued)
    }

    /// Queues the job that `job` creates from its reply.
    fn submit<T: Send + 'static>(
        &self,
        timeout: Duration,
        is_short: bool,
        job: impl FnOnce(Arc<JobReply<T>>) -> Job,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let running = self.get_or_start_thread()?;
        running.deadlines.start().map_err(thread_error)?;
        let inline = self.inline_runtime.as_ref().filter(|_| is_short);
        let inline = inline.filter(|_| running.shared.was_quick());
        let urgency = match inline {
            Some(_) => Urgency::Inline,
            None => Urgency::Now,
        };
        let (answer, answered) = oneshot::channel();
        let reply = JobReply::new(timeout, answer);
        let deadline: Arc<dyn Deadline> = Arc::<JobReply<T>>::clone(&reply);
        let pushed = running.shared.queue.push(job(reply), urgency);
        pushed.map_err(|error| match error {
            PushError::Full => StoreError::Broken(format!(
                "{} does not keep up: {CAPACITY} requests wait for it already; check its disk, and \
                 whether another program keeps it locked, then try again",
                self.path.display()
            )),
            PushError::Closed => stopped_error(&self.path),
        })?;
        if let Some(inline) = inline {
            let shared = Arc::clone(&running.shared);
            // A separate task, so that the caller can still be cancelled while the job hangs.
            inline
                .runtime
                .spawn(async move { shared.work_inline().await });
        }
        // Added last, so that the job starts while the deadline thread wakes up.
        running.deadlines.add(&deadline);
        Ok(answered)
    }

    fn await_reply<T: Send + 'static>(
        &self,
        queued: Result<oneshot::Receiver<Result<T, StoreError>>, StoreError>,
    ) -> StoreFuture<'static, T> {
        let path = self.path.clone();
        Box::pin(async move { queued?.await.unwrap_or_else(|_| Err(stopped_error(&path))) })
    }

    /// Queues events for the journal. If the queue is full because the disk hangs, the loop's journal ends
    /// here.
    pub(super) fn append(&self, append: JournalAppend) {
        if !self.truncated.accepts(&append) {
            return;
        }
        let loop_id = append.loop_id.clone();
        let queued = self
            .get_or_start_thread()
            .map_err(|error| error.to_string());
        let queued = queued.and_then(|running| {
            let job = Job::Append {
                append,
                reply: None,
            };
            let pushed = running.shared.queue.push(job, Urgency::Later);
            pushed.map_err(|error| format!("the queue is {error:?}"))
        });
        if let Err(error) = queued {
            self.truncated.add(loop_id, &error);
        }
    }

    fn get_or_start_thread(&self) -> Result<&WorkerThread, StoreError> {
        let running = self.running.get_or_init(|| self.start()).as_ref();
        running.map_err(Clone::clone)
    }

    fn new_shared(&self) -> WorkerShared {
        let identity = Arc::clone(&self.identity);
        WorkerShared::new(self.path.clone(), self.durability, identity)
    }

    fn start(&self) -> Result<WorkerThread, StoreError> {
        let start = || {
            let shared = Arc::new(self.new_shared());
            let thread = thread::Builder::new().name(self.name.to_owned());
            let theirs = Arc::clone(&shared);
            let thread = thread.spawn(move || theirs.run())?;
            let (watched, inline) = (Arc::clone(&shared), self.inline_runtime.clone());
            let on_stall = move || {
                if let Some(inline) = &inline {
                    watched.on_stall(inline);
                }
            };
            Ok(WorkerThread {
                shared,
                deadlines: DeadlineWatcher::new(self.path.clone(), Box::new(on_stall)),
                thread,
            })
        };
        start().map_err(thread_error)
    }
}

#[cfg(test)]
impl Worker {
    /// Leaves the jobs to [`run_queued`](Self::run_queued), without a time limit. Call before the first job.
    pub(super) fn run_by_hand(&self) {
        self.running.get_or_init(|| {
            let deadlines = DeadlineWatcher::new(self.path.clone(), Box::new(|| {}));
            deadlines.close();
            Ok(WorkerThread {
                shared: Arc::new(self.new_shared()),
                deadlines,
                thread: thread::spawn(|| {}),
            })
        });
    }

    /// Runs all queued jobs on the calling thread.
    pub(super) fn run_queued(&self) {
        self.get_or_start_thread().unwrap().shared.run_queued();
    }

    /// Loses what a process loses with its death.
    pub(super) fn forget(&self) {
        self.truncated.clear_all();
        self.get_or_start_thread().unwrap().shared.forget();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(Ok(running)) = self.running.take() {
            running.shared.queue.close();
            // A panic of the thread was already reported.
            let _ = running.thread.join();
            running.deadlines.close();
        }
    }
}

fn thread_error(error: io::Error) -> StoreError {
    StoreError::Broken(format!("the store's thread cannot start: {error}"))
}

fn stopped_error(path: &Path) -> StoreError {
    StoreError::Broken(format!(
        "the store at {} has stopped after a fault; start again",
        path.display()
    ))
}

#[cfg(test)]
mod prepare_tests;
#[cfg(test)]
mod tests;
