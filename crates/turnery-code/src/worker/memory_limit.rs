//! Limits the memory of the worker, and what it could do if the interpreter had a hole.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::{fs, io};

/// Memory of the started worker on systems that do not report it. Unit: bytes.
const ASSUMED_BASE_BYTES: u64 = 512 << 20;
/// Address space that the allocator reserves for a thread's first small allocations. Unit: bytes.
const ALLOCATOR_RESERVE_BYTES: u64 = 128 << 20;
/// Copies of a snapshot that exist while it is made, of which one has grown to up to twice its size.
const SNAPSHOT_COPIES: u64 = 4;

/// Limit of the worker's address space.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryLimit {
    /// Limit while code runs. Unit: bytes.
    running: u64,
    /// Limit while a snapshot is made. Unit: bytes.
    saving: u64,
}

impl MemoryLimit {
    /// Limits the address space of this process to its present size and `memory_bytes`. Forbids core dumps and
    /// new descriptors. Room for a snapshot of `snapshot_bytes` is extra.
    ///
    /// # Errors
    ///
    /// Returns an error of the system.
    pub(super) fn set(memory_bytes: u64, snapshot_bytes: usize) -> io::Result<Self> {
        let running = base_bytes()
            .saturating_add(ALLOCATOR_RESERVE_BYTES)
            .saturating_add(memory_bytes);
        let snapshot = (snapshot_bytes as u64).saturating_mul(SNAPSHOT_COPIES);
        let limit = Self {
            running,
            saving: running.saturating_add(snapshot),
        };
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        setrlimit(Resource::Core, none)?;
        setrlimit(Resource::Nofile, none)?;
        limit.restrict(running)?;
        Ok(limit)
    }

    /// Runs `save` with room for a snapshot.
    ///
    /// # Errors
    ///
    /// Returns an error of the system.
    pub(super) fn with_room_for_snapshot<T>(self, save: impl FnOnce() -> T) -> io::Result<T> {
        self.restrict(self.saving)?;
        let saved = save();
        self.restrict(self.running)?;
        Ok(saved)
    }

    fn restrict(self, bytes: u64) -> io::Result<()> {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(self.saving),
        };
        Ok(setrlimit(Resource::As, limit)?)
    }
}

/// Returns the size of this process's address space. Unit: bytes.
fn base_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm");
    let pages = statm
        .ok()
        .and_then(|statm| statm.split(' ').next()?.parse::<u64>().ok());
    pages.map_or(ASSUMED_BASE_BYTES, |pages| {
        pages.saturating_mul(rustix::param::page_size() as u64)
    })
}
