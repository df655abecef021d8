//! Command lines that may touch files which a rule denies without naming them: by a pattern, a variable, or a
//! folder above them.

use super::{
    Policy, Rule,
    carriers::base_name,
    git,
    line::{Command, Line},
    line_access::{LineAccess, named_paths},
    rule::{EDIT, Pattern, READ},
    walk,
    word::Word,
    xargs::Started,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

impl Policy {
    /// Finds out if a rule for files may be meant by a line that touches `found`.
    pub(super) fn may_touch_denied_files(
        &self,
        line: &Line,
        found: &LineAccess,
        workspace: &Workspace,
    ) -> bool {
        let bases = &found.bases;
        let named = |command: &Command| named_paths(command, bases, workspace);
        let is_about_files = |rule: &&Rule| {
            matches!(rule.pattern, Some(Pattern::Files { .. }))
                && matches!(rule.tool.as_str(), READ | EDIT)
        };
        let rules: Vec<&Rule> = self.denied().iter().filter(is_about_files).collect();
        if rules.is_empty() {
            return false;
        }
        if line.doubtful || line.commands.iter().any(is_unresolved) {
            return true;
        }
        let is_unknown = |command: &Command| {
            let paths = named(command);
            paths.iter().any(|path| !workspace.can_follow(path))
        };
        let mut redirected = line.reads.iter().chain(&line.writes);
        let is_unknown_file = |file: &String| {
            let mut paths = bases.iter().map(|base| base.join(file));
            paths.any(|path| !workspace.can_follow(&path))
        };
        if line.commands.iter().any(is_unknown) || redirected.any(is_unknown_file) {
            return true;
        }
        let adds = line.commands.iter().any(git::tracks_more);
        let hides_any = rules.iter().any(|rule| rule.tool == READ);
        let mut left = walk::MOST_ENTRIES;
        let commands = line.commands.iter().zip(&found.reads).zip(&found.started);
        commands.into_iter().any(|((command, reads), started)| {
            match started {
                Started::Unknown => return true,
                Started::Command(it) if it.opaque && reads.is_none() => return true,
                Started::Nothing | Started::Command(_) => {}
            }
            let shows_content =
                git::shows_content(command) || started.command().is_some_and(git::shows_content);
            // What is tracked now is not all that it may show.
            let looks_further = || hides_any && (adds || git::looks_further(command));
            let may_show = || {
                let mut rules = rules.iter();
                rules.any(|rule| may_show(rule, command, bases, workspace))
            };
            if shows_content && (looks_further() || may_show()) {
                return true;
            }
            let mut folders = match reads {
                // Lists names, or reads the files that its words name.
                Some(reads) if !reads.widely => return false,
                // What it reads may come from the command before it, not from its own words.
                Some(reads) => [named(command), reads.paths.clone()].concat(),
                None => named(command),
            };
            if searches_its_folder(command) || started.command().is_some_and(searches_its_folder) {
                folders.extend_from_slice(bases);
            }
            folders.sort();
            folders.dedup();
            folders.iter().any(|folder| {
                rules.iter().any(|rule| {
                    let is_meant = rule.tool == READ || reads.is_none();
                    is_meant && may_hold_denied_files(rule, folder, workspace, &mut left)
                })
            })
        })
    }
}

/// Whether git, started in one of `bases`, may show a file that the rule keeps from being read.
fn may_show(rule: &Rule, command: &Command, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let roots = workspace.roots();
    rule.tool == READ && git::may_track(command, bases, &|path| rule.denies_file(path, roots))
}

/// Finds a word that may name a file and is known only when the command runs.
fn is_unresolved(command: &Command) -> bool {
    let takes_no_file = matches!(command.name.as_str(), "echo" | "exit" | "printf" | "return");
    let is_condition = matches!(command.name.as_str(), "[" | "[[" | "test");
    // What git makes of these may be any file.
    let has_magic = |word: &str| {
        [":(", ":/", ":!", ":^"]
            .iter()
            .any(|it| word.starts_with(it))
    };
    let is_known = |word: &Word| match word.literal() {
        Some(word) => !has_magic(word),
        None => is_condition && *word == Word::Number,
    };
    !takes_no_file && (command.opaque || !command.args.iter().all(is_known))
}

/// Whether it searches the folder that it runs in when its words name none.
fn searches_its_folder(command: &Command) -> bool {
    match base_name(&command.name) {
        "ack" | "ag" | "rg" | "rgrep" => true,
        "egrep" | "fgrep" | "grep" | "zgrep" => {
            let mut args = command.args.iter().filter_map(|arg| arg.literal());
            // `--recursive`, `--dereference-recursive` and `--directories` may be shortened.
            args.any(|arg| match arg.strip_prefix("--") {
                Some(long) => ["r", "de", "di"]
                    .iter()
                    .any(|start| long.starts_with(start)),
                None => arg.starts_with('-') && arg.contains(['d', 'r', 'R']),
            })
        }
        _ => false,
    }
}

/// Whether the rule may deny files below the folder: it is about a part of that folder, whether there are such
/// files now or not, or there are some now.
fn may_hold_denied_files(
    rule: &Rule,
    folder: &Path,
    workspace: &Workspace,
    left: &mut usize,
) -> bool {
    let roots = workspace.roots();
    let starts = rule.starts(roots);
    let is_part = |start: &PathBuf| !roots.contains(start) && start.starts_with(folder);
    if rule.tool == EDIT && starts.iter().any(is_part) {
        return true;
    }
    folder.is_dir() && walk::may_contain(folder, left, &|path| rule.denies_file(path, roots))
}
