//! Watches for cancellation and renews the lane throughout a prompt.

use super::{
    background::{RENEW_INTERVAL, store_timeout},
    command::SessionCommand,
    pending_beginning::PendingBeginning,
    task::SessionTask,
};
use crate::cancels::Cancels;
use futures_util::future::BoxFuture;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use turnery_engine::{CommitError, SessionId};
use turnery_store::{Lane, Store, StoreError};

/// Cancellation and lane of one prompt.
pub(crate) struct PromptGuard {
    pub(crate) lane: Lane,
    holds_lane: bool,
    /// First events of the prompt's loop that the claim has journalled, until the loop begins.
    pub(super) beginning: Option<PendingBeginning>,
    /// `None` once the prompt was cancelled.
    cancelled: Option<BoxFuture<'static, ()>>,
    renew_timer: Pin<Box<Sleep>>,
    renewing: Option<BoxFuture<'static, Result<(), StoreError>>>,
}

impl PromptGuard {
    /// Creates the guard of a prompt. It has no lane before [`hold_lane`](Self::hold_lane).
    pub(crate) fn new(session_id: SessionId, cancels: Cancels) -> Self {
        Self {
            lane: Lane {
                session_id,
                owner_id: String::new(),
                fence: 0,
            },
            holds_lane: false,
            beginning: None,
            cancelled: Some(Box::pin(async move { cancels.cancelled().await })),
            renew_timer: Box::pin(sleep_until(Instant::now() + RENEW_INTERVAL)),
            renewing: None,
        }
    }

    /// Creates the guard of a candidate of the same prompt. This one keeps and renews their lane.
    pub(crate) fn for_candidate(&self, cancels: Cancels) -> Self {
        Self {
            lane: self.lane.clone(),
            ..Self::new(self.lane.session_id.clone(), cancels)
        }
    }

    /// Renews `lane` from now on.
    pub(crate) fn hold_lane(&mut self, lane: Lane) {
        self.lane = lane;
        self.holds_lane = true;
        self.renew_timer
            .as_mut()
            .reset(Instant::now() + RENEW_INTERVAL);
    }

    /// Returns true once the prompt has been cancelled.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            self.cancelled = None;
        }
        self.cancelled.is_none()
    }

    /// Renews the lane; resolves if it is lost. Other store errors surface at the commit.
    pub(crate) fn poll_lane_lost(
        &mut self,
        cx: &mut Context<'_>,
        store: &Arc<dyn Store>,
    ) -> Poll<()> {
        while self.holds_lane {
            if let Some(renewing) = &mut self.renewing {
                let Poll::Ready(renewed) = renewing.as_mut().poll(cx) else {
                    return Poll::Pending;
                };
                self.renewing = None;
                if let Err(StoreError::LaneLost(_)) = renewed {
                    self.holds_lane = false;
                    return Poll::Ready(());
                }
            }
            if self.renew_timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.renew_timer
                .as_mut()
                .reset(Instant::now() + RENEW_INTERVAL);
            let (store, lane) = (Arc::clone(store), self.lane.clone());
            self.renewing = Some(Box::pin(async move { store.renew(&lane).await }));
        }
        Poll::Pending
    }

    /// Stops renewing the lane, because it is released or background work renews it from now on.
    pub(crate) fn stop_renewing(&mut self) {
        self.holds_lane = false;
        self.renewing = None;
    }

    /// Releases the lane if it is still held. A release never affects a newer holder.
    pub(crate) async fn release_lane(&mut self, store: &Arc<dyn Store>) {
        self.beginning = None;
        if self.holds_lane {
            self.stop_renewing();
            let _ = store.release(&self.lane).await;
        }
    }

    /// Waits for store work while the task serves commands and the lane is renewed; a lost lane shows in the
    /// result of the work. A cancelled prompt waits only for the store timeout and then returns the work as
    /// the error, to be finished in the background.
    pub(crate) async fn wait_for_store<T, W: Future<Output = T> + Unpin>(
        &mut self,
        task: &mut SessionTask,
        mut work: W,
    ) -> Result<T, W> {
        enum Next<T> {
            Done(T),
            Command(SessionCommand),
            Overdue,
        }
        let mut patience = None;
        loop {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(command)) = task.poll_command(cx) {
                    return Poll::Ready(Next::Command(command));
                }
                let _ = self.poll_lane_lost(cx, &task.env.store);
                if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
                    return Poll::Ready(Next::Done(done));
                }
                if !self.poll_cancelled(cx) {
                    task.poll_background_notice(cx);
                    return Poll::Pending;
                }
                let patience = patience.get_or_insert_with(store_timeout);
                patience.as_mut().poll(cx).map(|()| Next::Overdue)
            });
            match next.await {
                Next::Done(done) => return Ok(done),
                Next::Command(command) => task.handle_command(command),
                Next::Overdue => return Err(work),
            }
        }
    }

    /// Runs `work` while the task serves commands. Returns `None` after a cancel, once the work has taken
    /// `patience` longer, and an error if another owner takes the session.
    pub(crate) async fn run_guarded<T>(
        &mut self,
        task: &mut SessionTask,
        work: impl Future<Output = T>,
        patience: Duration,
    ) -> Result<Option<T>, CommitError> {
        enum Next<T> {
            End(Result<Option<T>, CommitError>),
            Command(SessionCommand),
        }
        let mut work = pin!(work);
        let mut last: Option<Pin<Box<Sleep>>> = None;
        loop {
            let next = poll_fn(|cx| {
                if self.poll_cancelled(cx) {
                    let end = Instant::now() + patience;
                    let last = last.get_or_insert_with(|| Box::pin(sleep_until(end)));
                    if patience.is_zero() || last.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Next::End(Ok(None)));
                    }
                }
                if let Poll::Ready(Some(command)) = task.poll_command(cx) {
                    return Poll::Ready(Next::Command(command));
                }
                if self.poll_lane_lost(cx, &task.env.store).is_ready() {
                    return Poll::Ready(Next::End(Err(CommitError::LaneLost)));
                }
                let done = work.as_mut().poll(cx);
                done.map(|done| Next::End(Ok(Some(done))))
            });
            match next.await {
                Next::End(end) => return end,
                Next::Command(command) => task.handle_command(command),
            }
        }
    }
}
