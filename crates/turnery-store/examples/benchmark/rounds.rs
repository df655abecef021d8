//! Times of repeated operations.

use crate::Outcome;
use std::{
    fs,
    time::{Duration, Instant},
};

/// Duration of each round, and the CPU time of this process in it.
pub(crate) struct RoundTimes {
    name: &'static str,
    times: Vec<Duration>,
    cpu: Duration,
}

impl RoundTimes {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            times: Vec::new(),
            cpu: cpu_time(),
        }
    }

    pub(crate) fn add(&mut self, since: Instant) {
        self.times.push(since.elapsed());
    }

    /// Prints the times. Returns the median.
    pub(crate) fn print(mut self) -> Duration {
        let cpu = cpu_time().saturating_sub(self.cpu);
        self.times.sort_unstable();
        let count = self.times.len();
        let (middle, late) = (self.times[count / 2], self.times[count * 9 / 10]);
        let each = cpu / u32::try_from(count).unwrap_or(u32::MAX);
        println!(
            "{:<44} median {middle:>9.1?}   9 of 10 below {late:>9.1?}   cpu {each:>9.1?}",
            self.name
        );
        middle
    }
}

/// Returns user and system time of all threads, in steps of 10 ms; zero where `/proc` is not available.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Measures an operation that returns the number of things that it read.
pub(crate) async fn measure_reading(
    name: &'static str,
    rounds: u32,
    expected: usize,
    read: impl AsyncFn() -> Outcome<usize>,
) -> Outcome<Duration> {
    let mut times = RoundTimes::new(name);
    for _ in 0..rounds {
        let since = Instant::now();
        let count = read().await?;
        times.add(since);
        if count != expected {
            return Err(format!("{count} in place of {expected}").into());
        }
    }
    Ok(times.print())
}

/// Prints how many times as long one operation takes as another.
pub(crate) fn print_ratio(name: &str, time: Duration, to: Duration) {
    let ratio = time.as_secs_f64() / to.as_secs_f64();
    println!("{name}: {ratio:.2}");
}
