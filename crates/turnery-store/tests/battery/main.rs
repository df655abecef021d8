//! Runs one battery of cases against the memory store, SQLite and PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod bit_flips;
mod claim_and_journal;
mod commits;
mod concurrent_reads;
mod damage;
mod damaged_lane;
mod deletion;
mod effects;
mod export;
mod files;
mod flawed_stores;
mod follow;
mod follow_processes;
mod lanes;
mod lineage;
mod listing;
mod locked;
mod long_texts;
mod migrate;
mod migration;
mod model_based;
mod moved;
mod newer_version;
mod notes_and_approvals;
#[cfg(feature = "postgres")]
mod postgres_cost;
#[cfg(feature = "postgres")]
mod postgres_migration;
#[cfg(feature = "postgres")]
mod privileges;
mod processes;
mod queued_prompts;
mod recovery;
mod renamed_ids;
mod replay;
mod samples;
mod search;
mod search_equality;
#[cfg(feature = "postgres")]
mod server_faults;
mod sessions;
mod sql;
mod truncated_wal;
mod upkeep;
mod variants;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};
use turnery_engine::{LoopRecord, Timestamp};
use turnery_store::{
    ClaimedLane, Clock, Lane, MemoryStore, SessionInfo, SqliteStore, Store, StoreError, StoreFuture,
};

/// A store under test, with the clock of its leases.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<Mutex<Timestamp>>,
    /// True if one heartbeat keeps all lanes of a process alive.
    pub(crate) has_heartbeat: bool,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn memory() -> Self {
        let clock = Arc::new(Mutex::new(samples::at(0)));
        let store = MemoryStore::with_clock(test_clock(&clock));
        Self {
            store: Arc::new(store),
            clock,
            has_heartbeat: false,
            _folder: None,
        }
    }

    pub(crate) fn sqlite() -> Self {
        let clock = Arc::new(Mutex::new(samples::at(0)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("turnery").join("sessions.db");
        Self {
            store: Arc::new(SqliteStore::with_clock(path, test_clock(&clock))),
            clock,
            has_heartbeat: false,
            _folder: Some(folder),
        }
    }

    /// Creates a store in a schema of its own, on the server that `cargo xtask postgres` has started.
    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        let clock = Arc::new(Mutex::new(samples::at(0)));
        let address = postgres_address(&turnery_store::new_uuid().to_string());
        let store = turnery_store::PostgresStore::with_clock(address, test_clock(&clock));
        Self {
            store: Arc::new(store),
            clock,
            has_heartbeat: true,
            _folder: None,
        }
    }

    /// Commits one loop of the lane's session.
    pub(crate) fn commit(
        &self,
        lane: &Lane,
        expected_head: u64,
        record: &Arc<LoopRecord>,
    ) -> StoreFuture<'_, u64> {
        let commit = samples::commit_of(lane, expected_head, record);
        self.store.commit(commit)
    }

    /// Claims session `s1` for an owner of this name.
    pub(crate) fn claim(&self, owner: &str) -> StoreFuture<'_, ClaimedLane> {
        self.store.claim(&"s1".into(), &samples::owner(owner))
    }

    /// Returns all loops of session `s1`.
    pub(crate) fn loops(&self) -> StoreFuture<'_, Vec<Arc<LoopRecord>>> {
        self.store.loops(&"s1".into(), 0)
    }

    /// Returns the metadata of session `s1`.
    pub(crate) fn info(&self) -> StoreFuture<'_, SessionInfo> {
        self.store.info(&"s1".into())
    }

    /// Advances the clock.
    pub(crate) fn advance_clock(&self, seconds: u32) {
        let mut now = self.clock.lock().expect("the clock");
        *now += std::time::Duration::from_secs(seconds.into());
    }
}

/// Returns a new folder, and the path of a database in it that does not exist yet.
pub(crate) fn temp_database() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    (folder, path)
}

/// Returns the address of a schema on the server that `cargo xtask postgres` has started.
#[cfg(feature = "postgres")]
pub(crate) fn postgres_address(schema: &str) -> turnery_store::PostgresAddress {
    let url = postgres_url(schema);
    turnery_store::PostgresAddress::parse(&url, |_| None).expect("an address")
}

#[cfg(feature = "postgres")]
pub(crate) fn postgres_url(schema: &str) -> String {
    let url = std::env::var("POSTGRES_TEST_URL").expect(
        "POSTGRES_TEST_URL is the address of a PostgreSQL server for tests: run the tests with \
         `cargo xtask ci test`, or one of them with `cargo xtask postgres -- cargo test ...`",
    );
    format!("{url}?schema={schema}")
}

/// Returns true if the machine was too busy for the store to respond in time.
pub(crate) fn is_late(error: &StoreError) -> bool {
    matches!(error, StoreError::Broken(text) if text.contains("did not respond within"))
}

/// Connects to a server without a store. Parameters of the address that only turnery knows are left out.
#[cfg(feature = "postgres")]
pub(crate) async fn connect(address: &str) -> tokio_postgres::Client {
    let (place, parameters) = address.split_once('?').unwrap_or((address, ""));
    let known = parameters
        .split('&')
        .filter(|it| !it.starts_with("schema="));
    let known: Vec<&str> = known.collect();
    let address = format!("{place}?{}", known.join("&"));
    let connected = tokio_postgres::connect(&address, tokio_postgres::NoTls).await;
    let (client, connection) = connected.expect("a connection");
    tokio::spawn(connection);
    client
}

fn test_clock(clock: &Arc<Mutex<Timestamp>>) -> Clock {
    let clock = clock.clone();
    Clock::new(move || *clock.lock().expect("the clock"))
}

/// Creates a test of each case for each store.
macro_rules! battery {
    ($($case:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&crate::World::memory()).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&crate::World::sqlite()).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&crate::World::postgres()).await;
            })+
        }
    };
}
pub(crate) use battery;
