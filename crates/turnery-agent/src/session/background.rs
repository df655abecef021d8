//! Store work that outlives its prompt: a cancelled prompt is answered although its store does not answer.

use super::watch::RENEW;
use futures_util::future::BoxFuture;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::sleep};
use turnery_engine::LoopRecord;
use turnery_store::{Lane, Store, StoreError};

/// How long a cancelled prompt waits for its store (CANCEL-2), in short waits: a busy machine, which delays
/// the store as well, delays each of them.
const STEPS: u32 = 15;
const STEP: Duration = Duration::from_millis(50);

/// Told with the end of a prompt that is not stored yet.
pub(super) const NOT_STORED: &str = "This prompt is not stored yet, because the store of sessions does not \
     answer. turnery keeps trying to store it; if turnery ends before, what was shown may be lost.";

/// Ready once a cancelled prompt has waited long enough for its store.
pub(super) fn store_patience() -> BoxFuture<'static, ()> {
    Box::pin(async {
        for _ in 0..STEPS {
            sleep(STEP).await;
        }
    })
}

/// Store work of an earlier prompt. The next prompt begins when it is done.
#[derive(Default)]
pub(crate) struct BackgroundWork(Option<JoinHandle<()>>);

impl BackgroundWork {
    /// Goes on with `work`. Requires that earlier work has been taken and is done.
    pub(super) fn start(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.0 = Some(tokio::spawn(work));
    }

    /// Takes what is under way: ready when it is done.
    pub(super) fn take(&mut self) -> BoxFuture<'static, ()> {
        let work = self.0.take();
        Box::pin(async {
            if let Some(work) = work {
                // Work that panicked is over, too.
                let _ = work.await;
            }
        })
    }
}

/// A commit that a cancelled prompt no longer waits for.
pub(super) struct OverdueCommit {
    pub(super) store: Arc<dyn Store>,
    pub(super) lane: Lane,
    pub(super) records: Vec<Arc<LoopRecord>>,
    /// The loop's last journal write, which comes before the commit.
    pub(super) journalling: Option<BoxFuture<'static, Result<(), StoreError>>>,
    pub(super) committing: BoxFuture<'static, Result<u64, StoreError>>,
}

impl OverdueCommit {
    /// Goes on to its end, keeps the lane until then and releases it. Loops that could not be stored are
    /// journalled, so that the next claim brings back what was shown (S5).
    pub(super) async fn finish(self) {
        let Self {
            store,
            lane,
            records,
            journalling,
            committing,
        } = self;
        let commit = async {
            if let Some(journalling) = journalling
                && let Err(error) = journalling.await
            {
                tracing::warn!(%error, "failed to journal");
            }
            committing.await
        };
        let keep_lane = async {
            loop {
                sleep(RENEW).await;
                let _ = store.renew(&lane).await;
            }
        };
        let committed = tokio::select! {
            biased;
            committed = commit => committed,
            () = keep_lane => return,
        };
        match committed {
            Ok(_) => tracing::info!(session = %lane.session_id, "a cancelled prompt is stored now"),
            Err(error) => {
                tracing::error!(session = %lane.session_id, %error, "failed to store a cancelled prompt");
                if let StoreError::Broken(_) = error {
                    for record in records {
                        store.append(&lane, &record.loop_id, record.events.clone());
                    }
                }
            }
        }
        // A commit that was made has done so, unless another loop was to follow.
        let _ = store.release(&lane).await;
    }
}
