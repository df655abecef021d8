//! Decides from its heartbeats whether a runtime is stuck.

use std::time::Duration;

/// Longest time without a heartbeat, not counting time without a processor. Together with one step and the
/// exit itself, less than the two seconds within which the process must have ended (TR-6).
const LIMIT: Duration = Duration::from_millis(1500);

/// Longest time without a heartbeat in any case: also during a drain, before the first heartbeat, and while
/// no processor is available.
const HARD_LIMIT: Duration = Duration::from_secs(10);

/// Snapshot of the runtime's progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeartbeatReading {
    /// Number of heartbeats so far.
    pub(super) count: u64,
    /// Total time that the runtime was runnable without a processor.
    pub(super) waited_for_processor: Duration,
}

/// Detects a stuck runtime by the time since its last heartbeat.
///
/// Time is counted in steps of the watchdog thread, so time during which the machine is suspended does not
/// count. Time in which the agent's threads only waited for a processor does not count either, up to
/// [`HARD_LIMIT`]: on a busy machine they are slow, not stuck.
#[derive(Debug)]
pub(super) struct StallDetector {
    last: HeartbeatReading,
    since_heartbeat: Duration,
    reason: ShutdownReason,
}

/// Reason for the shutdown, which determines its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownReason {
    /// The input has ended, and accepted prompts are finished first. Only [`HARD_LIMIT`] applies, since their
    /// work may block the runtime for a while.
    Drain,
    /// The input has ended. Before the first heartbeat only [`HARD_LIMIT`] applies, since the runtime may
    /// still be starting.
    EndOfInput,
    /// A signal has arrived.
    Signal,
}

impl StallDetector {
    /// Creates a detector that counts from the heartbeats in `reading`.
    pub(super) fn new(reading: HeartbeatReading, urgency: ShutdownReason) -> Self {
        Self {
            last: reading,
            since_heartbeat: Duration::ZERO,
            reason: urgency,
        }
    }

    /// Switches to the limit for signals.
    pub(super) fn escalate(&mut self) {
        self.reason = ShutdownReason::Signal;
    }

    /// Adds one step of the watchdog thread to the time without a heartbeat, or resets that time if there was
    /// a heartbeat; returns true if the runtime is stuck.
    pub(super) fn record_step(&mut self, step: Duration, sign: HeartbeatReading) -> bool {
        let has_time = match self.reason {
            ShutdownReason::Drain => true,
            ShutdownReason::EndOfInput => sign.count == 0,
            ShutdownReason::Signal => false,
        };
        if sign.count != self.last.count {
            *self = Self::new(sign, self.reason);
            return false;
        }
        self.since_heartbeat += step;
        let waited = sign.waited_for_processor;
        let waited = waited.saturating_sub(self.last.waited_for_processor);
        let is_late = self.since_heartbeat.saturating_sub(waited) >= LIMIT && !has_time;
        is_late || self.since_heartbeat >= HARD_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    fn sign(count: u64, waited: Duration) -> HeartbeatReading {
        HeartbeatReading {
            count,
            waited_for_processor: waited,
        }
    }

    /// Returns the time until the runtime counts as stuck, or `None` if it never does.
    fn stuck_after(
        detector: &mut StallDetector,
        sign: impl Fn(u32) -> HeartbeatReading,
    ) -> Option<Duration> {
        (1..1000)
            .find(|step| detector.record_step(STEP, sign(*step)))
            .map(|steps| STEP * steps)
    }

    // proves: TR-6
    #[test]
    fn silent_runtime_is_stuck_at_the_limit() {
        let still = sign(7, Duration::ZERO);
        let mut signs = StallDetector::new(still, ShutdownReason::EndOfInput);
        let limit = Duration::from_millis(1500);
        assert_eq!(stuck_after(&mut signs, |_| still), Some(limit));
    }

    #[test]
    fn heartbeat_restarts_the_count() {
        let mut signs = StallDetector::new(sign(0, Duration::ZERO), ShutdownReason::Signal);
        let slow = |step: u32| sign(u64::from(step / 29), Duration::ZERO);
        assert_eq!(stuck_after(&mut signs, slow), None);
    }

    #[test]
    fn end_of_input_before_first_heartbeat_waits_longer() {
        let unborn = sign(0, Duration::ZERO);
        let limit = |urgency| {
            let mut signs = StallDetector::new(unborn, urgency);
            stuck_after(&mut signs, |_| unborn)
        };
        assert_eq!(
            limit(ShutdownReason::EndOfInput),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            limit(ShutdownReason::Signal),
            Some(Duration::from_millis(1500))
        );
    }

    // proves: TR-7
    #[test]
    fn waiting_for_a_processor_is_excused_for_a_while() {
        let mut signs = StallDetector::new(sign(7, Duration::ZERO), ShutdownReason::Signal);
        let starved = |step: u32| sign(7, STEP * step);
        let limit = Duration::from_secs(10);
        assert_eq!(stuck_after(&mut signs, starved), Some(limit));
    }

    // proves: TR-7
    #[test]
    fn signal_shortens_the_limit_of_a_drain() {
        let still = sign(7, Duration::ZERO);
        let mut signs = StallDetector::new(still, ShutdownReason::Drain);
        assert_eq!(
            stuck_after(&mut signs, |_| still),
            Some(Duration::from_secs(10))
        );
        let mut signs = StallDetector::new(still, ShutdownReason::Drain);
        assert!(!signs.record_step(STEP, still));
        signs.escalate();
        let limit = Duration::from_millis(1500) - STEP;
        assert_eq!(stuck_after(&mut signs, |_| still), Some(limit));
    }
}
