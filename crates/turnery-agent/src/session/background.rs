//! Runs store work that outlives its prompt: a cancelled prompt returns even if its store does not respond.

use super::output::SessionOutput;
use crate::client::OutboxItem;
use futures_util::future::BoxFuture;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::{Sleep, sleep},
};
use turnery_engine::{Event, EventKind, LoopRecord};
use turnery_store::{Lane, Store, StoreError};

/// Interval of lane renewals; a lane is held for three times as long.
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// How long a cancelled prompt waits for its store (CANCEL-2), split into short waits: a busy machine, which
/// delays the store, delays each of them too.
const STORE_WAIT_STEPS: u32 = 15;
const STORE_WAIT_STEP: Duration = Duration::from_millis(50);

/// Notice at the end of a prompt that is not stored yet.
pub(super) const NOT_STORED: &str = "This prompt is not stored yet, because the store of sessions does not \
     answer. turnery keeps trying to store it; if turnery ends before, what was shown may be lost.";

/// Notice while a prompt waits for an earlier one.
const STILL_STORING: &str = "The previous prompt is still being stored, because the store of sessions does \
     not answer. This prompt begins when that is done.";

/// How long a prompt waits for an earlier one before the client is told.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Resolves once a cancelled prompt has waited long enough for its store.
pub(super) fn store_timeout() -> BoxFuture<'static, ()> {
    Box::pin(async {
        for _ in 0..STORE_WAIT_STEPS {
            sleep(STORE_WAIT_STEP).await;
        }
    })
}

/// Store work of an earlier prompt. The next prompt begins after it.
#[derive(Default)]
pub(crate) struct BackgroundWork {
    work: Option<JoinHandle<()>>,
    /// Work returned by the last [`take_work`](Self::take_work).
    taken: Option<AbortHandle>,
    /// Last event shown of a loop whose commit is overdue. Notices about the commit follow it; without it
    /// there are none, since an event belongs to a loop that has begun.
    last_shown: Option<Event>,
    /// Delay of the notice to the client; `None` once it was sent.
    notice_due: Option<Pin<Box<Sleep>>>,
}

impl BackgroundWork {
    /// Starts `work`, which includes the rest of the work taken last.
    pub(super) fn start(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        if !self.is_awaited() {
            self.last_shown = None;
        }
        self.work = Some(tokio::spawn(work));
    }

    /// Starts to finish `commit`; `last_shown` is the last event shown of its loop. Requires that earlier
    /// work has been taken and is done.
    pub(super) fn start_commit(&mut self, commit: OverdueCommit, last_shown: Event) {
        self.work = Some(tokio::spawn(commit.finish()));
        self.last_shown = Some(last_shown);
    }

    /// Returns true while the work taken last is running.
    fn is_awaited(&self) -> bool {
        self.taken.as_ref().is_some_and(|work| !work.is_finished())
    }

    /// Notifies the client once, after [`NOTICE_DELAY`], that a prompt waits for the work taken last, if that
    /// includes a commit.
    pub(super) fn poll_notice(&mut self, cx: &mut Context<'_>, shown: &mut SessionOutput) {
        // The sink may still be handling the notice.
        let _ = shown.poll_idle(cx);
        let is_awaited = self.is_awaited();
        let (Some(due), Some(last)) = (&mut self.notice_due, &mut self.last_shown) else {
            return;
        };
        if !is_awaited {
            self.notice_due = None;
        } else if due.as_mut().poll(cx).is_ready()
            && let Poll::Ready(()) = shown.poll_ready(cx)
        {
            self.notice_due = None;
            last.seq += 1;
            last.at = turnery_store::now();
            last.turn_index = None;
            last.kind = EventKind::Issue {
                text: STILL_STORING.to_owned(),
            };
            shown.push(OutboxItem::Live(last));
        }
    }

    /// Takes the pending work; the future resolves when it is done.
    pub(super) fn take_work(&mut self) -> BoxFuture<'static, ()> {
        let work = self.work.take();
        self.taken = work.as_ref().map(JoinHandle::abort_handle);
        self.notice_due = work.as_ref().map(|_| Box::pin(sleep(NOTICE_DELAY)));
        Box::pin(async {
            if let Some(work) = work {
                // Work that panicked is done, too.
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
    /// Finishes the commit, keeps the lane until then and releases it. Loops that could not be stored are
    /// journalled, so that the next claim recovers what was shown (S5).
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
                sleep(RENEW_INTERVAL).await;
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
        // A successful commit has released it already, unless another loop was to follow.
        let _ = store.release(&lane).await;
    }
}
