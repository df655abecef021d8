//! Collects the files and folders that a command line touches, as far as they can be determined.

use super::{
    command_line::{CommandLine, SimpleCommand, base_folders},
    git,
    inner_commands::{self, InnerCommands},
    named_paths::{named_paths, program_paths},
    path_checks::is_inside_roots,
    read_only,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Files and folders that a command line touches, as far as they can be determined.
pub(super) struct CommandLineAccess {
    /// Folders in which the commands may run.
    pub(super) bases: Vec<PathBuf>,
    /// For each command, the commands that it starts.
    pub(super) inner_commands: Vec<InnerCommands>,
    /// For each command, what it reads; `None` unless it only reads.
    pub(super) reads: Vec<Option<read_only::ReadAccess>>,
    /// Resolved targets of output redirections.
    pub(super) write_paths: Vec<PathBuf>,
    /// True if a redirection or a change of folder leads outside the roots.
    pub(super) leads_outside: bool,
    /// Targets of input redirections and paths that words name, checked against rules that deny reading.
    /// Words of `echo` and `printf` are left out.
    pub(super) named_read_paths: Vec<PathBuf>,
    /// Targets of output redirections and paths named by words of commands that may change files, checked
    /// against rules that deny changes.
    pub(super) named_edit_paths: Vec<PathBuf>,
}

impl CommandLineAccess {
    /// Resolves what the line touches. `with_names`: also collect the paths named by words, for rules that
    /// need them.
    pub(super) fn new(
        line: &CommandLine,
        cwd: &Path,
        workspace: &Workspace,
        with_names: bool,
        table: read_only::ProgramSet,
    ) -> Self {
        let bases = match count_lookups(line) > MAX_LOOKUPS {
            true => vec![cwd.to_owned()],
            false => base_folders(line, cwd, workspace),
        };
        let names = |texts: &[String]| -> Vec<PathBuf> {
            let paths = |base: &PathBuf| -> Vec<PathBuf> {
                texts.iter().map(|text| base.join(text)).collect()
            };
            let paths = bases.iter().flat_map(paths);
            paths
                .flat_map(|path| workspace.all_path_aliases(&path))
                .collect()
        };
        let reads: Vec<Option<read_only::ReadAccess>> = line
            .commands
            .iter()
            .map(|command| read_only::read_access(command, &bases, workspace, table))
            .collect();
        let leaves = |text: &String| {
            let mut paths = bases.iter().map(|base| base.join(text));
            paths.any(|path| !is_inside_roots(&path, workspace))
        };
        let mut texts = [&line.output_files, &line.input_files, &line.cd_folders]
            .into_iter()
            .flatten();
        let outside =
            bases.iter().any(|base| !is_inside_roots(base, workspace)) || texts.any(leaves);
        let writes = names(&line.output_files);
        let mut named_to_read = names(&line.input_files);
        let mut named_to_edit = writes.clone();
        for (command, reads) in line.commands.iter().zip(&reads).filter(|_| with_names) {
            named_to_read.extend(program_paths(command, &bases, workspace));
            let named = named_paths(command, &bases, workspace);
            if reads.is_none() {
                named_to_edit.extend(named.iter().cloned());
            }
            if !matches!(command.name.as_str(), "echo" | "printf") {
                named_to_read.extend(named);
            }
        }
        Self {
            bases,
            inner_commands: line
                .commands
                .iter()
                .map(inner_commands::find_inner_commands)
                .collect(),
            reads,
            write_paths: writes,
            leads_outside: outside,
            named_read_paths: named_to_read,
            named_edit_paths: named_to_edit,
        }
    }

    /// Returns a flag for each command: false if a rule must not allow it, because git could run something
    /// that a repository names, hooks included, in any folder, or because an earlier git command of the line
    /// changed the repository.
    pub(super) fn check_git_commands(
        &self,
        line: &CommandLine,
        workspace: &Workspace,
    ) -> Vec<bool> {
        let mut left = git::GitChange::Nothing;
        let change_of = |(command, reads): (&SimpleCommand, &Option<read_only::ReadAccess>)| {
            let is_change = git::is_git(command) && reads.is_none();
            // A commit of the index leaves the index as it was checked.
            match is_change && !git::is_index_commit(command) {
                true => git::classify_change(command),
                false => git::GitChange::Nothing,
            }
        };
        let changes: Vec<git::GitChange> = line
            .commands
            .iter()
            .zip(&self.reads)
            .map(change_of)
            .collect();
        let commands = line
            .commands
            .iter()
            .zip(&self.reads)
            .zip(&self.inner_commands);
        let check = |(at, ((command, reads), started)): (
            usize,
            (
                (&SimpleCommand, &Option<read_only::ReadAccess>),
                &InnerCommands,
            ),
        )| {
            let may_precede =
                |other: usize| line.has_loops || line.is_order_uncertain && other != at;
            let earlier = changes.iter().enumerate();
            let earlier = earlier.filter(|(other, _)| may_precede(*other));
            let before = earlier
                .map(|(_, change)| *change)
                .fold(left, git::GitChange::max);
            left = left.max(changes.get(at).copied().unwrap_or(git::GitChange::WorkTree));
            if !git::is_git(command) {
                // Another program may start git in another folder and with other options.
                return !started.commands.iter().any(git::is_git);
            }
            let is_checked = match before {
                git::GitChange::Nothing => true,
                git::GitChange::Index => git::is_index_commit(command),
                git::GitChange::WorkTree => false,
            };
            let run = match reads {
                Some(_) => git::GitRun::Usual,
                None => git::GitRun::Changing,
            };
            is_checked && git::runs_no_configured_program(command, &self.bases, workspace, run)
        };
        commands.enumerate().map(check).collect()
    }

    pub(super) fn all_commands_only_read(&self, line: &CommandLine) -> bool {
        !line.is_uncertain
            && !self.leads_outside
            && !self.reads.is_empty()
            && self.reads.iter().all(Option::is_some)
    }
}

/// Maximum number of paths resolved for one line; lines that need more are uncertain.
pub(super) const MAX_LOOKUPS: usize = 20_000;

/// Returns the maximum number of paths to resolve for the line: each word in each folder that it may run in.
pub(super) fn count_lookups(line: &CommandLine) -> usize {
    let words: usize = line.commands.iter().map(|command| command.args.len()).sum();
    let files = line.output_files.len() + line.input_files.len();
    // Each change of folder keeps the earlier folders and adds two for each.
    (0..line.cd_folders.len()).fold(words + files, |lookups, _| lookups.saturating_mul(3))
}
