//! Detects silent calls with two timers, and notifies the client meanwhile.
//!
//! Any byte, even a ping, shows that the connection is alive and resets the timer of [`SilenceLimits::idle`].
//! Only content resets the timer of [`SilenceLimits::content`], so a provider that only pings is eventually
//! given up.

use crate::{
    model::{ModelEventSender, SilenceNotice},
    provider::CallLimits,
};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};
use tokio::{
    task::coop::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

/// Upper bound of all limits: later instants cannot be represented on every clock.
const MAX_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Limits after which a silent call is cancelled or reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilenceLimits {
    /// Longest time without any byte.
    pub(crate) idle: Duration,
    /// Longest time without content.
    pub(crate) content: Duration,
    /// Time without content before the first notice; further notices follow each time it has doubled.
    notice: Duration,
}

impl SilenceLimits {
    /// Returns the limits for a local or a hosted server.
    pub(crate) fn new(limits: &CallLimits, is_local: bool) -> Self {
        let idle = match is_local {
            true => limits.idle_local,
            false => limits.idle,
        };
        let idle = idle.min(MAX_LIMIT);
        Self {
            idle,
            content: limits.content.min(MAX_LIMIT).max(idle),
            // A zero interval would cause a busy loop.
            notice: limits.notice.clamp(Duration::from_millis(1), MAX_LIMIT),
        }
    }
}

/// Limit that a silent call exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilenceError {
    /// [`SilenceLimits::idle`].
    Idle,
    /// [`SilenceLimits::content`].
    Content,
}

/// Timers of one attempt.
pub(crate) struct SilenceTimer<'a> {
    limits: SilenceLimits,
    /// Receives the notices, if any.
    out: Option<&'a ModelEventSender>,
    content_at: Instant,
    /// True if bytes arrived since the last notice or content.
    is_connected: bool,
    /// Length of the silence at the next notice.
    next_notice: Duration,
    /// Timer that wakes the call at the next deadline. Content moves the deadline, but not the timer, which therefore
    /// fires too early at times. That costs less than setting it for every delta.
    timer: Pin<Box<Sleep>>,
}

impl<'a> SilenceTimer<'a> {
    pub(crate) fn new(limits: SilenceLimits, out: Option<&'a ModelEventSender>) -> Self {
        let now = Instant::now();
        Self {
            limits,
            out,
            content_at: now,
            is_connected: false,
            next_notice: limits.notice,
            timer: Box::pin(sleep_until(now + limits.notice)),
        }
    }

    pub(crate) fn limits(&self) -> SilenceLimits {
        self.limits
    }

    /// Records that bytes arrived.
    pub(crate) fn note_bytes(&mut self) {
        self.is_connected = true;
    }

    /// Records that content arrived and was passed on.
    pub(crate) fn note_content(&mut self) {
        self.content_at = Instant::now();
        self.is_connected = false;
        self.next_notice = self.limits.notice;
    }

    /// Waits for the next bytes, and fails when a limit is exceeded. The `idle` timer starts here.
    pub(crate) async fn wait_for<T>(
        &mut self,
        next: impl Future<Output = T>,
    ) -> Result<T, SilenceError> {
        let mut next = pin!(next);
        let idle_until = Instant::now() + self.limits.idle;
        let content_until = self.content_at + self.limits.content;
        loop {
            // Checked before `next`, which may always be ready without ever yielding content.
            let now = Instant::now();
            if now >= idle_until {
                return Err(SilenceError::Idle);
            }
            if now >= content_until {
                return Err(SilenceError::Content);
            }
            let notice_at = self.content_at + self.next_notice;
            if now >= notice_at {
                self.send_notice();
                continue;
            }
            let until = idle_until.min(content_until).min(notice_at);
            if self.timer.is_elapsed() || self.timer.deadline() > until {
                self.timer.as_mut().reset(until);
            }
            let timer = &mut self.timer;
            let done = poll_fn(|cx| match next.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                // Unconstrained, since `next` may use up the task's budget at every poll.
                Poll::Pending => pin!(unconstrained(timer.as_mut())).poll(cx).map(|()| None),
            });
            if let Some(done) = done.await {
                return Ok(done);
            }
        }
    }

    fn send_notice(&mut self) {
        if let Some(out) = self.out {
            out.send_silence(SilenceNotice {
                length: self.content_at.elapsed(),
                is_connected: self.is_connected,
            });
        }
        self.is_connected = false;
        self.next_notice = self.next_notice.saturating_mul(2).min(MAX_LIMIT);
    }
}
