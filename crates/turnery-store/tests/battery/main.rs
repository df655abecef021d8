//! One battery for all stores: each case runs against the memory store and against SQLite.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod beginnings;
mod broken;
mod commits;
mod damage;
mod damaged_lane;
mod export;
mod files;
mod flips;
mod forgotten;
mod ids;
mod kept;
mod lanes;
mod laws;
mod lineage;
mod listing;
mod locked;
mod migration;
mod moved;
mod newer;
mod processes;
mod recovery;
mod samples;
mod sessions;
mod shown;
mod sql;
mod texts;
mod torn;
mod variants;

use std::sync::{Arc, Mutex};
use turnery_engine::Timestamp;
use turnery_store::{Clock, MemoryStore, SqliteStore, Store};

/// A store under test, and the clock that its lanes go by.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<Mutex<Timestamp>>,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn memory() -> Self {
        let clock = Arc::new(Mutex::new(samples::at(0)));
        let store = MemoryStore::with_clock(reading(&clock));
        Self {
            store: Arc::new(store),
            clock,
            _folder: None,
        }
    }

    pub(crate) fn sqlite() -> Self {
        let clock = Arc::new(Mutex::new(samples::at(0)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("turnery").join("sessions.db");
        Self {
            store: Arc::new(SqliteStore::with_clock(path, reading(&clock))),
            clock,
            _folder: Some(folder),
        }
    }

    /// Turn the clock.
    pub(crate) fn pass(&self, seconds: u32) {
        let mut now = self.clock.lock().expect("the clock");
        *now += std::time::Duration::from_secs(seconds.into());
    }
}

fn reading(clock: &Arc<Mutex<Timestamp>>) -> Clock {
    let clock = clock.clone();
    Clock::new(move || *clock.lock().expect("the clock"))
}

/// Make a test of each case for each store.
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
    };
}
pub(crate) use battery;
