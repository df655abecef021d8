//! Runs the work of a store on a thread of its own, with retries on new connections.
//!
//! Work for one session that depends on its lane runs in the order of the calls. Everything else runs at the same
//! time, on as many connections as the pool allows.

use super::{
    address::PostgresAddress,
    connection::Connection,
    hosts::Hosts,
    listener::Listener,
    pg_error::PgError,
    pool::{IDLE_TIMEOUT, Pool},
    session_queue::SessionQueues,
};
use crate::{Clock, StoreError, StoreFuture};
use std::{
    rc::Rc,
    sync::OnceLock,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinSet, LocalSet},
    time::{Instant, sleep, timeout},
};
use turnery_engine::Timestamp;

/// Maximum number of waiting calls.
const CAPACITY: usize = 16_384;

/// Longest time of an ordinary call, with all retries.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Like [`CALL_TIMEOUT`], for a check or a repair.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(3600);

/// Delay before the second attempt; doubled with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(20);

/// Longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Shares of the time of a call that one attempt may take: a connection that does not respond leaves time for another.
const ATTEMPT_SHARE: u32 = 2;

/// What the work of a store shares, on its thread.
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) clock: Option<Clock>,
    pub(super) sessions: SessionQueues,
    pub(super) hosts: Hosts,
    pub(super) listener: Listener,
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// Makes the task of a call, on the thread of the store.
type PgJob = Box<dyn FnOnce(&Rc<Shared>) -> Task + Send>;

/// Thread of a store. It starts with the first call, and ends when the engine is dropped and all calls are done.
pub(super) struct Engine {
    address: PostgresAddress,
    clock: Option<Clock>,
    thread: OnceLock<Result<EngineThread, StoreError>>,
}

struct EngineThread {
    jobs: mpsc::Sender<PgJob>,
    handle: JoinHandle<()>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(Ok(EngineThread { jobs, handle })) = self.thread.take() {
            drop(jobs);
            if handle.join().is_err() {
                tracing::error!("the thread of the store panicked");
            }
        }
    }
}

impl Engine {
    pub(super) fn new(address: PostgresAddress, clock: Option<Clock>) -> Self {
        Self {
            address,
            clock,
            thread: OnceLock::new(),
        }
    }

    fn start(&self) -> Result<EngineThread, StoreError> {
        let failed = |error: std::io::Error| {
            StoreError::Broken(format!("the thread of the store cannot start: {error}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (jobs, received) = mpsc::channel(CAPACITY);
        let (address, clock) = (self.address.clone(), self.clock.clone());
        #[cfg(test)]
        let machine = crate::simulation::machine::SimulatedMachine::here();
        let handle = thread::Builder::new()
            .name("store-postgres".to_owned())
            .spawn(move || {
                #[cfg(test)]
                if let Some(machine) = machine {
                    machine.enter();
                }
                let shared = Rc::new(Shared {
                    pool: Pool::new(address),
                    clock,
                    sessions: SessionQueues::default(),
                    hosts: Hosts::default(),
                    listener: Listener::default(),
                });
                LocalSet::new().block_on(&runtime, run_jobs(&shared, received));
            })
            .map_err(failed)?;
        Ok(EngineThread { jobs, handle })
    }

    /// Queues a job; it runs even if nobody waits for it.
    pub(super) fn submit(
        &self,
        job: impl FnOnce(&Rc<Shared>) -> Task + Send + 'static,
    ) -> Result<(), StoreError> {
        let thread = self.thread.get_or_init(|| self.start()).as_ref();
        let sent = thread.map_err(Clone::clone)?.jobs.try_send(Box::new(job));
        sent.map_err(|error| {
            let why = match error {
                mpsc::error::TrySendError::Full(_) => "it cannot keep up with what is to be stored",
                mpsc::error::TrySendError::Closed(_) => "its thread has ended",
            };
            StoreError::Broken(format!("{}: {why}", self.address))
        })
    }

    /// Queues a job whose result is awaited.
    pub(super) fn call<T, F>(
        &self,
        work: impl FnOnce(&Rc<Shared>) -> F + Send + 'static,
    ) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + 'static,
    {
        let (reply, result) = oneshot::channel();
        let submitted = self.submit(move |shared| {
            let work = work(shared);
            Box::pin(async move {
                // Nobody waits if the caller has dropped its future.
                let _ = reply.send(work.await);
            })
        });
        Box::pin(async move {
            submitted?;
            result
                .await
                .unwrap_or_else(|_| Err(StoreError::Broken("the store has ended".to_owned())))
        })
    }
}

async fn run_jobs(shared: &Rc<Shared>, mut jobs: mpsc::Receiver<PgJob>) {
    let mut tasks = JoinSet::new();
    let mut cleanup = tokio::time::interval(IDLE_TIMEOUT / 2);
    loop {
        tokio::select! {
            biased;
            job = jobs.recv() => match job {
                Some(job) => {
                    tasks.spawn_local(job(shared));
                }
                None => break,
            },
            Some(done) = tasks.join_next() => log_panic(done),
            _ = cleanup.tick() => {
                shared.pool.close_idle();
                shared.sessions.remove_idle();
            }
        }
    }
    while let Some(done) = tasks.join_next().await {
        log_panic(done);
    }
}

fn log_panic(done: Result<(), tokio::task::JoinError>) {
    if let Err(error) = done {
        tracing::error!(%error, "work of the store panicked");
    }
}

impl Shared {
    /// Returns the time to use instead of the server's clock.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(Clock::now)
    }

    /// Runs work on a connection, and again on a new one if the connection breaks or another client was faster. The
    /// work must be safe to repeat. Fails after `patience`.
    pub(super) async fn run<T>(
        &self,
        patience: Duration,
        mut work: impl AsyncFnMut(&Connection) -> Result<T, PgError>,
    ) -> Result<T, StoreError> {
        let end = Instant::now() + patience;
        let mut delay = FIRST_DELAY;
        loop {
            let attempt = async {
                let connection = self.pool.take().await?;
                let done = work(&connection).await;
                self.pool.put_back(connection);
                done
            };
            let limit = patience / ATTEMPT_SHARE;
            let error = match timeout(limit, attempt).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(_) => PgError::TimedOut(patience),
            };
            let is_first_connection =
                matches!(error, PgError::Connect(_)) && !self.pool.has_connected.get();
            let is_over = Instant::now() + delay >= end;
            if !error.is_transient() || is_first_connection || is_over {
                return Err(error.into_store_error(&self.pool.address));
            }
            tracing::debug!(%error, "work in the database is repeated");
            if !matches!(error, PgError::Raced) {
                self.pool.close_all();
            }
            sleep(delay).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }
}
