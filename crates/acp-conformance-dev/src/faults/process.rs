//! Faults of the process: its start, its exit, and leftover children.

use super::fault::ProcessFault;

pub(super) const FAULTS: &[(&str, ProcessFault)] = &[
    ("banner", ProcessFault::Banner),
    ("farewell_on_stdout", ProcessFault::Farewell),
    ("stays_after_eof", ProcessFault::StaysAfterEof),
    ("end_kills_at_once", ProcessFault::DiesAtEof),
    ("exit_status_1", ProcessFault::ExitsWithOne),
    ("deaf_to_sigterm", ProcessFault::IgnoresSigterm),
    ("child_left_behind", ProcessFault::LeavesChild),
    ("outlives_its_stdout", ProcessFault::OutlivesStdout),
    ("terminal_needed", ProcessFault::NeedsTerminal),
];
