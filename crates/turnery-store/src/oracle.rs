//! Oracle: what a test leaves behind in a store keeps the grammar, whatever the test was about.

use crate::{Archived, ListQuery, Store, StoreError};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use turnery_engine::{
    Event,
    oracle::{Watch, check_record},
};

/// What the test may read in one go; no test makes that many sessions.
const ALL: usize = 10_000;

/// Held by the world of a test: watches what is shown, and in the end fails the test if that, or
/// anything in the store, breaks the grammar of section 6.2.
pub struct Guard {
    store: Arc<dyn Store>,
    watch: Arc<Mutex<Watch>>,
}

/// Where the guard is shown events. Clones show to the same guard.
#[derive(Clone, Debug)]
pub struct Eye(Arc<Mutex<Watch>>);

impl Eye {
    /// An event is shown to a client.
    pub fn see(&self, event: &Event) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .see(event);
    }
}

impl Guard {
    /// A guard over this store.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            watch: Arc::default(),
        }
    }

    /// Where to show it events.
    #[must_use]
    pub fn eye(&self) -> Eye {
        Eye(Arc::clone(&self.watch))
    }

    fn verdict(&self) -> Result<(), String> {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.verdict()?;
        thread::scope(|scope| {
            let checked = scope.spawn(|| {
                tokio::runtime::Builder::new_current_thread()
                    .build()
                    .map_err(|error| error.to_string())?
                    .block_on(check(&*self.store))
            });
            checked.join().map_err(|_| "the check broke".to_owned())?
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A test that fails already says enough.
        if thread::panicking() {
            return;
        }
        if let Err(complaint) = self.verdict() {
            panic!("the oracle says: {complaint}");
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// Check every loop of every session in a store, those of child sessions too.
async fn check(store: &dyn Store) -> Result<(), String> {
    let fault = |error: StoreError| format!("the store cannot be read: {error}");
    let all = ListQuery {
        spawned: true,
        archived: Archived::Include,
        limit: ALL,
        ..ListQuery::default()
    };
    for session in store.list(all).await.map_err(fault)?.sessions {
        for record in store.loops(&session.id, 0).await.map_err(fault)? {
            check_record(&record)?;
        }
    }
    Ok(())
}
