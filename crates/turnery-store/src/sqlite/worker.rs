//! Worker: a connection, and a thread that works with it. The thread starts with the first job and
//! ends, with all jobs done, when the worker is dropped.
//!
//! Any reading and writing may hang: a disk on a network, a lock held by another process. So whoever asks
//! never waits for more than the mutex of the queue, which nobody holds while reading or writing. A job that
//! takes too long is answered with an error meanwhile.
//!
//! Changing threads takes longer than a short job. Where there is a runtime that goes on while one of its
//! threads hangs ([`Inline`]), jobs that are usually short are done by a task of it, as long as they are.
//!
//! What was committed is flushed to the disk by the thread, at once; whoever committed does not wait
//! for it. Once a flush has failed, nothing more is promised until the disk has kept everything.

use super::{
    db::Db,
    deadlines::{Deadline, Deadlines, Ticket},
    fault::{Fault, PATIENCE},
    flush::Flush,
    inline::Inline,
    journal::Append,
    queue::{CAPACITY, PushError, Urgency},
};
use crate::{COMMIT_PATIENCE, StoreError};
use futures_util::future::BoxFuture;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;
use turnery_engine::SessionId;

mod execution;

pub(super) use execution::{CutJournals, Settles};
use execution::{Job, Order, Shared, Work, hole};

pub(super) struct Worker {
    path: PathBuf,
    name: &'static str,
    inline: Option<Inline>,
    running: OnceLock<Result<Running, StoreError>>,
    /// Cut where they did not fit in the queue.
    cut: CutJournals,
}

struct Running {
    shared: Arc<Shared>,
    deadlines: Arc<Deadlines>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(super) fn new(path: PathBuf, name: &'static str) -> Self {
        Self {
            path,
            name,
            inline: None,
            running: OnceLock::new(),
            cut: CutJournals::default(),
        }
    }

    /// Has jobs that are usually short done by this runtime. For a worker that has no job yet.
    pub(super) fn inline(&mut self, inline: Inline) {
        self.inline = Some(inline);
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

    pub(super) fn call_within<T: Send + 'static>(
        &self,
        patience: Duration,
        flush: Flush,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let order = Order {
            patience,
            flush,
            settles,
            needs: None,
            is_short: false,
        };
        self.queue(order, work)
    }

    /// Like `call`, for a job that begins or ends a lane of a session. Fails if something that was journalled
    /// under the last one cannot be written yet: it would be lost with it.
    pub(super) fn settle<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let order = Order {
            patience: PATIENCE,
            flush: Flush::Later,
            settles: Settles::new(),
            needs: Some(session.clone()),
            is_short: true,
        };
        self.queue(order, work)
    }

    /// Like `call`, with the patience that a commit deserves.
    pub(super) fn commit<T: Send + 'static>(
        &self,
        settles: Settles,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let order = Order {
            patience: COMMIT_PATIENCE,
            flush: Flush::Now,
            settles,
            needs: None,
            is_short: true,
        };
        self.queue(order, work)
    }

    fn queue<T: Send + 'static>(
        &self,
        order: Order,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        for (_, loop_id) in &order.settles {
            self.cut.settle(loop_id);
        }
        let (patience, is_short) = (order.patience, order.is_short);
        let path = self.path.clone();
        let queued = self.submit(patience, is_short, |ticket: Arc<Ticket<T>>| {
            let deadline: Arc<dyn Deadline> = Arc::<Ticket<T>>::clone(&ticket);
            let work: Work = Box::new(move |db| {
                ticket.answer(db.and_then(|db| work(db).map_err(|fault| fault.at(&path))));
            });
            Job::Call {
                order,
                deadline,
                work,
            }
        });
        self.answer(queued)
    }

    /// Queues events for the journal, and answers when they are written. Fails if earlier events of the loop
    /// are missing.
    pub(super) fn append_now(&self, append: Append) -> BoxFuture<'static, Result<(), StoreError>> {
        if !self.cut.admits(&append) {
            return Box::pin(std::future::ready(Err(hole(&append))));
        }
        let loop_id = append.loop_id().clone();
        let queued = self.submit(PATIENCE, true, |ticket| {
            let ticket = Some(ticket);
            Job::Append { append, ticket }
        });
        if let Err(error) = &queued {
            self.cut.cut(loop_id, &error.to_string());
        }
        self.answer(queued)
    }

    /// Queues the job that is made of its ticket.
    fn submit<T: Send + 'static>(
        &self,
        patience: Duration,
        is_short: bool,
        job: impl FnOnce(Arc<Ticket<T>>) -> Job,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let running = self.running()?;
        let inline = self.inline.as_ref().filter(|_| is_short);
        let inline = inline.filter(|_| running.shared.is_quick());
        let urgency = match inline {
            Some(_) => Urgency::Here,
            None => Urgency::Now,
        };
        let (answer, answered) = oneshot::channel();
        let ticket = Ticket::new(patience, answer);
        let deadline: Arc<dyn Deadline> = Arc::<Ticket<T>>::clone(&ticket);
        let pushed = running.shared.queue.push(job(ticket), urgency);
        pushed.map_err(|error| match error {
            PushError::Full => StoreError::Broken(format!(
                "{} does not keep up: {CAPACITY} requests wait for it already; check its disk, and \
                 whether another program keeps it locked, then try again",
                self.path.display()
            )),
            PushError::Closed => ended(&self.path),
        })?;
        if let Some(inline) = inline {
            let shared = Arc::clone(&running.shared);
            // A task of its own: whoever asked can still be cancelled while it hangs.
            inline.runtime.spawn(async move { shared.work_inline() });
        }
        // Only now, so that the job is begun while the deadlines are woken.
        running.deadlines.add(&deadline);
        Ok(answered)
    }

    fn answer<T: Send + 'static>(
        &self,
        queued: Result<oneshot::Receiver<Result<T, StoreError>>, StoreError>,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let path = self.path.clone();
        Box::pin(async move { queued?.await.unwrap_or_else(|_| Err(ended(&path))) })
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
            let job = Job::Append {
                append,
                ticket: None,
            };
            let pushed = running.shared.queue.push(job, Urgency::Later);
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
            let shared = Arc::new(Shared::new(self.path.clone()));
            let thread = thread::Builder::new().name(self.name.to_owned());
            let theirs = Arc::clone(&shared);
            let thread = thread.spawn(move || theirs.run())?;
            let (watched, inline) = (Arc::clone(&shared), self.inline.clone());
            let on_stall = move || {
                if let Some(inline) = &inline {
                    watched.on_stall(inline);
                }
            };
            let deadlines = Deadlines::start(self.path.clone(), Box::new(on_stall))?;
            Ok(Running {
                shared,
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
            running.shared.queue.close();
            // A thread that panicked has told so already.
            let _ = running.thread.join();
            running.deadlines.close();
        }
    }
}

fn ended(path: &Path) -> StoreError {
    StoreError::Broken(format!(
        "the store at {} has stopped after a fault; start again",
        path.display()
    ))
}

#[cfg(test)]
mod tests;
