//! Finds command lines that may touch denied files without naming them: through a pattern, a variable, or a
//! folder above them.

use super::{
    Policy, Rule, bounded_walk,
    command_line::{Command, Line},
    command_line_access::{CommandLineAccess, named_paths},
    command_wrappers::base_name,
    git,
    inner_commands::Started,
    read_only_scripts,
    rule::{EDIT_GROUP, Pattern, READ_GROUP},
    shell_word::Word,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

impl Policy {
    /// Returns true if a rule for files may apply to the line whose accesses are `found`.
    pub(super) fn may_touch_denied_files(
        &self,
        line: &Line,
        found: &CommandLineAccess,
        workspace: &Workspace,
    ) -> bool {
        let bases = &found.bases;
        let named = |command: &Command| named_paths(command, bases, workspace);
        let is_about_files = |rule: &&Rule| {
            matches!(rule.pattern, Some(Pattern::Files { .. }))
                && matches!(rule.tool.as_str(), READ_GROUP | EDIT_GROUP)
        };
        let rules: Vec<&Rule> = self.deny_rules().iter().filter(is_about_files).collect();
        if rules.is_empty() {
            return false;
        }
        let has_unclear_script = |command: &Command| {
            let mut command = command.clone();
            // These only change where the output goes.
            command.args.retain(|arg| {
                !matches!(arg.literal(), Some(word) if matches!(word, "-i" | "-s" | "--in-place" | "--separate"))
            });
            base_name(&command.name) == "sed"
                && read_only_scripts::sed_input_files(&command).is_none()
        };
        let is_unclear =
            |command: &Command| has_unresolved_word(command) || has_unclear_script(command);
        if line.doubtful || line.commands.iter().any(is_unclear) {
            return true;
        }
        let is_unknown = |command: &Command| {
            let paths = named(command);
            paths.iter().any(|path| !workspace.can_resolve(path))
        };
        let mut redirected = line.reads.iter().chain(&line.writes);
        let is_unknown_file = |file: &String| {
            let mut paths = bases.iter().map(|base| base.join(file));
            paths.any(|path| !workspace.can_resolve(&path))
        };
        if line.commands.iter().any(is_unknown) || redirected.any(is_unknown_file) {
            return true;
        }
        let adds = line.commands.iter().any(git::may_track_more);
        let hides_any = rules.iter().any(|rule| rule.tool == READ_GROUP);
        let mut left = bounded_walk::MAX_ENTRIES;
        let commands = line.commands.iter().zip(&found.reads).zip(&found.started);
        commands.into_iter().any(|((command, reads), started)| {
            match started {
                Started::Unknown => return true,
                Started::Command(it) if it.opaque && reads.is_none() => return true,
                Started::Nothing | Started::Command(_) => {}
            }
            let shows_content = git::may_show_content(command)
                || started.command().is_some_and(git::may_show_content);
            // Git may show more than the currently tracked files.
            let looks_further = || hides_any && (adds || git::may_show_untracked(command));
            let may_show = || {
                let mut rules = rules.iter();
                rules.any(|rule| may_show(rule, command, bases, workspace))
            };
            if shows_content && (looks_further() || may_show()) {
                return true;
            }
            let mut folders = match reads {
                // The command lists names, or reads only the files that its words name.
                Some(reads) if !reads.widely => return false,
                // The files may come from the previous command instead of its own words.
                Some(reads) => [named(command), reads.paths.clone()].concat(),
                None => named(command),
            };
            if searches_working_folder(command)
                || started.command().is_some_and(searches_working_folder)
            {
                folders.extend_from_slice(bases);
            }
            folders.sort();
            folders.dedup();
            folders.iter().any(|folder| {
                rules.iter().any(|rule| {
                    let is_meant = rule.tool == READ_GROUP || reads.is_none();
                    is_meant && may_contain_denied_files(rule, folder, workspace, &mut left)
                })
            })
        })
    }
}

/// Returns true if git, started in one of `bases`, may show a file that the rule protects from reading.
fn may_show(rule: &Rule, command: &Command, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let roots = workspace.roots();
    rule.tool == READ_GROUP && git::may_track(command, bases, &|path| rule.denies_file(path, roots))
}

/// Returns true if a word may name a file and is known only when the command runs.
fn has_unresolved_word(command: &Command) -> bool {
    let takes_no_file = matches!(command.name.as_str(), "echo" | "exit" | "printf" | "return");
    let is_condition = matches!(command.name.as_str(), "[" | "[[" | "test");
    // Git may resolve these to any file.
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

/// Returns true if the command searches its working directory when its words name no folder.
fn searches_working_folder(command: &Command) -> bool {
    match base_name(&command.name) {
        "ack" | "ag" | "rg" | "rgrep" => true,
        "egrep" | "fgrep" | "grep" | "zgrep" => {
            let mut args = command.args.iter().filter_map(|arg| arg.literal());
            // `--recursive`, `--dereference-recursive` and `--directories` may be abbreviated.
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

/// Returns true if the rule may deny files below the folder: either its pattern starts below the folder,
/// whether such files exist or not, or such files exist now.
fn may_contain_denied_files(
    rule: &Rule,
    folder: &Path,
    workspace: &Workspace,
    left: &mut usize,
) -> bool {
    let roots = workspace.roots();
    let starts = rule.starts(roots);
    let is_part = |start: &PathBuf| !roots.contains(start) && start.starts_with(folder);
    if rule.tool == EDIT_GROUP && starts.iter().any(is_part) {
        return true;
    }
    folder.is_dir()
        && bounded_walk::may_contain(folder, left, &|path| rule.denies_file(path, roots))
}
