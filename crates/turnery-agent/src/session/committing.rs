//! Commits loops, and tries again when the store fails for a reason that may pass.

use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
use turnery_store::{Commit, Store, StoreError};

/// Waits between the attempts. A store that is locked takes its own time in each of them.
const WAITS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Commits; while the store is full or locked, tries again for as long as [`WAITS`] says. A commit that was
/// made after all is not made twice (S2). After the first failure the loops are journalled, so that a
/// crash before the next attempt loses nothing that was shown (S5).
pub(super) async fn commit(store: Arc<dyn Store>, commit: Commit) -> Result<u64, StoreError> {
    let mut waits = WAITS.iter();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let why = match store.commit(commit.clone()).await {
            Err(StoreError::Broken(why)) => why,
            done => return done,
        };
        tracing::warn!(attempts, "failed to store an answer: {why}");
        if attempts == 1 {
            journal(&*store, &commit).await;
        }
        match waits.next() {
            Some(wait) => tokio::time::sleep(*wait).await,
            None => return Err(StoreError::Broken(why)),
        }
    }
}

/// Journals the loops of a commit that failed.
async fn journal(store: &dyn Store, commit: &Commit) {
    let writes = commit.records.iter().map(|record| {
        let events = record.events.clone();
        store.append_now(&commit.lane, &record.loop_id, events)
    });
    for written in join_all(writes).await {
        if let Err(error) = written {
            tracing::warn!(%error, "failed to journal");
        }
    }
}
