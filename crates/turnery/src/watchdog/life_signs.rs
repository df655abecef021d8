//! Decides how long a runtime may give no sign of life.

use std::time::Duration;

/// How long the runtime may give no sign of life. With a step, and the end itself, less than the two
/// seconds in which the process must have left (TR-6).
const LIMIT: Duration = Duration::from_millis(1500);

/// The same, whatever a thread that has no processor is excused for.
const LIMIT_WITHOUT_PROCESSOR: Duration = Duration::from_secs(10);

/// What is known of the runtime at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sign {
    /// Signs of life so far.
    pub(super) count: u64,
    /// How long it was ready to run and had no processor so far.
    pub(super) waited_for_processor: Duration,
}

/// How long the runtime has given no sign of life.
///
/// Counted in steps of the watching thread, so a machine that stops both counts nothing. Time in which the
/// main thread only waited for a processor is not held against it, up to [`LIMIT_WITHOUT_PROCESSOR`]: on a
/// busy machine it is slow, and not stuck.
#[derive(Debug)]
pub(super) struct LifeSigns {
    last: Sign,
    counted: Duration,
    urgency: Urgency,
}

/// How soon the runtime has to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The input has ended, and the prompts that were accepted are to be finished: a runtime that works
    /// is not late before [`LIMIT_WITHOUT_PROCESSOR`].
    Drain,
    /// The input has ended. A runtime that has not begun to read it is not late before
    /// [`LIMIT_WITHOUT_PROCESSOR`].
    EndOfInput,
    /// A signal said so.
    Signal,
}

impl LifeSigns {
    /// Begins to count.
    pub(super) fn since(sign: Sign, urgency: Urgency) -> Self {
        Self {
            last: sign,
            counted: Duration::ZERO,
            urgency,
        }
    }

    /// A signal has come as well.
    pub(super) fn hurry(&mut self) {
        self.urgency = Urgency::Signal;
    }

    /// Counts one step. True if the runtime is stuck.
    pub(super) fn step(&mut self, step: Duration, sign: Sign) -> bool {
        let has_time = match self.urgency {
            Urgency::Drain => true,
            Urgency::EndOfInput => sign.count == 0,
            Urgency::Signal => false,
        };
        if sign.count != self.last.count {
            *self = Self::since(sign, self.urgency);
            return false;
        }
        self.counted += step;
        let waited = sign.waited_for_processor;
        let waited = waited.saturating_sub(self.last.waited_for_processor);
        let is_late = self.counted.saturating_sub(waited) >= LIMIT && !has_time;
        is_late || self.counted >= LIMIT_WITHOUT_PROCESSOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    fn sign(count: u64, waited: Duration) -> Sign {
        Sign {
            count,
            waited_for_processor: waited,
        }
    }

    /// Steps until it is stuck, if it ever is.
    fn stuck_after(signs: &mut LifeSigns, sign: impl Fn(u32) -> Sign) -> Option<Duration> {
        (1..1000)
            .find(|step| signs.step(STEP, sign(*step)))
            .map(|steps| STEP * steps)
    }

    // proves: TR-6
    #[test]
    fn silent_main_thread_is_stuck_at_the_limit() {
        let still = sign(7, Duration::ZERO);
        let mut signs = LifeSigns::since(still, Urgency::EndOfInput);
        let limit = Duration::from_millis(1500);
        assert_eq!(stuck_after(&mut signs, |_| still), Some(limit));
    }

    #[test]
    fn sign_of_life_begins_the_count_again() {
        let mut signs = LifeSigns::since(sign(0, Duration::ZERO), Urgency::Signal);
        let slow = |step: u32| sign(u64::from(step / 29), Duration::ZERO);
        assert_eq!(stuck_after(&mut signs, slow), None);
    }

    #[test]
    fn input_that_ended_before_the_start_waits_longer() {
        let unborn = sign(0, Duration::ZERO);
        let limit = |urgency| {
            let mut signs = LifeSigns::since(unborn, urgency);
            stuck_after(&mut signs, |_| unborn)
        };
        assert_eq!(limit(Urgency::EndOfInput), Some(Duration::from_secs(10)));
        assert_eq!(limit(Urgency::Signal), Some(Duration::from_millis(1500)));
    }

    // proves: TR-7
    #[test]
    fn waiting_for_a_processor_is_excused_for_a_while() {
        let mut signs = LifeSigns::since(sign(7, Duration::ZERO), Urgency::Signal);
        let starved = |step: u32| sign(7, STEP * step);
        let limit = Duration::from_secs(10);
        assert_eq!(stuck_after(&mut signs, starved), Some(limit));
    }

    // proves: TR-7
    #[test]
    fn drain_has_time_until_a_signal_comes() {
        let still = sign(7, Duration::ZERO);
        let mut signs = LifeSigns::since(still, Urgency::Drain);
        assert_eq!(
            stuck_after(&mut signs, |_| still),
            Some(Duration::from_secs(10))
        );
        let mut signs = LifeSigns::since(still, Urgency::Drain);
        assert!(!signs.step(STEP, still));
        signs.hurry();
        let limit = Duration::from_millis(1500) - STEP;
        assert_eq!(stuck_after(&mut signs, |_| still), Some(limit));
    }
}
