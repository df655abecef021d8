//! Checks the loop grammar of everything that a test leaves in a store.

use crate::{ArchivedFilter, ListQuery, Store, StoreError};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use turnery_engine::{
    Event,
    oracle::{LoopOracles, check_record},
};

/// Sessions read in one page; more than any test creates.
const MAX_SESSIONS: usize = 10_000;

/// Checks shown events during a test, and in the end the contents of the store; fails the test if either
/// breaks the grammar of loop events.
pub struct OracleGuard {
    store: Arc<dyn Store>,
    watch: Arc<Mutex<LoopOracles>>,
}

/// Receives the events shown to a client. Clones feed the same guard.
#[derive(Clone, Debug)]
pub struct EventObserver(Arc<Mutex<LoopOracles>>);

impl EventObserver {
    /// Checks an event shown to a client.
    pub fn observe(&self, event: &Event) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .observe(event);
    }
}

impl OracleGuard {
    /// Creates a guard for this store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            watch: Arc::default(),
        }
    }

    /// Returns an observer that feeds this guard.
    #[must_use]
    pub fn observer(&self) -> EventObserver {
        EventObserver(Arc::clone(&self.watch))
    }

    fn verdict(&self) -> Result<(), String> {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.result()?;
        thread::scope(|scope| {
            let checked = scope.spawn(|| {
                tokio::runtime::Builder::new_current_thread()
                    .build()
                    .map_err(|error| error.to_string())?
                    .block_on(check_store(&*self.store))
            });
            checked.join().map_err(|_| "the check broke".to_owned())?
        })
    }
}

impl Drop for OracleGuard {
    fn drop(&mut self) {
        // The test already fails.
        if thread::panicking() {
            return;
        }
        if let Err(complaint) = self.verdict() {
            panic!("the oracle says: {complaint}");
        }
    }
}

impl fmt::Debug for OracleGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OracleGuard").finish_non_exhaustive()
    }
}

/// Checks every loop of every session in a store, including child sessions.
async fn check_store(store: &dyn Store) -> Result<(), String> {
    let unreadable = |error: StoreError| format!("the store cannot be read: {error}");
    let all = ListQuery {
        spawned: true,
        archived: ArchivedFilter::Include,
        limit: MAX_SESSIONS,
        ..ListQuery::default()
    };
    for session in store.list(all).await.map_err(unreadable)?.sessions {
        for record in store.loops(&session.id, 0).await.map_err(unreadable)? {
            check_record(&record)?;
        }
    }
    Ok(())
}
