//! Bounds the shutdown of a connection: by time without progress, and by [`SHUTDOWN_LIMIT`] in total.
//!
//! On a busy machine this process may get so little CPU time that a wall-clock limit expires before a
//! cancelled prompt can be answered. The timer therefore counts short waits of the runtime that also does the
//! work: the runtime polls everything that is ready before each wait ends.

use crate::limits::{SHUTDOWN_LIMIT, STALL_CHECK_INTERVAL};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Counts steps of progress of a connection: responses, bytes read by the client, sessions closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShutdownProgress(Arc<AtomicU64>);

impl ShutdownProgress {
    /// Counts one step.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of steps so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time since the last step of a [`ShutdownProgress`].
#[derive(Debug)]
pub(crate) struct StallTimer {
    progress: ShutdownProgress,
    last_count: u64,
    stalled: Duration,
    /// Time at which the shutdown ends whatever the progress.
    deadline: Instant,
}

impl StallTimer {
    /// Starts counting.
    pub(crate) fn start(progress: ShutdownProgress) -> Self {
        Self {
            last_count: progress.count(),
            progress,
            stalled: Duration::ZERO,
            deadline: Instant::now() + SHUTDOWN_LIMIT,
        }
    }

    /// Waits until nothing has advanced for `bound`, or until [`SHUTDOWN_LIMIT`] is over. Time counted by
    /// earlier calls is included.
    pub(crate) async fn stalled_for(&mut self, bound: Duration) {
        while self.stalled < bound && Instant::now() < self.deadline {
            sleep(STALL_CHECK_INTERVAL).await;
            let count = self.progress.count();
            if count == self.last_count {
                self.stalled += STALL_CHECK_INTERVAL;
            } else {
                self.last_count = count;
                self.stalled = Duration::ZERO;
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
    async fn stall_timer_ends_at_its_bound() {
        let began = Instant::now();
        let mut quiet = StallTimer::start(ShutdownProgress::default());
        quiet.stalled_for(BOUND).await;
        assert_eq!(began.elapsed(), BOUND);
        // Time counted before is included.
        quiet.stalled_for(BOUND + STALL_CHECK_INTERVAL).await;
        assert_eq!(began.elapsed(), BOUND + STALL_CHECK_INTERVAL);
    }

    // proves: TR-7
    #[tokio::test(start_paused = true)]
    async fn each_step_restarts_the_stall_timer() {
        let began = Instant::now();
        let progress = ShutdownProgress::default();
        let mut quiet = StallTimer::start(progress.clone());
        let steps = async {
            for _ in 0..10 {
                sleep(BOUND - STALL_CHECK_INTERVAL).await;
                progress.advance();
            }
        };
        let over = quiet.stalled_for(BOUND);
        let ((), ()) = tokio::join!(steps, over);
        assert!(began.elapsed() >= (BOUND - STALL_CHECK_INTERVAL) * 10 + BOUND);
    }

    // proves: TR-6
    #[tokio::test(start_paused = true)]
    async fn endless_steps_end_at_the_shutdown_limit() {
        let began = Instant::now();
        let progress = ShutdownProgress::default();
        let mut quiet = StallTimer::start(progress.clone());
        let steps = async {
            loop {
                sleep(STALL_CHECK_INTERVAL).await;
                progress.advance();
            }
        };
        tokio::select! {
            () = steps => {}
            () = quiet.stalled_for(BOUND) => {}
        }
        assert!(began.elapsed() <= SHUTDOWN_LIMIT + STALL_CHECK_INTERVAL);
    }
}
