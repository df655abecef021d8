//! Measures the time of a loop against its limits, and the grace period after a cancel.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use turnery_tools::grace;

/// Timers of a running loop.
pub(super) struct LoopClock {
    /// End of the prompt's time; `None` once it has passed, or if it lies beyond the clock's range.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Start of a pending request to the user; that time does not count against the limits.
    stopped_at: Option<Instant>,
    grace: Option<Pin<Box<Sleep>>>,
}

impl LoopClock {
    /// Creates the clock of a loop that begins now.
    pub(super) fn new(time_left: Duration) -> Self {
        let deadline = Instant::now().checked_add(time_left);
        Self {
            deadline: deadline.map(|at| Box::pin(sleep_until(at))),
            stopped_at: None,
            grace: None,
        }
    }

    /// Stops the clock while the user is asked.
    pub(super) fn stop(&mut self) {
        self.stopped_at = Some(Instant::now());
    }

    pub(super) fn resume(&mut self) {
        if let Some(since) = self.stopped_at.take()
            && let Some(deadline) = &mut self.deadline
        {
            let later = deadline.deadline() + since.elapsed();
            deadline.as_mut().reset(later);
        }
    }

    pub(super) fn start_grace(&mut self) {
        self.grace = Some(Box::pin(sleep_until(Instant::now() + grace::CALL)));
    }

    /// Resolves once, when the grace period is over.
    pub(super) fn poll_grace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        poll_once(&mut self.grace, cx)
    }

    /// Resolves once, when the prompt's time is up; pending while the clock is stopped.
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.stopped_at {
            Some(_) => Poll::Pending,
            None => poll_once(&mut self.deadline, cx),
        }
    }

    /// Returns the used part of the prompt's time `limit`; `None` without a deadline.
    pub(super) fn elapsed(&self, limit: Duration) -> Option<Duration> {
        let stopped = self.stopped_at.map_or(Duration::ZERO, |it| it.elapsed());
        self.deadline.as_ref().map(|at| {
            let until = at.deadline().saturating_duration_since(Instant::now());
            limit.saturating_sub(until.saturating_add(stopped))
        })
    }
}

fn poll_once(timer: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    if let Some(running) = timer
        && running.as_mut().poll(cx).is_ready()
    {
        *timer = None;
        return Poll::Ready(());
    }
    Poll::Pending
}
