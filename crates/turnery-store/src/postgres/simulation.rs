//! Simulates processes that share a PostgreSQL database.
//!
//! Most schedules run on a model of the tables and statements, which allows every interleaving. Some are repeated on a
//! real server, one request after the other, and must have the same answers and the same loops.

mod model;

use super::{PostgresAddress, PostgresStore};
use crate::{
    NewSession, SessionInfo, Store, StoreError, StoreFuture,
    simulation::{
        Backend, BackendKind, Check, Driver, FLAWS, Flaw, MAX_PROCESSES, ProcessTime, Progress,
        Request, Response, SimulatedClock, StoreBackend, explore, find_flaws,
    },
};
use model::PgModel;
use std::{fmt::Debug, sync::Arc};
use tokio::runtime::Runtime;
use turnery_engine::{LoopRecord, SessionId};

/// A real server.
struct PostgresDriver {
    runtime: Runtime,
    address: PostgresAddress,
    clock: SimulatedClock,
}

impl PostgresDriver {
    fn open(&self) -> Arc<dyn Store> {
        let clock = self.clock.clock();
        Arc::new(PostgresStore::with_clock(self.address.clone(), clock))
    }
}

impl Driver for PostgresDriver {
    fn finish<T>(&mut self, _process: usize, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        self.runtime.block_on(call)
    }

    /// Waits for a call that changes nothing, and that is executed after all earlier ones for the session.
    fn flush(&mut self, _process: usize, store: &dyn Store, session: &SessionId) {
        let nobody = crate::Lane {
            session_id: session.clone(),
            owner_id: String::new(),
            fence: 0,
        };
        self.runtime.block_on(store.release(&nobody)).unwrap();
    }

    fn crash(&mut self, _process: usize) -> Option<Arc<dyn Store>> {
        Some(self.open())
    }

    fn awaits_appends(&self) -> bool {
        true
    }
}

/// The model and a server, whose answers must be the same.
struct Twins {
    model: PgModel,
    server: StoreBackend<PostgresDriver>,
    difference: Option<String>,
}

impl Twins {
    fn new() -> Self {
        let url = std::env::var("POSTGRES_TEST_URL").expect(
            "POSTGRES_TEST_URL is the address of a PostgreSQL server for tests: run the tests with \
             `cargo xtask ci test`, or one of them with `cargo xtask postgres -- cargo test ...`",
        );
        let url = format!("{url}?schema={}", crate::new_uuid());
        let clock = SimulatedClock::default();
        let driver = PostgresDriver {
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            address: PostgresAddress::parse(&url, |_| None).unwrap(),
            clock: clock.clone(),
        };
        // The last one is no process: a store stays on the machine of its first call.
        let stores = (0..=MAX_PROCESSES).map(|_| driver.open()).collect();
        let kind = BackendKind { has_server: true };
        Self {
            model: PgModel::default(),
            server: StoreBackend::new(kind, stores, clock, driver),
            difference: None,
        }
    }

    fn compare<T: PartialEq + Debug>(&mut self, found: T, expected: &T) -> T {
        if found != *expected {
            let difference = format!("the server answers {found:?}, its model {expected:?}");
            self.difference.get_or_insert(difference);
        }
        found
    }
}

/// Leaves out the description of a holder.
fn without_holder(response: Response) -> Response {
    fn replace<T>(result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| match error {
            StoreError::Busy { session, holder: _ } => StoreError::Busy {
                session,
                holder: String::new(),
            },
            other => other,
        })
    }
    match response {
        Response::Claimed(result) => Response::Claimed(replace(result)),
        Response::Committed(result) => Response::Committed(replace(result)),
        Response::Deleted(result) => Response::Deleted(replace(result)),
        Response::Effect(result) => Response::Effect(replace(result)),
        Response::Done(result) => Response::Done(replace(result)),
    }
}

impl Backend for Twins {
    fn kind(&self) -> BackendKind {
        self.model.kind()
    }

    fn begin_schedule(&mut self) -> u64 {
        self.model.begin_schedule();
        // Each schedule places the processes anew.
        for process in 0..MAX_PROCESSES {
            self.server.crash(process);
        }
        self.server.begin_schedule()
    }

    fn create(&mut self, new: NewSession) -> Result<(), StoreError> {
        self.model.create(new.clone())?;
        self.server.create(new)
    }

    fn perform(
        &mut self,
        time: ProcessTime,
        request: &Request,
        progress: &mut Progress,
    ) -> Option<Response> {
        let expected = loop {
            if let Some(response) = self.model.perform(time, request, progress) {
                break response;
            }
        };
        let found = self.server.perform(time, request, progress)?;
        Some(self.compare(without_holder(found), &without_holder(expected)))
    }

    fn take_difference(&mut self) -> Option<String> {
        self.difference.take()
    }

    fn crash(&mut self, process: usize) {
        self.model.crash(process);
        self.server.crash(process);
    }

    fn loops(
        &mut self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<Arc<LoopRecord>>, StoreError> {
        let expected = self.model.loops(session, after);
        let found = self.server.loops(session, after);
        self.compare(found, &expected)
    }

    fn info(&mut self, session: &SessionId) -> Result<SessionInfo, StoreError> {
        let expected = self.model.info(session);
        let found = self.server.info(session);
        self.compare(found, &expected)
    }
}

// proves: S1, S2, S3, S5, S6, S8, UP-27
#[test]
fn schedules_of_postgres_model_are_serialisable() {
    explore("the model of PostgreSQL", 55_000, &[], PgModel::default);
}

#[test]
fn flaws_of_postgres_model_are_found() {
    let flaws: [(Flaw, &[Check]); 3] = [
        (Flaw::JournalDropped, &[Check::JournalIsKept]),
        (
            Flaw::ReplacedWithoutComparison,
            &[Check::LivingHolderIsKept],
        ),
        (Flaw::TakenWithoutComparison, &[Check::EffectHasOneTaker]),
    ];
    find_flaws(20_000, &flaws, PgModel::default());
    find_flaws(2_000, &FLAWS, PgModel::default());
}

#[test]
fn server_answers_like_the_postgres_model() {
    explore("PostgreSQL beside its model", 300, &[], Twins::new);
}
