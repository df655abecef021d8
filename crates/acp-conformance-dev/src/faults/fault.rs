//! Defines a named fault.

use super::intercepted_line::InterceptedLine;
use std::fmt;

/// Named fault of an agent.
pub struct Fault {
    /// Name in `faults.toml` and on the command line.
    pub name: &'static str,
    pub(super) kind: FaultKind,
}

/// Handles one line.
pub(super) type LineHandler = Box<dyn Fn(&mut InterceptedLine<'_>) + Send + Sync>;
/// Function that handles one line, with the name of its fault.
pub(super) type LineFunction = (&'static str, fn(&mut InterceptedLine<'_>));

/// Part of the agent that a fault affects.
pub(super) enum FaultKind {
    /// Lines, handled one at a time.
    Lines(LineHandler),
    /// Behaviour of the process.
    Process(ProcessFault),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Fault {
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
    /// Answers nothing unless stdin is a terminal.
    NeedsTerminal,
}
