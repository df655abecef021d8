//! Silence: two clocks for a call that brings nothing, and the notices to the client meanwhile.
//!
//! Any byte, a ping too, shows that the connection is alive and resets the clock of
//! [`SilenceLimits::idle`]. Only content resets the clock of [`SilenceLimits::content`], so a provider
//! that does nothing but ping is given up in the end.

use crate::{CallLimits, DeltaSender, Silent};
use std::{future::Future, pin::pin, time::Duration};
use tokio::time::{Instant, timeout_at};

/// No limit is longer: later moments cannot be represented on every clock.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// When a silent call is given up, and when the client is told of the silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilenceLimits {
    /// Time without any byte.
    pub(crate) idle: Duration,
    /// Time without content.
    pub(crate) content: Duration,
    /// Time without content before the first notice; the next ones come each time it has doubled.
    notice: Duration,
}

impl SilenceLimits {
    /// The limits for a server on this machine or desk, or for a hosted one.
    pub(crate) fn new(limits: &CallLimits, is_local: bool) -> Self {
        let idle = match is_local {
            true => limits.idle_local,
            false => limits.idle,
        };
        let idle = idle.min(FOREVER);
        Self {
            idle,
            content: limits.content.min(FOREVER).max(idle),
            // A notice at once, and again at once, would be a busy loop.
            notice: limits.notice.clamp(Duration::from_millis(1), FOREVER),
        }
    }
}

/// The limit that a silent call exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooSilent {
    /// [`SilenceLimits::idle`].
    Idle,
    /// [`SilenceLimits::content`].
    Content,
}

/// The clocks of one attempt of a call.
pub(crate) struct Silence<'a> {
    limits: SilenceLimits,
    /// Receives the notices, if there is somebody to tell.
    out: Option<&'a DeltaSender>,
    content_at: Instant,
    /// Bytes have come since the last notice or content.
    is_connected: bool,
    /// Length of the silence at the next notice.
    next_notice: Duration,
}

impl<'a> Silence<'a> {
    /// Starts the clocks.
    pub(crate) fn new(limits: SilenceLimits, out: Option<&'a DeltaSender>) -> Self {
        Self {
            limits,
            out,
            content_at: Instant::now(),
            is_connected: false,
            next_notice: limits.notice,
        }
    }

    /// The limits of the call.
    pub(crate) fn limits(&self) -> SilenceLimits {
        self.limits
    }

    /// Notes that bytes have come.
    pub(crate) fn hear(&mut self) {
        self.is_connected = true;
    }

    /// Notes that content has come and was passed on.
    pub(crate) fn end(&mut self) {
        self.content_at = Instant::now();
        self.is_connected = false;
        self.next_notice = self.limits.notice;
    }

    /// Waits for the next bytes, and gives up when a limit is exceeded. The clock of `idle` starts here.
    pub(crate) async fn during<T>(
        &mut self,
        next: impl Future<Output = T>,
    ) -> Result<T, TooSilent> {
        let mut next = pin!(next);
        let idle_until = Instant::now() + self.limits.idle;
        let content_until = self.content_at + self.limits.content;
        loop {
            // Looked at before `next`, which may be ready over and over and never bring content.
            let now = Instant::now();
            if now >= idle_until {
                return Err(TooSilent::Idle);
            }
            if now >= content_until {
                return Err(TooSilent::Content);
            }
            let notice_at = self.content_at + self.next_notice;
            if now >= notice_at {
                self.tell();
                continue;
            }
            let until = idle_until.min(content_until).min(notice_at);
            if let Ok(done) = timeout_at(until, &mut next).await {
                return Ok(done);
            }
        }
    }

    fn tell(&mut self) {
        if let Some(out) = self.out {
            out.silent(Silent {
                length: self.content_at.elapsed(),
                is_connected: self.is_connected,
            });
        }
        self.is_connected = false;
        self.next_notice = self.next_notice.saturating_mul(2).min(FOREVER);
    }
}
