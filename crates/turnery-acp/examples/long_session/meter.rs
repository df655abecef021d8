//! Meter: what this process has used up so far: time of the processor, allocations, bytes written.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::{alloc::System, fs, ops::Sub, time::Duration};

#[global_allocator]
static ALLOCATIONS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What has been used up, or between two such, what was used up in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Of all threads that still run; zero where `/proc` does not tell.
    pub(crate) cpu: Duration,
    /// How often memory was taken, or taken anew in another size.
    pub(crate) allocations: u64,
    /// How many bytes of memory were taken.
    pub(crate) allocated: u64,
    /// How many bytes were handed to the system to be written; zero where `/proc` does not tell.
    pub(crate) written: u64,
}

impl Used {
    /// As of now.
    pub(crate) fn so_far() -> Self {
        let stats = ALLOCATIONS.stats();
        Self {
            cpu: cpu(),
            allocations: count(stats.allocations + stats.reallocations),
            allocated: count(stats.bytes_allocated),
            written: written(),
        }
    }
}

impl Sub for Used {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            allocations: self.allocations - earlier.allocations,
            allocated: self.allocated - earlier.allocated,
            written: self.written - earlier.written,
        }
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn cpu() -> Duration {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let spent = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}
