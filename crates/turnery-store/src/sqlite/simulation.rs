//! Simulates processes that share a database.
//!
//! Each process has a whole store of its own, with its connections and caches. Its threads do not run: the simulation
//! decides when a queued job is done.

use super::SqliteStore;
use crate::{
    Store, StoreError, StoreFuture,
    simulation::{
        BackendKind, Check, Driver, FLAWS, Flaw, MAX_PROCESSES, SimulatedClock, StoreBackend,
        explore, find_flaws, poll_by_hand,
    },
};
use std::sync::Arc;
use turnery_engine::SessionId;

struct SqliteDriver {
    stores: Vec<Arc<SqliteStore>>,
    _folder: tempfile::TempDir,
}

impl SqliteDriver {
    fn work(&self, process: usize) {
        let store = &self.stores[process];
        store.writer.run_queued();
        store.reader.run_queued();
    }
}

impl Driver for SqliteDriver {
    fn finish<T>(&mut self, process: usize, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        poll_by_hand(call, || self.work(process))
    }

    fn flush(&mut self, process: usize, _store: &dyn Store, _session: &SessionId) {
        self.work(process);
    }

    fn crash(&mut self, process: usize) -> Option<Arc<dyn Store>> {
        self.stores[process].writer.forget();
        None
    }

    fn begin_schedule(&mut self) -> Option<Arc<dyn Store>> {
        for store in &self.stores {
            store.writer.forget();
        }
        None
    }
}

fn backend() -> StoreBackend<SqliteDriver> {
    let clock = SimulatedClock::default();
    let folder = super::power_loss::temp_folder();
    let stores = (0..MAX_PROCESSES).map(|_| {
        let path = folder.path().join("sessions.db");
        let store = SqliteStore::with_clock(path, clock.clock());
        store.writer.run_by_hand();
        store.reader.run_by_hand();
        Arc::new(store)
    });
    let stores: Vec<_> = stores.collect();
    let shared = stores
        .iter()
        .map(|store| Arc::clone(store) as Arc<dyn Store>);
    let driver = SqliteDriver {
        stores: stores.clone(),
        _folder: folder,
    };
    let kind = BackendKind { has_server: false };
    StoreBackend::new(kind, shared.collect(), clock, driver)
}

// proves: S1, S2, S3, S5, S6, S8, UP-27
#[test]
fn schedules_of_sqlite_store_are_serialisable() {
    explore("SQLite", 5_000, &[], backend);
}

#[test]
fn flaws_of_sqlite_store_are_found() {
    find_flaws(1_000, &FLAWS, backend());
    find_flaws(
        1_000,
        &[(Flaw::JournalDropped, &[Check::JournalIsKept])],
        backend(),
    );
}
