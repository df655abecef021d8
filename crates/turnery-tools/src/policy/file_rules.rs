//! Finds command lines that may touch denied files without naming them: through a pattern, a variable, or a
//! folder above them.

use super::{
    Policy, Rule, bounded_walk,
    command_line::{CommandLine, SimpleCommand},
    command_line_access::CommandLineAccess,
    command_starters::{git_subcommand, hides_command},
    git, ignore_files,
    inner_commands::InnerCommands,
    named_paths::{named_paths, program_paths},
    program_name::{self, ProgramName},
    read_only::{self, ProgramSet, ReadAccess},
    read_only_scripts,
    rule::{EDIT_GROUP, READ_GROUP, RulePattern},
    shell_word::ShellWord,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

impl Policy {
    /// Returns true if a rule denies all reading, and the line reads files with a command that may only read.
    pub(super) fn is_all_reading_denied(
        &self,
        line: &CommandLine,
        found: &CommandLineAccess,
        workspace: &Workspace,
    ) -> bool {
        let denies = |rule: &Rule| rule.tool == READ_GROUP && rule.pattern.is_none();
        let mut commands = line.commands.iter().zip(&found.reads);
        self.deny_rules().iter().any(denies)
            && (!line.input_files.is_empty()
                || commands.any(|(command, reads)| match reads {
                    Some(reads) => {
                        reads.reads_unnamed_files || !reads.paths.is_empty() || git::is_git(command)
                    }
                    None => {
                        let table = ProgramSet::Confined;
                        read_only::read_access(command, &found.bases, workspace, table).is_some()
                    }
                }))
    }

    /// Returns true if the line may touch files that a deny rule protects, without naming them.
    pub(super) fn may_touch_denied_files(
        &self,
        line: &CommandLine,
        access: &CommandLineAccess,
        workspace: &Workspace,
    ) -> bool {
        let bases = &access.bases;
        let named = |command: &SimpleCommand| named_paths(command, bases, workspace);
        let is_about_files = |rule: &&Rule| {
            matches!(rule.pattern, Some(RulePattern::Files { .. }))
                && matches!(rule.tool.as_str(), READ_GROUP | EDIT_GROUP)
        };
        let rules: Vec<&Rule> = self.deny_rules().iter().filter(is_about_files).collect();
        if rules.is_empty() {
            return false;
        }
        let has_unclear_script = |command: &SimpleCommand| {
            let mut command = command.clone();
            // These only change where the output goes.
            command.args.retain(|arg| {
                !matches!(arg.known_text(), Some(word) if matches!(word, "-i" | "-s" | "--in-place" | "--separate"))
            });
            ProgramName::new(&command.name).is("sed")
                && read_only_scripts::sed_input_files(&command).is_none()
        };
        let is_unclear =
            |command: &SimpleCommand| has_unresolved_word(command) || has_unclear_script(command);
        let started = || access.inner_commands.iter().flat_map(|it| &it.commands);
        // A program of git's own folder has no subcommand, and its words may be anything.
        let is_part_of_git =
            |command: &SimpleCommand| program_name::base_name(&command.name).starts_with("git-");
        if line.commands.iter().chain(started()).any(is_part_of_git) {
            return true;
        }
        let mut started = started();
        if line.is_uncertain
            || line.commands.iter().any(is_unclear)
            || started
                .any(|it| has_unclear_script(it) || git::is_git(it) && has_unresolved_word(it))
        {
            return true;
        }
        let is_unknown = |command: &SimpleCommand| {
            let paths = [named(command), program_paths(command, bases, workspace)].concat();
            paths.iter().any(|path| !workspace.can_resolve(path))
        };
        let mut redirected = line.input_files.iter().chain(&line.output_files);
        let is_unknown_file = |file: &String| {
            let mut paths = bases.iter().map(|base| base.join(file));
            paths.any(|path| !workspace.can_resolve(&path))
        };
        if line.commands.iter().any(is_unknown) || redirected.any(is_unknown_file) {
            return true;
        }
        let commands = || {
            let judged = line.commands.iter().zip(&access.reads);
            judged.zip(&access.inner_commands)
        };
        // After another command of git, other files may be tracked, or shown.
        let adds = line.commands.len() > 1
            && commands().any(|((command, reads), started)| {
                let mut all = std::iter::once(command).chain(&started.commands);
                reads.is_none() && all.any(git::is_git)
            });
        let hides_any = rules.iter().any(|rule| rule.tool == READ_GROUP);
        let mut entry_budget = bounded_walk::MAX_ENTRIES;
        commands().any(|((command, reads), started)| {
            let with_started = || std::iter::once(command).chain(&started.commands);
            let is_opaque = || started.commands.iter().any(hides_command);
            if started.is_uncertain || is_opaque() && reads.is_none() {
                return true;
            }
            let shows_content = git::may_show_content(command)
                || started.commands.iter().any(git::may_show_content);
            // Git may show more than the currently tracked files.
            let looks_further = || {
                let mut all = with_started();
                hides_any
                    && (adds
                        || all.any(|it| git::may_track_more(it) || git::may_show_untracked(it)))
            };
            let may_show = || {
                let mut rules = rules.iter();
                rules.any(|rule| may_show_denied_file(rule, command, bases, workspace))
            };
            if shows_content && (looks_further() || may_show()) {
                return true;
            }
            let denies_reading = |path: &Path| {
                let mut rules = rules.iter().filter(|rule| rule.tool == READ_GROUP);
                rules.any(|rule| rule.denies_file(path, workspace.roots()))
            };
            let mut reads_paths = reads.iter().flat_map(|it| &it.paths);
            if reads_paths.any(|path| denies_reading(path))
                || with_started().any(|command| {
                    let settings = git::settings_files(command, bases);
                    settings.map_or(hides_any, |it| it.iter().any(|path| denies_reading(path)))
                        || hides_any && git::may_follow_link(command, bases)
                        || git::may_quote_linked_file(command, bases, &denies_reading)
                })
                || hides_any
                    && may_quote_ignore_files(
                        command,
                        started,
                        reads.as_ref(),
                        bases,
                        &denies_reading,
                    )
            {
                return true;
            }
            // Of files in a repository, git shows those that it tracks.
            let mut others = line.commands.iter().zip(&access.reads);
            let is_rest_read_only =
                others.all(|(other, reads)| reads.is_some() || std::ptr::eq(other, command));
            let is_usual = program_name::is_system_program(&command.name, bases, workspace);
            if is_usual && git::shows_only_tracked(command, bases, is_rest_read_only) {
                return false;
            }
            let mut folders = match reads {
                // The command lists names, or reads only the files that its words name.
                Some(reads) if !reads.reads_unnamed_files => return false,
                // The files may come from the previous command instead of its own words.
                Some(reads) => [named(command), reads.paths.clone()].concat(),
                None => named(command),
            };
            if is_usual && reads_no_folder(command) {
                folders.clear();
            }
            // What a read-only search reads is known.
            let is_elsewhere = reads.as_ref().is_some_and(|reads| !reads.paths.is_empty());
            if !is_elsewhere && searches_working_folder(command)
                || started.commands.iter().any(searches_working_folder)
            {
                folders.extend_from_slice(bases);
            }
            let git_commands = with_started().filter(|command| git::is_git(command));
            folders.extend(git_commands.flat_map(|command| git::pathspec_folders(command, bases)));
            folders.sort();
            folders.dedup();
            folders.iter().any(|folder| {
                rules.iter().any(|rule| {
                    let is_meant = rule.tool == READ_GROUP || reads.is_none();
                    is_meant && may_contain_denied_files(rule, folder, workspace, &mut entry_budget)
                })
            })
        })
    }
}

/// Returns true if `rg` may quote lines of an ignore file that is hidden, or that a link leads to.
fn may_quote_ignore_files(
    command: &SimpleCommand,
    started: &InnerCommands,
    reads: Option<&ReadAccess>,
    bases: &[PathBuf],
    is_hidden: &dyn Fn(&Path) -> bool,
) -> bool {
    let is_rg = |command: &SimpleCommand| ProgramName::new(&command.name).is("rg");
    if !is_rg(command) && !started.commands.iter().any(is_rg) {
        return false;
    }
    let searched = reads.map_or(&[][..], |reads| &reads.paths);
    let folders = if searched.is_empty() { bases } else { searched };
    ignore_files::may_read_other_ignore_files(folders, is_hidden)
}

/// Returns true if git, started in one of `bases`, may show a file that the rule protects from reading.
fn may_show_denied_file(
    rule: &Rule,
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> bool {
    let roots = workspace.roots();
    rule.tool == READ_GROUP && git::may_track(command, bases, &|path| rule.denies_file(path, roots))
}

/// Returns true if a word may name a file and is known only when the command runs.
fn has_unresolved_word(command: &SimpleCommand) -> bool {
    let takes_no_file = matches!(command.name.as_str(), "echo" | "exit" | "printf" | "return");
    let is_condition = matches!(command.name.as_str(), "[" | "[[" | "test");
    let is_git = git::is_git(command);
    // Git may resolve these to any file.
    let has_magic = |word: &str| {
        let starts = [":(", ":/", ":!", ":^"];
        starts.iter().any(|it| word.starts_with(it)) || word.starts_with(':') && is_git
    };
    let is_known = |word: &ShellWord| match word.known_text() {
        Some(word) => !has_magic(word),
        None => is_condition && *word == ShellWord::ExitCode,
    };
    let hides = hides_command(command) && git_subcommand(command).is_none();
    hides || !takes_no_file && !command.args.iter().all(is_known)
}

/// Returns true if the command fails to read a folder, so that a word such as `.` means something else.
fn reads_no_folder(command: &SimpleCommand) -> bool {
    let program = ProgramName::new(&command.name);
    let mut words = command.known_args();
    match program.is("jq") {
        // It loads modules from the folder after `-L`, and from those that a filter names.
        true => !words.any(|word| {
            let is_short = word.starts_with('-') && !word.starts_with("--");
            is_short && word.contains('L')
                || ["--l", "import", "include"]
                    .iter()
                    .any(|it| word.contains(it))
        }),
        // `egrep` and `fgrep` start whatever `grep` there is.
        false => program.is("grep") && !searches_working_folder(command),
    }
}

/// Returns true if the command searches its working directory when its words name no folder.
fn searches_working_folder(command: &SimpleCommand) -> bool {
    let program = ProgramName::new(&command.name);
    let is_recursive = || {
        let mut args = command.known_args();
        // `--recursive`, `--dereference-recursive` and `--directories` may be abbreviated.
        args.any(|arg| match arg.strip_prefix("--") {
            Some(long) => ["r", "de", "di"]
                .iter()
                .any(|start| long.starts_with(start)),
            None => arg.starts_with('-') && arg.contains(['d', 'r', 'R']),
        })
    };
    program.is_in(&["ack", "ag", "rg", "rgrep"])
        || program.is_in(&["egrep", "fgrep", "grep", "zgrep"]) && is_recursive()
}

/// Returns true if the rule denies existing files below the folder or, for a rule that denies changes, if its
/// pattern starts below the folder, whether such files exist or not.
fn may_contain_denied_files(
    rule: &Rule,
    folder: &Path,
    workspace: &Workspace,
    entry_budget: &mut usize,
) -> bool {
    let roots = workspace.roots();
    let starts = rule.literal_prefixes(roots);
    let is_part = |start: &PathBuf| !roots.contains(start) && start.starts_with(folder);
    if rule.tool == EDIT_GROUP && starts.iter().any(is_part) {
        return true;
    }
    folder.is_dir()
        && bounded_walk::may_contain(folder, entry_budget, &|path| rule.denies_file(path, roots))
}
