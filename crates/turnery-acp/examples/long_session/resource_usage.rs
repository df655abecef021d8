//! Samples the resource usage of this process: CPU time, allocations and bytes written.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::{alloc::System, fs, ops::Sub, time::Duration};

#[global_allocator]
static ALLOCATIONS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Resource usage so far, or the difference of two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceUsage {
    /// CPU time of all running threads; zero without `/proc`.
    pub(crate) cpu: Duration,
    /// Number of allocations and reallocations.
    pub(crate) allocations: u64,
    /// Number of bytes allocated.
    pub(crate) allocated: u64,
    /// Number of bytes passed to the system for writing; zero without `/proc`.
    pub(crate) written: u64,
}

impl ResourceUsage {
    /// Returns the current usage.
    pub(crate) fn now() -> Self {
        let stats = ALLOCATIONS.stats();
        Self {
            cpu: cpu_time(),
            allocations: to_u64(stats.allocations + stats.reallocations),
            allocated: to_u64(stats.bytes_allocated),
            written: written_bytes(),
        }
    }
}

impl Sub for ResourceUsage {
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

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn cpu_time() -> Duration {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let spent = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

fn written_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}
