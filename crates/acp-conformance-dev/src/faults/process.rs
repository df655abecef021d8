//! Faults of the process: its start, its exit, and leftover children.

use super::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault::process("banner", ProcessFault::Banner),
    Fault::process("farewell_on_stdout", ProcessFault::Farewell),
    Fault::process("stays_after_eof", ProcessFault::StaysAfterEof),
    Fault::process("end_kills_at_once", ProcessFault::DiesAtEof),
    Fault::process("exit_status_1", ProcessFault::ExitsWithOne),
    Fault::process("deaf_to_sigterm", ProcessFault::IgnoresSigterm),
    Fault::process("child_left_behind", ProcessFault::LeavesChild),
    Fault::process("outlives_its_stdout", ProcessFault::OutlivesStdout),
];

/// Fault of the process, independent of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// Prints a line that is not a message at the start.
    Banner,
    /// Prints a line that is not a message at the end.
    Farewell,
    /// Does not exit when stdin is closed.
    StaysAfterEof,
    /// Exits when stdin is closed, without answering open requests.
    DiesAtEof,
    /// Exits with status 1.
    ExitsWithOne,
    /// Ignores SIGTERM.
    IgnoresSigterm,
    /// Leaves a child process behind.
    LeavesChild,
    /// Does not exit when stdout is closed.
    OutlivesStdout,
}
