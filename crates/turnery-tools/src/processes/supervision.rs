//! Names that turnery and its supervisors share: the argument and the executable of a supervisor, and the
//! variable that tags descendants.

use std::{path::PathBuf, sync::OnceLock};

/// First argument of a process that is started as a supervisor.
pub(super) const SUPERVISOR_ARGUMENT: &str = "--turnery-supervisor";

/// Executable that can be started as a supervisor.
pub(super) static SUPERVISOR_EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Environment variable by which descendants without a supervisor are found.
pub(super) const TAG_VARIABLE: &str = "TURNERY_PROCESS_TAG";

/// Returns a value of [`TAG_VARIABLE`], unique to one started program.
pub(super) fn new_tag() -> String {
    use std::{
        hash::{BuildHasher as _, RandomState},
        sync::atomic::{AtomicU64, Ordering},
    };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys are random, so another process with this id has other tags.
    let random = RandomState::new().hash_one(count);
    format!("{}-{count}-{random:016x}", std::process::id())
}
