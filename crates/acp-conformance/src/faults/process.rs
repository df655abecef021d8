//! Faults of the process: how it begins, ends, and what it leaves behind.

use super::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault::process("banner", Habit::Banner),
    Fault::process("farewell_on_stdout", Habit::Farewell),
    Fault::process("stays_after_eof", Habit::StaysAfterEof),
    Fault::process("end_kills_at_once", Habit::DiesAtEof),
    Fault::process("exit_status_1", Habit::ExitsWithOne),
    Fault::process("deaf_to_sigterm", Habit::DeafToTerm),
    Fault::process("child_left_behind", Habit::LeavesChild),
    Fault::process("outlives_its_stdout", Habit::OutlivesStdout),
];

/// How the process is wrong, whatever is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// A line that is no message comes first.
    Banner,
    /// A line that is no message comes last.
    Farewell,
    /// The end of its stdin does not end it.
    StaysAfterEof,
    /// The end of its stdin ends it before it has answered.
    DiesAtEof,
    /// It leaves with status 1.
    ExitsWithOne,
    /// SIGTERM does nothing.
    DeafToTerm,
    /// A child of its own stays behind.
    LeavesChild,
    /// It goes on when nobody reads its stdout any more.
    OutlivesStdout,
}
