//! Bounds the end of a connection by time in which nothing advances, not by the time of day.
//!
//! A machine that is busy with other things may give this process so little time that a bound on the
//! clock is over before a cancelled prompt could be answered. What is counted here are short waits of the
//! same runtime that has the work to do: it cannot wait without having polled all that is ready first.

use crate::bounds::{LEAVE_AT_MOST, QUIET_STEP};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Counts the steps by which a connection advances: answers, bytes that the client takes, sessions that end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Counts one step.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of steps so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time since the last step of a [`Progress`].
#[derive(Debug)]
pub(crate) struct QuietTime {
    progress: Progress,
    seen: u64,
    quiet: Duration,
    /// However much advances: the end.
    end: Instant,
}

impl QuietTime {
    /// Starts to count now.
    pub(crate) fn start(progress: Progress) -> Self {
        Self {
            seen: progress.count(),
            progress,
            quiet: Duration::ZERO,
            end: Instant::now() + LEAVE_AT_MOST,
        }
    }

    /// Ready once nothing has advanced for `bound`, or [`LEAVE_AT_MOST`] is over. Time that an earlier
    /// call has counted counts.
    pub(crate) async fn exceeds(&mut self, bound: Duration) {
        while self.quiet < bound && Instant::now() < self.end {
            sleep(QUIET_STEP).await;
            let count = self.progress.count();
            if count == self.seen {
                self.quiet += QUIET_STEP;
            } else {
                self.seen = count;
                self.quiet = Duration::ZERO;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_millis(500);

    // proves: TR-6
    #[tokio::test(start_paused = true)]
    async fn quiet_time_ends_at_its_bound() {
        let began = Instant::now();
        let mut quiet = QuietTime::start(Progress::default());
        quiet.exceeds(BOUND).await;
        assert_eq!(began.elapsed(), BOUND);
        // What was counted counts.
        quiet.exceeds(BOUND + QUIET_STEP).await;
        assert_eq!(began.elapsed(), BOUND + QUIET_STEP);
    }

    // proves: TR-7
    #[tokio::test(start_paused = true)]
    async fn every_step_begins_the_quiet_time_again() {
        let began = Instant::now();
        let progress = Progress::default();
        let mut quiet = QuietTime::start(progress.clone());
        let steps = async {
            for _ in 0..10 {
                sleep(BOUND - QUIET_STEP).await;
                progress.advance();
            }
        };
        let over = quiet.exceeds(BOUND);
        let ((), ()) = tokio::join!(steps, over);
        assert!(began.elapsed() >= (BOUND - QUIET_STEP) * 10 + BOUND);
    }

    // proves: TR-6
    #[tokio::test(start_paused = true)]
    async fn endless_steps_do_not_delay_the_end_for_ever() {
        let began = Instant::now();
        let progress = Progress::default();
        let mut quiet = QuietTime::start(progress.clone());
        let steps = async {
            loop {
                sleep(QUIET_STEP).await;
                progress.advance();
            }
        };
        tokio::select! {
            () = steps => {}
            () = quiet.exceeds(BOUND) => {}
        }
        assert!(began.elapsed() <= LEAVE_AT_MOST + QUIET_STEP);
    }
}
