//! Defines the limits that an allowed command line runs within.

use super::{
    command_line::CommandLine,
    git::{self, GitSettings},
};

/// Limits of an allowed command line, as determined when it was judged. The run keeps these limits even if
/// the files on disk change: judged again, the line might be allowed to do more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLineLimits {
    /// True if the line only reads, so that it needs no write access.
    pub only_reads: bool,
    /// True if all commands only read, wherever their output goes. Such commands load no code from session
    /// folders that the environment names.
    pub commands_only_read: bool,
    /// Settings of git.
    pub git: GitSettings,
}

impl CommandLineLimits {
    /// Determines the limits of a line. `reads_only`: all commands only read, wherever their output goes;
    /// otherwise git runs with `settings`.
    pub(super) fn from_line(line: &CommandLine, reads_only: bool, settings: GitSettings) -> Self {
        Self {
            only_reads: reads_only && line.output_files.is_empty(),
            commands_only_read: reads_only,
            git: match has_git_command(line) {
                true if reads_only => GitSettings::Hardened,
                true => settings,
                false => GitSettings::Unrestricted,
            },
        }
    }
}

/// Returns true if one of the commands is git.
pub(super) fn has_git_command(line: &CommandLine) -> bool {
    line.commands.iter().any(git::is_git)
}
