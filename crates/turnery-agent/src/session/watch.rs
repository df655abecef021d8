//! Watch: what goes on through a whole prompt, whatever its loops do: somebody may cancel, and the lane
//! has to be renewed.

use super::{Task, mail::Mail};
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
use turnery_store::{Lane, Store, StoreError};

/// How often the lane is renewed; it is held for three times as long.
const RENEW: Duration = Duration::from_secs(10);

/// The watch over one prompt.
pub(crate) struct Watch {
    pub(crate) lane: Lane,
    holds: bool,
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
    /// Watch over a prompt that either token cancels.
    pub(crate) fn new(
        lane: Lane,
        cancel: CancellationToken,
        cancel_all: CancellationToken,
    ) -> Self {
        Self {
            lane,
            holds: true,
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
    pub(crate) fn let_go(&mut self) {
        self.holds = false;
        self.renewing = None;
    }

    /// Give the lane back, if it is still held. A release never clears a newer holder.
    pub(crate) async fn release(&mut self, store: &Arc<dyn Store>) {
        if self.holds {
            self.let_go();
            let _ = store.release(&self.lane).await;
        }
    }

    /// Wait for the end of `work`, whatever happens meanwhile: the task goes on serving, and the lane is
    /// kept. That it was lost shows in what comes of the work.
    pub(crate) async fn see_through<T>(
        &mut self,
        task: &mut Task,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        loop {
            let next = poll_fn(|cx| {
                if let Poll::Ready(Some(mail)) = task.poll_mail(cx) {
                    return Poll::Ready(Err(mail));
                }
                let _ = self.poll_lane(cx, &task.store);
                work.as_mut().poll(cx).map(Ok)
            });
            match next.await {
                Ok(done) => return done,
                Err(mail) => task.mail(mail).await,
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
                Next::Mail(mail) => task.mail(mail).await,
            }
        }
    }
}
