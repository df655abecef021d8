//! Limits that an allowed command line runs within.

use super::{git, line::Line};

/// Limits of an allowed command line, as the judgement that allowed it found them. The run keeps to them whatever the
/// disk looks like by then: judged again, the line could have become one that may do more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineLimits {
    /// Whether the line only reads, so that it needs no more than that.
    pub only_reads: bool,
    /// Whether all of its commands only read, wherever their output goes: then they load no code out of folders that
    /// the environment names in the session's folders.
    pub runs_readers: bool,
    /// Whether git gets an environment in which it runs nothing that a repository names.
    pub hardens_git: bool,
}

impl LineLimits {
    /// Limits of a line. `reads_only`: all of its commands only read, wherever their output goes.
    pub(super) fn of(line: &Line, reads_only: bool) -> Self {
        Self {
            only_reads: reads_only && line.writes.is_empty(),
            runs_readers: reads_only,
            hardens_git: reads_only && has_git(line),
        }
    }
}

/// Whether one of the commands is git.
pub(super) fn has_git(line: &Line) -> bool {
    line.commands.iter().any(git::is_git)
}
