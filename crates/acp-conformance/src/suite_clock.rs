//! Measures time so that a busy machine does not look like a slow agent.
//!
//! A time limit of a case says how long an agent may take on a machine that has a core for it. While more tasks
//! want to run than there are cores, or tasks wait for the disk, this clock runs slower than the real one; on a
//! quiet machine both agree. Only Linux reports how many tasks wait: elsewhere this is the real clock.

use std::{
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How often the load is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// Upper limit of the slowness, so that a hang is always found.
const MAX_SLOWNESS: f64 = 40.0;

static FAIR_CLOCK: LazyLock<Mutex<FairClock>> = LazyLock::new(|| {
    // Without the thread, the clock keeps the rate sampled here.
    let _ = thread::Builder::new().spawn(|| {
        loop {
            thread::sleep(SAMPLE_INTERVAL);
            let slowness = sample_slowness();
            let mut clock = FAIR_CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
            *clock = clock.advanced_to(Instant::now(), slowness);
        }
    });
    Mutex::new(FairClock {
        fair: Duration::ZERO,
        since: Instant::now(),
        slowness: sample_slowness(),
    })
});

#[derive(Clone, Copy)]
struct FairClock {
    /// Fair time at `since`.
    fair: Duration,
    since: Instant,
    /// Real seconds for each second of this clock, from `since` on.
    slowness: f64,
}

impl FairClock {
    fn time_at(&self, instant: Instant) -> Duration {
        let real = instant.saturating_duration_since(self.since);
        self.fair + real.div_f64(self.slowness)
    }

    fn advanced_to(&self, instant: Instant, slowness: f64) -> Self {
        Self {
            fair: self.time_at(instant),
            since: instant,
            slowness,
        }
    }
}

fn sample_slowness() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    slowness_from_stat(&stat)
}

/// Computes the slowness from the text of `/proc/stat`. A task that waits for a core counts twice: an agent,
/// its commands and the runner wait for each other in turn.
fn slowness_from_stat(stat: &str) -> f64 {
    let count = |name: &str| -> f64 {
        let mut lines = stat.lines();
        let count = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        count.unwrap_or(0.0)
    };
    let is_core = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
    // All cores of the machine, because the tasks are counted on all of them.
    let cores = stat.lines().filter(is_core).count().max(1) as f64;
    // The thread that reads the file runs, too.
    let waiting = (count("procs_running ") - 1.0 - cores).max(0.0);
    let slowness = 1.0 + 2.0 * waiting / cores + count("procs_blocked ") / cores;
    slowness.min(MAX_SLOWNESS)
}

/// Clock on which time limits are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuiteClock {
    /// Slows down while the machine is busy.
    Fair,
    /// Real time, for a first try that is repeated on the fair clock before a failure is reported.
    Real,
}

impl SuiteClock {
    /// Returns the time on this clock; only differences are meaningful.
    pub(crate) fn now(self) -> Duration {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self {
            Self::Fair => {
                let clock = FAIR_CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
                clock.time_at(Instant::now())
            }
            Self::Real => BEGUN.elapsed(),
        }
    }

    /// Waits until this clock shows `time`.
    pub(crate) async fn sleep_until(self, time: Duration) {
        while let Some(left) = self.remaining(time) {
            tokio::time::sleep(left).await;
        }
    }

    /// Blocks the thread for `duration` on this clock.
    pub fn sleep(self, duration: Duration) {
        let time = self.now() + duration;
        while let Some(left) = self.remaining(time) {
            thread::sleep(left);
        }
    }

    fn remaining(self, time: Duration) -> Option<Duration> {
        let left = time.checked_sub(self.now()).filter(|left| !left.is_zero());
        left.map(|left| left.max(Duration::from_millis(1)))
    }

    /// Waits for `future`, at most for `limit` on this clock; returns `None` if the limit was exceeded.
    pub(crate) async fn timeout<T>(
        self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let deadline = self.now() + limit;
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(deadline) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_tasks_slow_the_clock() {
        let stat = |running, blocked| {
            format!(
                "cpu  1 2 3\ncpu0 1 2\ncpu1 0 1\nprocs_running {running}\nprocs_blocked {blocked}\nsoftirq 1\n"
            )
        };
        let of = |running, blocked| slowness_from_stat(&stat(running, blocked)).to_string();
        assert_eq!(of(1, 0), "1");
        assert_eq!(of(3, 0), "1");
        assert_eq!(of(5, 0), "3");
        assert_eq!(of(11, 1), "9.5");
        assert_eq!(of(1000, 0), "40");
    }

    #[test]
    fn unknown_load_leaves_the_real_clock() {
        assert_eq!(slowness_from_stat("").to_string(), "1");
    }

    #[test]
    fn bound_scales_with_load_and_still_ends() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let quiet = FairClock {
            fair: Duration::ZERO,
            since: start,
            slowness: 1.0,
        };
        let busy = quiet.advanced_to(start + 2 * second, 4.0);
        assert_eq!(busy.time_at(start + 2 * second), 2 * second);
        assert_eq!(busy.time_at(start + 6 * second), 3 * second);
        let hung = quiet.advanced_to(start, MAX_SLOWNESS);
        assert_eq!(hung.time_at(start + 400 * second), 10 * second);
    }

    #[tokio::test]
    async fn result_within_limit_is_returned() {
        for pace in [SuiteClock::Fair, SuiteClock::Real] {
            assert_eq!(pace.timeout(Duration::ZERO, async { 7 }).await, Some(7));
            let never = std::future::pending::<()>();
            assert_eq!(pace.timeout(Duration::from_millis(1), never).await, None);
        }
    }
}
