//! Decides how long an effect stays with the process that delivers it, or is postponed.

use crate::{
    MAX_EFFECT_DELAY, Owner,
    clock::ClockReading,
    lease::{LaneHolder, LeaseEnd},
};
use std::time::Duration;
use turnery_engine::Timestamp;

/// Time after which it is worth looking whether an effect that somebody else has taken is free.
pub(crate) const TAKEN_EFFECT_RECHECK: Duration = Duration::from_secs(10);

/// Holder of an effect, or the delay after a failure.
#[derive(Debug, Default)]
pub(crate) struct EffectHold {
    /// Process that delivers the effect, stored like that of a lane's holder.
    pub(crate) process: Option<String>,
    /// End of the holder's lease, or of the delay; `None` if the effect was never taken.
    pub(crate) until: Option<Timestamp>,
}

impl EffectHold {
    /// Takes an effect for a process of this owner, for as long as a lane is leased.
    pub(crate) fn take(owner: &Owner, now: ClockReading) -> Self {
        let end = LeaseEnd::after(now);
        Self {
            process: Some(end.stamp_process(&owner.process)),
            until: Some(end.wall),
        }
    }

    pub(crate) fn postpone(delay: Duration, now: ClockReading) -> Self {
        Self {
            process: None,
            until: Some(now.wall + delay.min(MAX_EFFECT_DELAY)),
        }
    }

    /// Returns the time after which it is worth looking again; `None` if the effect is free. One that a process has
    /// taken is free under the conditions of a lane: at once if the process is gone.
    pub(crate) fn time_left(&self, now: ClockReading) -> Option<Duration> {
        let until = self.until?;
        if let Some(process) = self.process.clone() {
            let holder = LaneHolder {
                owner_id: String::new(),
                process,
                expires_at: until,
            };
            return holder.is_held(now).then_some(TAKEN_EFFECT_RECHECK);
        }
        let left = (until - now.wall).to_std().unwrap_or_default();
        (!left.is_zero() && left <= MAX_EFFECT_DELAY).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_set_back_does_not_hold_an_effect() {
        let at = |seconds| ClockReading {
            wall: Timestamp::UNIX_EPOCH + Duration::from_secs(seconds),
            monotonic: Duration::from_secs(7),
        };
        let hold = EffectHold::postpone(Duration::from_secs(60), at(100_000));
        let left = |seconds| hold.time_left(at(seconds));
        assert_eq!(left(100_000), Some(Duration::from_secs(60)));
        assert_eq!(left(100_060), None);
        assert_eq!(left(96_460), Some(MAX_EFFECT_DELAY));
        assert_eq!(left(96_459), None);
    }
}
