//! Report of the processes that remain after a program and its descendants were stopped.

use std::{fmt, process::ExitStatus};

/// Result of a program whose descendants were stopped.
#[derive(Debug)]
pub struct FinishedTree {
    /// Exit status of the program; `None` if unknown.
    pub status: Option<ExitStatus>,
    /// Outcome of stopping all its descendants.
    pub stopped: StopReport,
}

/// Outcome of stopping a program and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReport {
    /// The program and every descendant: according to the kernel none is left.
    Everything,
    /// The program, its process group and every process with the inherited tag. A process that left the group
    /// and cleared its environment may still run.
    GroupAndTagged,
    /// All except these processes, which may not be killed or which the kernel has not finished with.
    Remaining(Vec<RunningProcess>),
}

/// A process that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: i32,
    /// Its command line, shortened.
    pub command: String,
}

impl fmt::Display for RunningProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.command)
    }
}
