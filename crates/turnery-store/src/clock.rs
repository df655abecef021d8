//! Clock: where a store takes the time from. Only lanes need it; a test turns it by hand.

use chrono::DateTime;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use turnery_engine::Timestamp;
use uuid::{NoContext, Uuid};

/// Tells the time.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    steady: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// May be set, and differs between machines.
    pub(crate) wall: Timestamp,
    /// Since the machine was started, the same for all of its processes.
    pub(crate) steady: Duration,
}

impl Clock {
    /// The clocks of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::with_steady(now, since_boot)
    }

    /// Any other clock on the wall, which also counts as the steady one.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let wall: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(now);
        let same = Arc::clone(&wall);
        Self {
            wall,
            steady: Arc::new(move || {
                let since = same() - DateTime::UNIX_EPOCH;
                since.to_std().unwrap_or_default()
            }),
        }
    }

    /// A clock on the wall that may be set, and one that counts from the start of the machine.
    pub fn with_steady(
        wall: impl Fn() -> Timestamp + Send + Sync + 'static,
        steady: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            wall: Arc::new(wall),
            steady: Arc::new(steady),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.wall)()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment {
            wall: self.now(),
            steady: (self.steady)(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// Stands still while the machine sleeps, so that a holder can renew its lane when it wakes up.
#[cfg(unix)]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (time.tv_sec.try_into(), time.tv_nsec.try_into());
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Counts from the first use: good enough within one process.
#[cfg(not(unix))]
fn since_boot() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// The time now. Also of a clock that stands before 1970, where `chrono::Utc::now` panics.
#[must_use]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A new id, which is greater than those made before. With a clock that stands before 1970, where
/// `Uuid::now_v7` panics, it is unique but in no order.
#[must_use]
pub fn new_uuid() -> Uuid {
    uuid_at(SystemTime::now())
}

fn uuid_at(time: SystemTime) -> Uuid {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock does not stand before 1970"
        )]
        Ok(_) => Uuid::now_v7(),
        Err(_) => Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, 0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn steady_clock_never_goes_back() {
        let (first, second) = (since_boot(), since_boot());
        assert!(Duration::ZERO < first && first <= second);
    }

    #[test]
    fn clock_before_1970_tells_the_time() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_millis(1500);
        assert_eq!(Timestamp::from(before).timestamp_millis(), -1500);
    }

    #[test]
    fn clock_before_1970_gives_distinct_ids() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let ids = [uuid_at(before), uuid_at(before)];
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids[0].get_version_num(), 7);
    }
}
