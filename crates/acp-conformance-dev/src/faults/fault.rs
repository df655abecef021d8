//! Defines a named fault.

use super::intercepted_line::InterceptedLine;

/// Named fault of an agent.
#[derive(Debug)]
pub struct Fault {
    /// Name in `faults.toml` and on the command line.
    pub name: &'static str,
    pub(super) kind: FaultKind,
}

/// Part of the agent that a fault affects.
#[derive(Clone, Copy, Debug)]
pub(super) enum FaultKind {
    /// Lines, handled one at a time.
    Lines(fn(&mut InterceptedLine<'_>)),
    /// Behaviour of the process.
    Process(ProcessFault),
}

impl Fault {
    pub(super) const fn lines(name: &'static str, handler: fn(&mut InterceptedLine<'_>)) -> Self {
        let kind = FaultKind::Lines(handler);
        Self { name, kind }
    }

    pub(super) const fn process(name: &'static str, process_fault: ProcessFault) -> Self {
        let kind = FaultKind::Process(process_fault);
        Self { name, kind }
    }

    /// Returns the fault of the process itself; `None` for faults of lines.
    #[must_use]
    pub fn process_fault(&self) -> Option<ProcessFault> {
        match self.kind {
            FaultKind::Lines(_) => None,
            FaultKind::Process(fault) => Some(fault),
        }
    }
}

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
