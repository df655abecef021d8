//! Faults of the process: its start, its exit, and leftover children.

use super::fault::{Fault, ProcessFault};

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
