//! Store work that outlives its prompt: a cancelled prompt is answered although its store does not answer.

use super::watch::RENEW;
use crate::{Item, sink::Shown};
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

/// How long a cancelled prompt waits for its store (CANCEL-2), in short waits: a busy machine, which delays
/// the store as well, delays each of them.
const STEPS: u32 = 15;
const STEP: Duration = Duration::from_millis(50);

/// Told with the end of a prompt that is not stored yet.
pub(super) const NOT_STORED: &str = "This prompt is not stored yet, because the store of sessions does not \
     answer. turnery keeps trying to store it; if turnery ends before, what was shown may be lost.";

/// Shown while a prompt waits for an earlier one.
const STILL_STORING: &str = "The previous prompt is still being stored, because the store of sessions does \
     not answer. This prompt begins when that is done.";

/// How long a prompt waits for an earlier one before the client is told.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

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
pub(crate) struct BackgroundWork {
    work: Option<JoinHandle<()>>,
    /// Work that was taken last.
    taken: Option<AbortHandle>,
    /// Last event that was shown of a loop whose commit is overdue. Notices about the commit follow it; without it
    /// there is none, since an event belongs to a loop that has begun.
    last_shown: Option<Event>,
    /// When the client is told that a prompt waits; `None` once that is done.
    notice_due: Option<Pin<Box<Sleep>>>,
}

impl BackgroundWork {
    /// Goes on with `work`, which includes what is left of the work that was taken last.
    pub(super) fn start(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        if !self.is_waited_for() {
            self.last_shown = None;
        }
        self.work = Some(tokio::spawn(work));
    }

    /// Goes on with `commit`; `last_shown` is the last event that was shown of a loop in it. Requires that
    /// earlier work has been taken and is done.
    pub(super) fn start_commit(&mut self, commit: OverdueCommit, last_shown: Event) {
        self.work = Some(tokio::spawn(commit.finish()));
        self.last_shown = Some(last_shown);
    }

    /// Returns true while the work that was taken last is under way.
    fn is_waited_for(&self) -> bool {
        self.taken.as_ref().is_some_and(|work| !work.is_finished())
    }

    /// Tells the client once, after [`NOTICE_DELAY`], that a prompt waits for the work that was taken, if a
    /// commit is part of that.
    pub(super) fn poll_notice(&mut self, cx: &mut Context<'_>, shown: &mut Shown<'_>) {
        // A sink may be at work on the notice.
        let _ = shown.poll_idle(cx);
        let is_waited_for = self.is_waited_for();
        let (Some(due), Some(last)) = (&mut self.notice_due, &mut self.last_shown) else {
            return;
        };
        if !is_waited_for {
            self.notice_due = None;
        } else if due.as_mut().poll(cx).is_ready()
            && let Poll::Ready(()) = shown.poll_room(cx)
        {
            self.notice_due = None;
            last.seq += 1;
            last.at = turnery_store::now();
            last.turn_index = None;
            last.kind = EventKind::Issue {
                text: STILL_STORING.to_owned(),
            };
            shown.push(Item::Live(last));
        }
    }

    /// Takes what is under way: ready when it is done.
    pub(super) fn take(&mut self) -> BoxFuture<'static, ()> {
        let work = self.work.take();
        self.taken = work.as_ref().map(JoinHandle::abort_handle);
        self.notice_due = work.as_ref().map(|_| Box::pin(sleep(NOTICE_DELAY)));
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
