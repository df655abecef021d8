//! Watch: what goes on through a whole prompt, whatever its loops do: somebody may cancel, and the lane
//! has to be renewed.

use super::{Task, background::store_patience, mail::Mail, run::beginning::PendingBeginning};
use crate::CancellationToken;
use futures_util::future::BoxFuture;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use turnery_engine::SessionId;
use turnery_store::{Lane, Store, StoreError};

/// How often the lane is renewed; it is held for three times as long.
pub(super) const RENEW: Duration = Duration::from_secs(10);

/// The watch over one prompt.
pub(crate) struct Watch {
    pub(crate) lane: Lane,
    holds: bool,
    /// First events of the prompt's loop that the claim has journalled, until the loop begins.
    pub(super) beginning: Option<PendingBeginning>,
    /// Gone once it has fired.
    cancelled: Option<BoxFuture<'static, ()>>,
    renew: Pin<Box<Sleep>>,
    renewing: Option<BoxFuture<'static, Result<(), StoreError>>>,
}

/// How work ended that was attended to.
pub(crate) enum Attended<T> {
    Done(T),
    /// The prompt was cancelled first.
    Cancelled,
    /// Somebody else has the session now.
    LaneLost,
}

impl Watch {
    /// Watch over a prompt that either token cancels. It has no lane before [`hold`](Self::hold).
    pub(crate) fn new(
        session_id: SessionId,
        cancel: CancellationToken,
        cancel_all: CancellationToken,
    ) -> Self {
        Self {
            lane: Lane {
                session_id,
                owner_id: String::new(),
                fence: 0,
            },
            holds: false,
            beginning: None,
            cancelled: Some(Box::pin(async move {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = cancel_all.cancelled() => {}
                }
            })),
            renew: Box::pin(sleep_until(Instant::now() + RENEW)),
            renewing: None,
        }
    }

    /// The watch over a candidate of the same prompt, under the same lane.
    pub(crate) fn of_candidate(
        &self,
        cancel: CancellationToken,
        cancel_all: CancellationToken,
    ) -> Self {
        let mut watch = Self::new(self.lane.session_id.clone(), cancel, cancel_all);
        watch.hold(self.lane.clone());
        watch
    }

    /// Keeps `lane` from now on.
    pub(crate) fn hold(&mut self, lane: Lane) {
        self.lane = lane;
        self.holds = true;
        self.renew.as_mut().reset(Instant::now() + RENEW);
    }

    /// True once the prompt has been cancelled.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            self.cancelled = None;
        }
        self.cancelled.is_none()
    }

    /// Keep the lane. Ready when it is lost; any other fault of the store shows at the commit.
    pub(crate) fn poll_lane(&mut self, cx: &mut Context<'_>, store: &Arc<dyn Store>) -> Poll<()> {
        while self.holds {
            if let Some(renewing) = &mut self.renewing {
                let Poll::Ready(renewed) = renewing.as_mut().poll(cx) else {
                    return Poll::Pending;
                };
                self.renewing = None;
                if let Err(StoreError::LaneLost(_)) = renewed {
                    self.holds = false;
                    return Poll::Ready(());
                }
            }
            if self.renew.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.renew.as_mut().reset(Instant::now() + RENEW);
            let (store, lane) = (Arc::clone(store), self.lane.clone());
            self.renewing = Some(Box::pin(async move { store.renew(&lane).await }));
        }
        Poll::Pending
    }

    /// The lane has been given back.
    pub(crate) fn stop_renewing(&mut self) {
        self.holds = false;
        self.renewing = None;
    }

    /// Give the lane back, if it is still held. A release never clears a newer holder.
    pub(crate) async fn release(&mut self, store: &Arc<dyn Store>) {
        self.beginning = None;
        if self.holds {
            self.stop_renewing();
            let _ = store.release(&self.lane).await;
        }
    }

    /// Waits for `work` of the store while the task goes on serving and the lane is kept; that it was lost
    /// shows in the result of the work. A cancelled prompt waits for a store that does not answer no
    /// longer than [`store_patience`]: then the error is the work, which is to go on in the background.
    pub(crate) async fn wait_for_store<T, W: Future<Output = T> + Unpin>(
        &mut self,
        task: &mut Task,
        mut work: W,
    ) -> Result<T, W> {
        enum Next<T> {
            Done(T),
            Mail(Mail),
            Overdue,
        }
        let mut patience = None;
        loop {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(mail)) = task.poll_mail(cx) {
                    return Poll::Ready(Next::Mail(mail));
                }
                let _ = self.poll_lane(cx, &task.store);
                if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
                    return Poll::Ready(Next::Done(done));
                }
                if !self.poll_cancelled(cx) {
                    task.poll_background_notice(cx);
                    return Poll::Pending;
                }
                let patience = patience.get_or_insert_with(store_patience);
                patience.as_mut().poll(cx).map(|()| Next::Overdue)
            });
            match next.await {
                Next::Done(done) => return Ok(done),
                Next::Mail(mail) => task.mail(mail),
                Next::Overdue => return Err(work),
            }
        }
    }

    /// Wait for `work` while the task goes on serving. After a cancel it has `patience` left.
    pub(crate) async fn attend<T>(
        &mut self,
        task: &mut Task,
        work: impl Future<Output = T>,
        patience: Duration,
    ) -> Attended<T> {
        enum Next<T> {
            End(Attended<T>),
            Mail(Mail),
        }
        let mut work = pin!(work);
        let mut last: Option<Pin<Box<Sleep>>> = None;
        loop {
            let next = poll_fn(|cx| {
                if self.poll_cancelled(cx) {
                    let end = Instant::now() + patience;
                    let last = last.get_or_insert_with(|| Box::pin(sleep_until(end)));
                    if patience.is_zero() || last.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Next::End(Attended::Cancelled));
                    }
                }
                if let Poll::Ready(Some(mail)) = task.poll_mail(cx) {
                    return Poll::Ready(Next::Mail(mail));
                }
                if self.poll_lane(cx, &task.store).is_ready() {
                    return Poll::Ready(Next::End(Attended::LaneLost));
                }
                let done = work.as_mut().poll(cx);
                done.map(|done| Next::End(Attended::Done(done)))
            });
            match next.await {
                Next::End(end) => return end,
                Next::Mail(mail) => task.mail(mail),
            }
        }
    }
}
