//! Provides the current time, which tests can replace, and time-ordered UUIDs.

use chrono::DateTime;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use turnery_engine::Timestamp;
use uuid::{NoContext, Uuid};

/// Source of the current time.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    monotonic: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// Wall-clock time, which may be set and differs between machines.
    pub(crate) wall: Timestamp,
    /// Time of the monotonic clock. With `Clock::system` on Unix all processes of the machine share it;
    /// elsewhere it counts from the first use in this process.
    pub(crate) monotonic: Duration,
}

impl Clock {
    /// Returns the clocks of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::with_monotonic(now, since_boot)
    }

    /// Creates a clock from a wall-clock function, which also serves as the monotonic clock.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let wall: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(now);
        let same = Arc::clone(&wall);
        Self {
            wall,
            monotonic: Arc::new(move || {
                let since = same() - DateTime::UNIX_EPOCH;
                since.to_std().unwrap_or_default()
            }),
        }
    }

    /// Creates a clock from a wall-clock function and a monotonic function that counts from boot.
    pub fn with_monotonic(
        wall: impl Fn() -> Timestamp + Send + Sync + 'static,
        monotonic: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            wall: Arc::new(wall),
            monotonic: Arc::new(monotonic),
        }
    }

    /// Returns the wall-clock time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.wall)()
    }

    pub(crate) fn reading(&self) -> ClockReading {
        ClockReading {
            wall: self.now(),
            monotonic: (self.monotonic)(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// Returns the time of the monotonic clock. On Linux it does not advance during sleep, so that a holder can
/// renew its lane after waking up; on macOS it does.
#[cfg(unix)]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (time.tv_sec.try_into(), time.tv_nsec.try_into());
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Counts from the first use, which suffices within one process.
#[cfg(not(unix))]
fn since_boot() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// Returns the current time. Works for clocks set before 1970, where `chrono::Utc::now` panics.
#[must_use]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Returns a new UUID (version 7), greater than all earlier ones of this process. With a clock set before
/// 1970, where `Uuid::now_v7` panics, the UUID is unique but not ordered.
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
    fn monotonic_clock_never_goes_back() {
        let (first, second) = (since_boot(), since_boot());
        assert!(Duration::ZERO < first && first <= second);
    }

    #[test]
    fn time_before_1970_is_read() {
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
