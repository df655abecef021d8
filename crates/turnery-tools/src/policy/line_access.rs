//! Line access: files and folders that a command line touches, as far as can be seen.

use super::{
    Rule, git, harmless,
    line::{Command, Line, bases},
    xargs::{self, Started},
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Files and folders that a command line touches, as far as can be seen.
pub(super) struct LineAccess {
    /// Folders that its commands may run in.
    pub(super) bases: Vec<PathBuf>,
    /// For each command, what it starts.
    pub(super) started: Vec<Started>,
    /// For each command, what it reads if it only reads.
    pub(super) reads: Vec<Option<harmless::Reads>>,
    /// Where redirections write, resolved.
    pub(super) writes: Vec<PathBuf>,
    /// A redirection or a change of folder leads outside the roots.
    pub(super) outside: bool,
    /// Paths that words name, for rules against reading.
    pub(super) named_to_read: Vec<PathBuf>,
    /// Paths that words of commands name which may change them.
    pub(super) named_to_edit: Vec<PathBuf>,
}

impl LineAccess {
    /// `with_names`: whether a rule asks which paths the words name.
    pub(super) fn new(
        line: &Line,
        cwd: &Path,
        workspace: &Workspace,
        with_names: bool,
        table: harmless::Table,
    ) -> Self {
        let bases = match lookups(line) > MOST_LOOKUPS {
            true => vec![cwd.to_owned()],
            false => bases(line, cwd, workspace),
        };
        let names = |texts: &[String]| -> Vec<PathBuf> {
            let paths = |base: &PathBuf| -> Vec<PathBuf> {
                texts.iter().map(|text| base.join(text)).collect()
            };
            let paths = bases.iter().flat_map(paths);
            paths.flat_map(|path| workspace.all_names(&path)).collect()
        };
        let reads: Vec<Option<harmless::Reads>> = line
            .commands
            .iter()
            .map(|command| harmless::reads(command, &bases, workspace, table))
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
            started: line.commands.iter().map(xargs::started).collect(),
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

    /// For each command, whether a rule may cover it although it is git: it must run nothing that a repository
    /// names, in whichever folder, hooks included, and no git before it may have changed what is there.
    pub(super) fn safe_git(&self, line: &Line, workspace: &Workspace) -> Vec<bool> {
        let mut left = git::Leaves::AsItWas;
        let commands = line.commands.iter().zip(&self.reads).zip(&self.started);
        let check =
            |((command, reads), started): ((&Command, &Option<harmless::Reads>), &Started)| {
                if !git::is_git(command) {
                    // Another program may start it elsewhere, and otherwise than it says.
                    return !matches!(started, Started::Command(it) if git::is_git(it));
                }
                let is_checked = match left {
                    git::Leaves::AsItWas => true,
                    git::Leaves::Index => git::commits_index(command),
                    git::Leaves::WorkTree => false,
                };
                if reads.is_none() && left != git::Leaves::WorkTree {
                    left = match git::leaves(command) {
                        git::Leaves::AsItWas => left,
                        other => other,
                    };
                }
                let run = match reads {
                    Some(_) => git::GitRun::Usual,
                    None => git::GitRun::Changing,
                };
                is_checked && git::runs_nothing(command, &self.bases, workspace, run)
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

/// Most paths that are looked up for one line; a line that takes more is doubtful.
pub(super) const MOST_LOOKUPS: usize = 20_000;

/// How many paths are looked up at most to judge the line: each word in each folder that it may run in.
pub(super) fn lookups(line: &Line) -> usize {
    let words: usize = line.commands.iter().map(|command| command.args.len()).sum();
    let files = line.writes.len() + line.reads.len();
    // Each change of folder leaves the folders before it and adds two for each.
    (0..line.folders.len()).fold(words + files, |lookups, _| lookups.saturating_mul(3))
}

/// Checks that a path leads into the roots.
pub(super) fn is_inside(path: &Path, workspace: &Workspace) -> bool {
    path.to_str()
        .is_some_and(|path| workspace.resolve(path).is_ok())
}

/// Every path that a certain word of the command may name: as a whole, and after each `=`, `:` or `@`.
pub(super) fn named_paths(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for word in command.args.iter().filter_map(|arg| arg.literal()) {
        let tails = word.match_indices(['=', ':', '@']);
        let tails = tails.filter_map(|(at, _)| word.get(at + 1..));
        // The value in the same word as short options: `-Csecrets`, `-xfsecrets`.
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let short = short.unwrap_or_default();
        let values = short.char_indices().skip(1);
        let values = values.filter_map(|(at, _)| short.get(at..));
        let parts = std::iter::once(word).chain(tails).chain(values);
        for part in parts.filter(|part| !part.is_empty()) {
            let paths = bases.iter().map(|base| base.join(part));
            found.extend(paths.flat_map(|path| workspace.all_names(&path)));
        }
    }
    found
}
