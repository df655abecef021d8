//! Simulates disks that lose power, fill up or fail, for tests of programs that use SQLite.
//!
//! A [`Disk`] records every write, truncation, sync, creation and removal of files in one folder, and makes chosen calls
//! fail. [`CrashState`] replays such a log and lists what may be left on the disk after a power cut.

mod crash_state;
mod disk;
mod outside;
mod random;
mod vfs;

pub use crash_state::{CrashState, Image};
pub use disk::{Disk, Fault, FaultKind, FileId, LogEntry};
pub use outside::{rewrite_file, sync_file, sync_folder};
pub use random::Random;
pub use vfs::install;
