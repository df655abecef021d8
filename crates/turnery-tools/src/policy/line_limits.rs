//! Limits that an allowed command line runs within.

use super::{
    git::{self, GitSettings},
    line::Line,
};

/// Limits of an allowed command line, as the judgement that allowed it found them. The run keeps to them whatever the
/// disk looks like by then: judged again, the line could have become one that may do more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineLimits {
    /// Whether the line only reads, so that it needs no more than that.
    pub only_reads: bool,
    /// Whether all of its commands only read, wherever their output goes: then they load no code out of folders that
    /// the environment names in the session's folders.
    pub runs_readers: bool,
    /// Settings of git.
    pub git: GitSettings,
}

impl LineLimits {
    /// Limits of a line. `reads_only`: all of its commands only read, wherever their output goes; else git has
    /// `settings`.
    pub(super) fn of(line: &Line, reads_only: bool, settings: GitSettings) -> Self {
        Self {
            only_reads: reads_only && line.writes.is_empty(),
            runs_readers: reads_only,
            git: match has_git(line) {
                true if reads_only => GitSettings::Hardened,
                true => settings,
                false => GitSettings::Own,
            },
        }
    }
}

/// Whether one of the commands is git.
pub(super) fn has_git(line: &Line) -> bool {
    line.commands.iter().any(git::is_git)
}
