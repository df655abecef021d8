//! Commits loops. A commit that fails with [`StoreError::Broken`] is retried five times, within some seconds.

use super::effect_delivery::EffectOutbox;
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
use turnery_engine::LoopId;
use turnery_store::{Commit, Store, StoreError};

/// Delays between attempts. A locked store adds its own wait to each.
const RETRY_DELAYS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Commits, and retries after [`RETRY_DELAYS`] if the store is broken, for example full or locked; other
/// errors are returned at once. The store recognizes a repeated commit (S2). After the first failure the loops
/// are journalled, so that a crash before the next attempt loses nothing that was shown (S5). Effects in the commit
/// are delivered afterwards. A commit whose tip is part of the conversation also stores the effects of the
/// interrupted loops before it.
pub(super) async fn commit_with_retry(
    store: Arc<dyn Store>,
    mut commit: Commit,
    outbox: Option<EffectOutbox>,
    interrupted: Vec<LoopId>,
) -> Result<u64, StoreError> {
    if let Some(outbox) = &outbox
        && commit.records[commit.tip].on_chain
    {
        let earlier = outbox.read_effects(&*store, &interrupted).await?;
        commit.effects.splice(0..0, earlier);
    }
    let mut waits = RETRY_DELAYS.iter();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let why = match store.commit(commit.clone()).await {
            Err(StoreError::Broken(why)) => why,
            done => {
                if let Some(outbox) = outbox.filter(|_| !commit.effects.is_empty()) {
                    outbox.notify_stored();
                }
                return done;
            }
        };
        tracing::warn!(attempts, "failed to store an answer: {why}");
        if attempts == 1 {
            journal_records(&*store, &commit).await;
        }
        match waits.next() {
            Some(wait) => tokio::time::sleep(*wait).await,
            None => return Err(StoreError::Broken(why)),
        }
    }
}

/// Journals the loops of a commit that failed.
async fn journal_records(store: &dyn Store, commit: &Commit) {
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
