//! Collects the files and folders that a command line touches, as far as they can be determined.

use super::{
    Rule,
    command_line::{Command, Line, bases},
    git,
    inner_commands::{self, Started},
    read_only,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Files and folders that a command line touches, as far as they can be determined.
pub(super) struct CommandLineAccess {
    /// Folders in which the commands may run.
    pub(super) bases: Vec<PathBuf>,
    /// For each command, the command that it starts.
    pub(super) started: Vec<Started>,
    /// For each command, what it reads; `None` unless it only reads.
    pub(super) reads: Vec<Option<read_only::Reads>>,
    /// Resolved targets of output redirections.
    pub(super) writes: Vec<PathBuf>,
    /// True if a redirection or a change of folder leads outside the roots.
    pub(super) outside: bool,
    /// Paths that words name, checked against rules that deny reading.
    pub(super) named_to_read: Vec<PathBuf>,
    /// Paths named by words of commands that may change them.
    pub(super) named_to_edit: Vec<PathBuf>,
}

impl CommandLineAccess {
    /// Resolves what the line touches. `with_names`: also collect the paths named by words, for rules that
    /// need them.
    pub(super) fn new(
        line: &Line,
        cwd: &Path,
        workspace: &Workspace,
        with_names: bool,
        table: read_only::Table,
    ) -> Self {
        let bases = match lookups(line) > MAX_LOOKUPS {
            true => vec![cwd.to_owned()],
            false => bases(line, cwd, workspace),
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
        let reads: Vec<Option<read_only::Reads>> = line
            .commands
            .iter()
            .map(|command| read_only::reads(command, &bases, workspace, table))
            .collect();
        let leaves = |text: &String| {
            let mut paths = bases.iter().map(|base| base.join(text));
            paths.any(|path| !is_inside(&path, workspace))
        };
        let mut texts = [&line.writes, &line.reads, &line.folders]
            .into_iter()
            .flatten();
        let outside = bases.iter().any(|base| !is_inside(base, workspace)) || texts.any(leaves);
        let writes = names(&line.writes);
        let mut named_to_read = names(&line.reads);
        let mut named_to_edit = writes.clone();
        for (command, reads) in line.commands.iter().zip(&reads).filter(|_| with_names) {
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
            started: line.commands.iter().map(inner_commands::started).collect(),
            reads,
            writes,
            outside,
            named_to_read,
            named_to_edit,
        }
    }

    pub(super) fn is_allowed_by(
        &self,
        rule: &Rule,
        command: &Command,
        workspace: &Workspace,
    ) -> bool {
        rule.allows(command, &self.bases, workspace)
    }

    /// Returns for each command whether a rule may cover it in regard to git: git must run nothing that a
    /// repository names, hooks included, in any folder, and no earlier git command may have changed the
    /// repository.
    pub(super) fn check_git_commands(&self, line: &Line, workspace: &Workspace) -> Vec<bool> {
        let mut left = git::GitChange::AsItWas;
        let commands = line.commands.iter().zip(&self.reads).zip(&self.started);
        let check =
            |((command, reads), started): ((&Command, &Option<read_only::Reads>), &Started)| {
                if !git::is_git(command) {
                    // Another program may start git in another folder and with other options.
                    return !matches!(started, Started::Command(it) if git::is_git(it));
                }
                let is_checked = match left {
                    git::GitChange::AsItWas => true,
                    git::GitChange::Index => git::is_index_commit(command),
                    git::GitChange::WorkTree => false,
                };
                if reads.is_none() && left != git::GitChange::WorkTree {
                    left = match git::leaves(command) {
                        git::GitChange::AsItWas => left,
                        other => other,
                    };
                }
                let run = match reads {
                    Some(_) => git::GitRun::Usual,
                    None => git::GitRun::Changing,
                };
                is_checked && git::runs_no_configured_program(command, &self.bases, workspace, run)
            };
        commands.map(check).collect()
    }

    pub(super) fn only_reads(&self, line: &Line) -> bool {
        !line.doubtful
            && !self.outside
            && !self.reads.is_empty()
            && self.reads.iter().all(Option::is_some)
    }
}

/// Maximum number of paths resolved for one line; lines that need more are doubtful.
pub(super) const MAX_LOOKUPS: usize = 20_000;

/// Returns the maximum number of paths to resolve for the line: each word in each folder that it may run in.
pub(super) fn lookups(line: &Line) -> usize {
    let words: usize = line.commands.iter().map(|command| command.args.len()).sum();
    let files = line.writes.len() + line.reads.len();
    // Each change of folder keeps the earlier folders and adds two for each.
    (0..line.folders.len()).fold(words + files, |lookups, _| lookups.saturating_mul(3))
}

/// Returns true if a path resolves to a place inside the roots.
pub(super) fn is_inside(path: &Path, workspace: &Workspace) -> bool {
    path.to_str()
        .is_some_and(|path| workspace.resolve(path).is_ok())
}

/// Returns every path that a known word of the command may name: the whole word, the text after each `=`,
/// `:` or `@`, and each word within quotes.
pub(super) fn named_paths(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for word in command.args.iter().filter_map(|arg| arg.literal()) {
        let tails = word.match_indices(['=', ':', '@']);
        let tails = tails.filter_map(|(at, _)| word.get(at + 1..));
        // Values attached to short options: `-Csecrets`, `-xfsecrets`.
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let short = short.unwrap_or_default();
        let values = short.char_indices().skip(1);
        let values = values.filter_map(|(at, _)| short.get(at..));
        // Words of a script: `r .env`, `.read .env`, `$(file <.env)`.
        let ends = |c: char| c.is_whitespace() || "'\"`<>,;(){}".contains(c);
        let inner = word.split(ends).filter(|part| *part != word);
        let parts = std::iter::once(word)
            .chain(tails)
            .chain(values)
            .chain(inner);
        for part in parts.filter(|part| !part.is_empty()) {
            let paths = bases.iter().map(|base| base.join(part));
            found.extend(paths.flat_map(|path| workspace.all_path_aliases(&path)));
        }
    }
    found
}
