//! Decides how long the holder of a lane keeps it without renewing (UP-27).
//!
//! Processes of one machine share its monotonic clock, so wall-clock changes do not affect their leases. If
//! the holder's machine is another one or unknown, the wall clock decides, with a margin for clock skew.
//!
//! A holder on this machine keeps its lane longer, by [`COMMIT_TIMEOUT`]: it cannot
//! renew while a commit waits for another program's lock, and the model's response has been paid for. A
//! suspended process loses its lane after that.

use crate::{
    Owner,
    clock::ClockReading,
    owner::{ProcessState, is_same_boot, process_field, process_state},
};
use std::time::Duration;
use turnery_engine::Timestamp;

/// Period after which a lane expires unless it is renewed.
pub const LEASE_DURATION: Duration = Duration::from_secs(30);

/// Longest time a commit waits for another program's lock. Generous, because the model's response has been
/// paid for.
pub(crate) const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Tolerated clock skew between two machines.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// End of a lease that is taken or renewed now, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseEnd {
    pub(crate) wall: Timestamp,
    /// Monotonic time. Unit: milliseconds.
    pub(crate) monotonic_ms: u64,
}

impl LeaseEnd {
    pub(crate) fn after(now: ClockReading) -> Self {
        let steady = (now.monotonic + LEASE_DURATION).as_millis();
        Self {
            wall: now
                .wall
                .checked_add_signed(to_time_delta(LEASE_DURATION))
                .unwrap_or(now.wall),
            monotonic_ms: u64::try_from(steady).unwrap_or(u64::MAX),
        }
    }

    /// Returns the stored form of the holder's process, including the end of the lease.
    pub(crate) fn stamp_process(self, process: &str) -> String {
        format!("until={} {process}", self.monotonic_ms)
    }
}

fn to_time_delta(time: Duration) -> chrono::TimeDelta {
    chrono::TimeDelta::from_std(time).unwrap_or_default()
}

/// Holder of a lane.
#[derive(Debug)]
pub(crate) struct LaneHolder {
    pub(crate) owner_id: String,
    /// Stored description of the process, including the end of the lease.
    pub(crate) process: String,
    /// End of the lease on the holder's wall clock.
    pub(crate) expires_at: Timestamp,
}

impl LaneHolder {
    /// Returns true if `owner` cannot claim the lane.
    pub(crate) fn blocks(&self, owner: &Owner, now: ClockReading) -> bool {
        self.owner_id != owner.id && self.is_held(now)
    }

    /// Returns true if the lane cannot be claimed by another owner: the holder's process is not known to be gone,
    /// and its lease has not expired, with the tolerances given above.
    pub(crate) fn is_held(&self, now: ClockReading) -> bool {
        let more = match process_state(&self.process) {
            ProcessState::Gone => return false,
            ProcessState::AliveHere => COMMIT_TIMEOUT,
            ProcessState::MaybeAlive => Duration::ZERO,
        };
        let until = process_field(&self.process, "until").and_then(|until| until.parse().ok());
        match (until, is_same_boot(&self.process)) {
            (Some(until), true) => {
                now.monotonic < Duration::from_millis(until).saturating_add(more)
            }
            // Stored by an earlier version of turnery on this machine.
            (None, true) => self
                .expires_at
                .checked_add_signed(to_time_delta(more))
                .is_none_or(|end| now.wall < end),
            (_, false) => now
                .wall
                .checked_sub_signed(to_time_delta(CLOCK_SKEW))
                .is_none_or(|now| now < self.expires_at),
        }
    }

    /// Returns true if the lane is held, or if the holder's process runs on this machine, even after its lease
    /// expired: readers must not recover its journals, deletion and repair must not destroy its work.
    pub(crate) fn may_be_active(&self, now: ClockReading) -> bool {
        process_state(&self.process) == ProcessState::AliveHere || self.is_held(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holder(process: String, expires_at: Timestamp) -> LaneHolder {
        LaneHolder {
            owner_id: String::new(),
            process,
            expires_at,
        }
    }

    /// Simulates two processes whose wall clocks differ by `skew` seconds, on one machine or two.
    fn is_held_after(process: &str, passed: u64, skew: i64) -> bool {
        let begun = ClockReading {
            wall: "2026-11-22T12:00:00Z".parse().unwrap(),
            monotonic: Duration::from_secs(1000),
        };
        let end = LeaseEnd::after(begun);
        let passed = Duration::from_secs(passed);
        let now = ClockReading {
            wall: begun.wall + passed + chrono::TimeDelta::seconds(skew),
            monotonic: begun.monotonic + passed,
        };
        holder(end.stamp_process(process), end.wall).is_held(now)
    }

    proptest! {
        /// UP-27.
        #[test]
        #[cfg(target_os = "linux")]
        fn local_lease_ends_by_the_monotonic_clock(
            passed in 0_u64..200,
            skew in -1_000_000_i64..1_000_000,
        ) {
            let here = Owner::for_this_process().process;
            prop_assert_eq!(is_held_after(&here, passed, skew), passed < 30 + 60);
        }

        /// UP-27.
        #[test]
        #[cfg(target_os = "linux")]
        fn remote_lease_tolerates_a_minute_of_clock_skew(
            passed in 0_u64..1000,
            skew in -60_i64..=60,
        ) {
            let there = Owner::for_this_process().process.replace("boot=", "boot=x");
            let is_held = is_held_after(&there, passed, skew);
            prop_assert!(is_held || passed >= 30, "taken over too early");
            prop_assert!(!is_held || passed < 30 + 60 + 60, "never taken over");
        }
    }

    #[test]
    fn lease_of_a_dead_process_is_not_held() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = format!("pid={}", child.id());
        child.wait().unwrap();
        assert!(!is_held_after(&process, 0, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn lease_of_an_older_version_ends_by_the_wall_clock() {
        let at = |seconds| ClockReading {
            wall: chrono::DateTime::from_timestamp(seconds, 0).unwrap(),
            monotonic: Duration::from_secs(7),
        };
        let here = holder(Owner::for_this_process().process, at(130).wall);
        assert!(here.is_held(at(189)));
        assert!(!here.is_held(at(190)));
    }
}
