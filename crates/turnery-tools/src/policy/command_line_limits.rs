//! Defines the limits that an allowed command line runs within.

use super::{
    command_line::CommandLine,
    command_line_access::CommandLineAccess,
    git::{self, GitSettings},
};

/// Limits of an allowed command line, as determined when it was judged. The run keeps these limits even if
/// the files on disk change: judged again, the line might be allowed to do more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLineLimits {
    /// True if the line only reads, so that it needs no write access.
    pub only_reads: bool,
    /// True if everything that leads to code in the project is removed from variables such as `PATH`: all
    /// commands only read, wherever their output goes, or are git commands allowed by a rule.
    pub loads_no_project_code: bool,
    /// Settings of git.
    pub git: GitSettings,
}

impl CommandLineLimits {
    /// Determines the limits of a line. Unless all commands only read, git runs with `settings`.
    pub(super) fn from_line(
        line: &CommandLine,
        access: &CommandLineAccess,
        settings: GitSettings,
    ) -> Self {
        let reads_only = access.all_commands_only_read(line);
        let mut commands = line.commands.iter().zip(&access.reads);
        // Less careful git runs hooks, which may need the project's programs.
        let is_git = settings >= GitSettings::Careful
            && commands.all(|(command, reads)| reads.is_some() || git::is_git(command));
        Self {
            only_reads: reads_only && line.output_files.is_empty(),
            loads_no_project_code: reads_only || is_git,
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
