//! Executes requests on a store.

use super::{
    flaws::Flaw,
    request::{Progress, Request, Response},
};
use crate::{
    ClaimOutcome, Clock, MemoryStore, NewSession, SessionInfo, Store, StoreError, StoreFuture,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use turnery_engine::{LoopRecord, SessionId, Timestamp};

/// Maximum number of processes of a simulation.
pub(crate) const MAX_PROCESSES: usize = 4;

/// A store, or a model of one.
pub(crate) trait Backend {
    fn kind(&self) -> BackendKind;

    /// Empties the store, or returns a number that makes the sessions and processes of the schedule new to it.
    fn begin_schedule(&mut self) -> u64;

    /// Makes the store or its model flawed.
    fn set_flaw(&mut self, _flaw: Option<Flaw>) {}

    fn create(&mut self, new: NewSession) -> Result<(), StoreError>;

    /// Executes the next part of a request; `None` if more parts follow.
    fn perform(
        &mut self,
        time: ProcessTime,
        request: &Request,
        progress: &mut Progress,
    ) -> Option<Response>;

    /// Returns a difference that was found between two stores that must be alike.
    fn take_difference(&mut self) -> Option<String> {
        None
    }

    /// Loses what the process in this place has in memory.
    fn crash(&mut self, process: usize);

    /// Reads the loops committed after this head version.
    fn loops(
        &mut self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<Arc<LoopRecord>>, StoreError>;

    fn info(&mut self, session: &SessionId) -> Result<SessionInfo, StoreError>;
}

/// Properties of a store by which a simulation judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackendKind {
    /// True if one heartbeat of a process, by the clock of a server, keeps all its lanes; false if each lane has a lease
    /// by the clocks of the machines.
    pub(crate) has_server: bool,
}

/// Process that sends a request, and the clocks that it sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTime {
    pub(crate) process: usize,
    /// Wall clock of its machine, or of the server.
    pub(crate) wall: Timestamp,
    /// Monotonic clock of its machine.
    pub(crate) monotonic: Duration,
}

/// A clock that a test sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimulatedClock(Arc<ClockValues>);

#[derive(Debug, Default)]
struct ClockValues {
    /// Unit: microseconds since 1970.
    wall: AtomicI64,
    /// Unit: milliseconds.
    monotonic: AtomicU64,
}

impl SimulatedClock {
    pub(crate) fn set(&self, time: ProcessTime) {
        let wall = time.wall.timestamp_micros();
        self.0.wall.store(wall, Ordering::Relaxed);
        let monotonic = u64::try_from(time.monotonic.as_millis()).unwrap();
        self.0.monotonic.store(monotonic, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> Clock {
        let (wall, monotonic) = (self.clone(), self.clone());
        Clock::with_monotonic(
            move || Timestamp::from_timestamp_micros(wall.0.wall.load(Ordering::Relaxed)).unwrap(),
            move || Duration::from_millis(monotonic.0.monotonic.load(Ordering::Relaxed)),
        )
    }
}

/// Makes the calls of stores return.
pub(crate) trait Driver {
    /// Waits for a call of the store of this process.
    fn finish<T>(&mut self, process: usize, call: StoreFuture<'_, T>) -> Result<T, StoreError>;

    /// Executes everything that the store of this process has queued for a session.
    fn flush(&mut self, process: usize, store: &dyn Store, session: &SessionId);

    /// Loses what a process has in memory. Returns its new store, unless the old one goes on.
    fn crash(&mut self, process: usize) -> Option<Arc<dyn Store>>;

    /// Begins a schedule with other sessions and processes. Returns a new store, if each schedule has one.
    fn begin_schedule(&mut self) -> Option<Arc<dyn Store>> {
        None
    }

    /// True if events must be awaited, since they would be written at a time that the test does not know.
    fn awaits_appends(&self) -> bool {
        false
    }
}

/// Polls a call, and does the work that it waits for.
pub(crate) fn poll_by_hand<T>(
    mut call: StoreFuture<'_, T>,
    mut work: impl FnMut(),
) -> Result<T, StoreError> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        work();
        if let Poll::Ready(answer) = call.as_mut().poll(&mut context) {
            return answer;
        }
    }
}

/// Real stores behind [`Store`]: one for each process, or one for all.
pub(crate) struct StoreBackend<D> {
    kind: BackendKind,
    stores: Vec<Arc<dyn Store>>,
    clock: SimulatedClock,
    driver: D,
    schedule_count: u64,
}

impl<D: Driver> StoreBackend<D> {
    pub(crate) fn new(
        kind: BackendKind,
        stores: Vec<Arc<dyn Store>>,
        clock: SimulatedClock,
        driver: D,
    ) -> Self {
        Self {
            kind,
            stores,
            clock,
            driver,
            schedule_count: 0,
        }
    }

    fn store(&self, process: usize) -> Arc<dyn Store> {
        Arc::clone(&self.stores[process % self.stores.len()])
    }

    /// Returns the store, with its place, that is asked by the test itself: the last one.
    fn observer(&self) -> (usize, Arc<dyn Store>) {
        let last = self.stores.len() - 1;
        (last, self.store(last))
    }
}

impl<D: Driver> Backend for StoreBackend<D> {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn begin_schedule(&mut self) -> u64 {
        if let Some(store) = self.driver.begin_schedule() {
            self.stores = vec![store];
            return 0;
        }
        self.schedule_count += 1;
        self.schedule_count
    }

    fn create(&mut self, new: NewSession) -> Result<(), StoreError> {
        let (place, store) = self.observer();
        self.driver.finish(place, store.create(new)).map(drop)
    }

    fn perform(
        &mut self,
        time: ProcessTime,
        request: &Request,
        _progress: &mut Progress,
    ) -> Option<Response> {
        self.clock.set(time);
        let process = time.process;
        let store = self.store(process);
        let driver = &mut self.driver;
        Some(match request.clone() {
            Request::Claim {
                session,
                owner,
                beginning: Some(beginning),
            } => {
                let call = store.claim_and_journal(&session, &owner, beginning);
                Response::Claimed(driver.finish(process, call))
            }
            Request::Claim {
                session,
                owner,
                beginning: None,
            } => {
                let claimed = driver.finish(process, store.claim(&session, &owner));
                Response::Claimed(claimed.map(|claimed_lane| ClaimOutcome {
                    claimed_lane,
                    is_journalled: false,
                }))
            }
            Request::ForgetJournal {
                session,
                owner,
                loop_id,
            } => {
                store.forget_journal(&session, &owner, &loop_id);
                driver.flush(process, &*store, &session);
                Response::Done(Ok(()))
            }
            Request::Append {
                lane,
                loop_id,
                events,
                is_awaited,
            } => {
                if is_awaited || driver.awaits_appends() {
                    let call = store.append_now(&lane, &loop_id, events);
                    match driver.finish(process, call) {
                        Err(StoreError::LaneLost(_)) if !is_awaited => Response::Done(Ok(())),
                        written => Response::Done(written),
                    }
                } else {
                    store.append(&lane, &loop_id, events);
                    Response::Done(Ok(()))
                }
            }
            Request::Commit(commit) => {
                Response::Committed(driver.finish(process, store.commit(commit)))
            }
            Request::Renew(lane) => Response::Done(driver.finish(process, store.renew(&lane))),
            Request::Release(lane) => Response::Done(driver.finish(process, store.release(&lane))),
            Request::Recover(session) => {
                let recovered = driver.finish(process, store.recover(&session));
                Response::Done(recovered.map(|damage| assert_eq!(damage, [])))
            }
            Request::Delete {
                session,
                is_forced: false,
            } => Response::Deleted(driver.finish(process, store.delete(&session))),
            Request::Delete {
                session,
                is_forced: true,
            } => {
                let deleted = driver.finish(process, store.delete_in_use(&session));
                Response::Deleted(deleted.map(|holders| holders.is_some()))
            }
            Request::TakeEffect { session, owner } => {
                Response::Effect(driver.finish(process, store.take_effect(&session, &owner)))
            }
            Request::FinishEffect(taken) => {
                Response::Done(driver.finish(process, store.finish_effect(&taken)))
            }
            Request::PostponeEffect(taken, delay) => {
                Response::Done(driver.finish(process, store.postpone_effect(&taken, delay)))
            }
        })
    }

    fn crash(&mut self, process: usize) {
        let count = self.stores.len();
        if let Some(store) = self.driver.crash(process) {
            self.stores[process % count] = store;
        }
    }

    fn loops(
        &mut self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<Arc<LoopRecord>>, StoreError> {
        let (place, store) = self.observer();
        self.driver.finish(place, store.loops(session, after))
    }

    fn info(&mut self, session: &SessionId) -> Result<SessionInfo, StoreError> {
        let (place, store) = self.observer();
        self.driver.finish(place, store.info(session))
    }
}

/// Nothing is queued by a store in memory, which survives the simulated processes.
pub(crate) struct MemoryDriver(SimulatedClock);

impl Driver for MemoryDriver {
    fn finish<T>(&mut self, _process: usize, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        poll_by_hand(call, || {})
    }

    fn flush(&mut self, _process: usize, _store: &dyn Store, _session: &SessionId) {}

    fn crash(&mut self, _process: usize) -> Option<Arc<dyn Store>> {
        None
    }

    fn begin_schedule(&mut self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(MemoryStore::with_clock(self.0.clock())))
    }
}

/// Returns a backend with the store in memory.
pub(crate) fn memory_backend() -> StoreBackend<MemoryDriver> {
    let clock = SimulatedClock::default();
    let kind = BackendKind { has_server: false };
    StoreBackend::new(kind, Vec::new(), clock.clone(), MemoryDriver(clock))
}
