//! Lease: until when the holder of a lane keeps it without renewing (UP-27).
//!
//! Processes of one machine share the clock that counts from its start, so the lease ends by that clock,
//! whatever the clocks on their walls say. Only where the holder's machine is another one, or unknown,
//! the clock on the wall decides, with a margin for clocks that differ.
//!
//! A holder that runs on this machine keeps its lane for longer, by the time that a commit may wait for
//! the lock of another program: it cannot renew meanwhile, and the model's answer has been paid for. A
//! process that was stopped loses its lane after that.

use crate::{
    COMMIT_PATIENCE, LANE_TIME,
    clock::Moment,
    owner::{Life, field, life, lives_here, same_boot},
};
use std::time::Duration;
use turnery_engine::Timestamp;

/// How far the clocks of two machines may differ.
const MARGIN: Duration = Duration::from_secs(60);

/// End of a lease that is taken or renewed now, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseEnd {
    pub(crate) wall: Timestamp,
    /// Unit: milliseconds.
    pub(crate) steady: u64,
}

impl LeaseEnd {
    pub(crate) fn after(now: Moment) -> Self {
        let steady = (now.steady + LANE_TIME).as_millis();
        Self {
            wall: now
                .wall
                .checked_add_signed(delta(LANE_TIME))
                .unwrap_or(now.wall),
            steady: u64::try_from(steady).unwrap_or(u64::MAX),
        }
    }

    /// The holder's process as it is stored, with the end of its lease.
    pub(crate) fn stamp(self, process: &str) -> String {
        format!("until={} {process}", self.steady)
    }
}

fn delta(time: Duration) -> chrono::TimeDelta {
    chrono::TimeDelta::from_std(time).unwrap_or_default()
}

/// Whether the holder of a lane still has it. `process` is the stored one, `ends_at` the end of its
/// lease on its own clock.
pub(crate) fn is_held(process: &str, ends_at: Timestamp, now: Moment) -> bool {
    if life(process) == Life::Gone {
        return false;
    }
    let until = field(process, "until").and_then(|until| until.parse().ok());
    let more = match lives_here(process) {
        true => COMMIT_PATIENCE,
        false => Duration::ZERO,
    };
    match (until, same_boot(process)) {
        (Some(until), true) => now.steady < Duration::from_millis(until).saturating_add(more),
        // Stored by an earlier version of turnery, on this machine.
        (None, true) => ends_at
            .checked_add_signed(delta(more))
            .is_none_or(|end| now.wall < end),
        (_, false) => now
            .wall
            .checked_sub_signed(delta(MARGIN))
            .is_none_or(|now| now < ends_at),
    }
}

/// Like [`is_held`], and also true for a holder that is alive here but whose lease has run out: callers
/// that only read take nothing away from it, and deletion and repair would take everything.
pub(crate) fn may_be_at_work(process: &str, ends_at: Timestamp, now: Moment) -> bool {
    lives_here(process) || is_held(process, ends_at, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use proptest::prelude::*;

    /// Two processes of one machine, or of two, whose clocks differ by so many seconds.
    fn is_held_after(process: &str, passed: u64, skew: i64) -> bool {
        let begun = Moment {
            wall: "2026-11-22T12:00:00Z".parse().unwrap(),
            steady: Duration::from_secs(1000),
        };
        let end = LeaseEnd::after(begun);
        let passed = Duration::from_secs(passed);
        let now = Moment {
            wall: begun.wall + passed + chrono::TimeDelta::seconds(skew),
            steady: begun.steady + passed,
        };
        is_held(&end.stamp(process), end.wall, now)
    }

    proptest! {
        /// UP-27.
        #[test]
        #[cfg(target_os = "linux")]
        fn lease_on_this_machine_ends_by_its_own_clock(
            passed in 0_u64..200,
            skew in -1_000_000_i64..1_000_000,
        ) {
            let here = Owner::this_process().process;
            prop_assert_eq!(is_held_after(&here, passed, skew), passed < 30 + 60);
        }

        /// UP-27.
        #[test]
        #[cfg(target_os = "linux")]
        fn lease_elsewhere_is_kept_by_clocks_a_minute_apart(
            passed in 0_u64..1000,
            skew in -60_i64..=60,
        ) {
            let there = Owner::this_process().process.replace("boot=", "boot=x");
            let is_held = is_held_after(&there, passed, skew);
            prop_assert!(is_held || passed >= 30, "taken over too early");
            prop_assert!(!is_held || passed < 30 + 60 + 60, "never taken over");
        }
    }

    #[test]
    fn holder_that_is_gone_has_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = format!("pid={}", child.id());
        child.wait().unwrap();
        assert!(!is_held_after(&process, 0, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn lease_of_an_earlier_version_ends_by_the_wall_clock() {
        let here = Owner::this_process().process;
        let at = |seconds| Moment {
            wall: chrono::DateTime::from_timestamp(seconds, 0).unwrap(),
            steady: Duration::from_secs(7),
        };
        assert!(is_held(&here, at(130).wall, at(189)));
        assert!(!is_held(&here, at(130).wall, at(190)));
    }
}
