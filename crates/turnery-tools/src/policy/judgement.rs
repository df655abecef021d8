//! Judges tool calls: decides from a session's rules and mode whether a call is allowed, denied or needs
//! approval.

use super::{
    CommandLineLimits, GitSettings, GuardedPaths, Mode, Rule,
    command_line::{CommandLine, SimpleCommand},
    command_line_access::{CommandLineAccess, MAX_LOOKUPS, count_lookups},
    command_line_limits::has_git_command,
    command_starters::{git_subcommand, hides_command},
    git, guarded_paths,
    hidden_files::denial_message,
    linked_dotfiles::LinkedDotfiles,
    read_only,
    rule::{EDIT_GROUP, READ_GROUP, RulePattern, SHELL_GROUP},
    rule_suggestion,
    shell_word::MatchCertainty,
};
use crate::{access::Access, workspace::Workspace};
use std::path::{Path, PathBuf};

/// Outcome of judging a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The call may run.
    Allow,
    /// The call is denied; the message is shown to the model and the user.
    Deny(String),
    /// The user must approve the call. `always` is the rule that "always allow" adds for the session, also
    /// shown on the button; `None` when no single rule can cover the call (the command was not understood).
    Ask {
        /// Rule that "always allow" adds.
        always: Option<Rule>,
    },
}

/// Rules in force for a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// How freely the agent may act.
    pub mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    own_paths: GuardedPaths,
    linked_dotfiles: Option<LinkedDotfiles>,
    is_confined: bool,
}

impl Policy {
    /// Creates a policy. Deny rules win over allow rules.
    #[must_use]
    pub fn new(mode: Mode, allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Self {
            mode,
            allow,
            deny,
            own_paths: GuardedPaths::default(),
            linked_dotfiles: LinkedDotfiles::from_env(),
            is_confined: false,
        }
    }

    /// Sets whether read-only commands run in the read-only sandbox; if so, more of them are allowed without
    /// approval.
    #[must_use]
    pub fn with_confined(self, confined: bool) -> Self {
        Self {
            is_confined: confined,
            ..self
        }
    }

    /// Requires approval in every mode before the given files, or anything below the given folders, are
    /// changed.
    #[must_use]
    pub fn with_guarded_paths(self, own_paths: GuardedPaths) -> Self {
        Self { own_paths, ..self }
    }

    /// Sets the user's home folder; files to which links among its dotfiles lead are guarded.
    #[cfg(test)]
    pub(super) fn with_home(self, home: PathBuf) -> Self {
        Self {
            linked_dotfiles: Some(LinkedDotfiles::new(home)),
            ..self
        }
    }

    /// Adds a rule for the rest of the session (PERM-6).
    pub fn add_allow_rule(&mut self, rule: Rule) {
        if !self.allow.contains(&rule) {
            self.allow.push(rule);
        }
    }

    /// Adds a rule for the rest of the session (PERM-6).
    pub fn add_deny_rule(&mut self, rule: Rule) {
        if !self.deny.contains(&rule) {
            self.deny.push(rule);
        }
    }

    /// Applies deny rules about files of `original` to the folder `copy` as well, in which a candidate works.
    #[must_use]
    pub fn for_copy_of(self, original: &Path, copy: &Path) -> Self {
        let deny = self.deny.into_iter();
        Self {
            deny: deny
                .map(|rule| rule.with_copied_folder(original, copy))
                .collect(),
            ..self
        }
    }

    /// Rules that allow calls.
    #[must_use]
    pub fn allow_rules(&self) -> &[Rule] {
        &self.allow
    }

    /// Rules that deny calls.
    #[must_use]
    pub fn deny_rules(&self) -> &[Rule] {
        &self.deny
    }

    /// Judges a call of `tool` that touches `access`. Relative patterns start at the working directory; a
    /// command line may run without approval only if everything it reads lies inside the roots.
    #[must_use]
    pub fn judge(&self, tool: &str, access: &Access, workspace: &Workspace) -> Judgement {
        match access {
            Access::Nothing => match self.deny.iter().find(|rule| rule.tool == tool) {
                Some(rule) => deny_by_rule(rule),
                None => Judgement::Allow,
            },
            Access::Read(paths) => match self.find_read_denial(tool, paths, workspace) {
                Some(rule) => deny_by_rule(rule),
                None => Judgement::Allow,
            },
            Access::Edit(paths) => self.judge_edit(tool, paths, workspace),
            Access::Run { command, cwd } => self.judge_run(tool, command, cwd, workspace),
            Access::RunOutside { command, cwd } => {
                self.judge_run_outside(tool, command, cwd, workspace)
            }
            Access::Server {
                all,
                is_read_only,
                is_destructive,
            } => self.judge_mcp_tool(tool, all, (*is_read_only, *is_destructive)),
        }
    }

    /// Judges like [`judge`](Self::judge), and also returns the limits that an allowed command line must run
    /// within.
    #[must_use]
    pub fn judge_with_limits(
        &self,
        tool: &str,
        access: &Access,
        workspace: &Workspace,
    ) -> (Judgement, CommandLineLimits) {
        let Access::Run { command, cwd } = access else {
            return (
                self.judge(tool, access, workspace),
                CommandLineLimits::default(),
            );
        };
        let (line, found) = self.analyse_line(command, cwd, workspace);
        let judgement = self.judge_line(tool, command, cwd, &line, &found, workspace);
        let limits = match judgement {
            Judgement::Allow => {
                // A rule that allows all commands applies to every repository, not only to checked ones.
                let is_about_all =
                    |rule: &Rule| rule.applies_to(tool, SHELL_GROUP) && rule.pattern.is_none();
                let is_free = self.mode == Mode::Auto || self.allow.iter().any(is_about_all);
                let settings = match is_free {
                    true if self.deny.iter().any(|rule| rule.tool == READ_GROUP) => {
                        GitSettings::Discreet
                    }
                    true => GitSettings::Unrestricted,
                    false => GitSettings::Careful,
                };
                CommandLineLimits::from_line(&line, &found, settings)
            }
            Judgement::Deny(_) | Judgement::Ask { .. } => CommandLineLimits::default(),
        };
        (judgement, limits)
    }

    /// Returns the judgement of a command that could not be analysed in time: approval, unless a rule denies
    /// all commands; denied in plan mode.
    #[must_use]
    pub fn judgement_on_timeout(&self, tool: &str) -> Judgement {
        let denies_all =
            |rule: &&Rule| rule.applies_to(tool, SHELL_GROUP) && rule.pattern.is_none();
        if let Some(rule) = self.deny.iter().find(denies_all) {
            return deny_by_rule(rule);
        }
        match self.mode {
            Mode::Plan => Judgement::Deny(
                "it could not be found out in time what this command does, and plan mode only runs what is known to only read: describe it instead"
                    .to_owned(),
            ),
            Mode::Ask | Mode::Edit | Mode::Auto => Judgement::Ask { always: None },
        }
    }

    fn judge_edit(&self, tool: &str, paths: &[PathBuf], workspace: &Workspace) -> Judgement {
        if let Some(rule) = self.find_edit_denial(tool, paths, workspace) {
            return deny_by_rule(rule);
        }
        match self.mode {
            Mode::Plan => Judgement::Deny(
                "plan mode only reads: describe the change instead, or ask for another mode"
                    .to_owned(),
            ),
            Mode::Ask | Mode::Edit | Mode::Auto if self.includes_own_path(paths) => {
                Judgement::Ask { always: None }
            }
            Mode::Auto => Judgement::Allow,
            Mode::Ask | Mode::Edit if paths.iter().any(|path| guarded_paths::is_guarded(path)) => {
                Judgement::Ask { always: None }
            }
            Mode::Ask if !self.is_edit_allowed(tool, paths, workspace) => Judgement::Ask {
                always: EDIT_GROUP.parse().ok(),
            },
            Mode::Ask | Mode::Edit if self.includes_linked_dotfile(paths) => {
                Judgement::Ask { always: None }
            }
            Mode::Ask | Mode::Edit => Judgement::Allow,
        }
    }

    fn judge_run(&self, tool: &str, command: &str, cwd: &Path, workspace: &Workspace) -> Judgement {
        let (line, found) = self.analyse_line(command, cwd, workspace);
        self.judge_line(tool, command, cwd, &line, &found, workspace)
    }

    /// Parses a command line and resolves the paths that it touches.
    fn analyse_line(
        &self,
        command: &str,
        cwd: &Path,
        workspace: &Workspace,
    ) -> (CommandLine, CommandLineAccess) {
        let about_files = |rule: &Rule| matches!(rule.pattern, Some(RulePattern::Files { .. }));
        let with_names = self.mode == Mode::Auto || self.deny.iter().any(about_files);
        let confined = || analyse_confined_line(command, cwd, workspace, with_names);
        self.is_confined
            .then(confined)
            .flatten()
            .unwrap_or_else(|| {
                let mut line = CommandLine::parse(command);
                line.is_uncertain |= count_lookups(&line) > MAX_LOOKUPS;
                let found = CommandLineAccess::new(
                    &line,
                    cwd,
                    workspace,
                    with_names,
                    read_only::ProgramSet::Everywhere,
                );
                (line, found)
            })
    }

    fn judge_line(
        &self,
        tool: &str,
        command: &str,
        cwd: &Path,
        line: &CommandLine,
        found: &CommandLineAccess,
        workspace: &Workspace,
    ) -> Judgement {
        if let Some(judgement) = self.judge_denied_run(tool, line, found, workspace) {
            return judgement;
        }
        let may_hide = |reads: &read_only::ReadAccess| self.may_hide(reads);
        let harmless =
            found.all_commands_only_read(line) && !found.reads.iter().flatten().any(may_hide);
        match self.mode {
            // This also covers paths hidden by a nested shell, a pattern or a variable.
            Mode::Auto
                if self.includes_own_path(&found.named_edit_paths)
                    || self.may_move_own_path(line, found, cwd)
                    || !harmless
                        && (guarded_paths::mentions_own_path(command, &self.own_paths)
                            || guarded_paths::may_match_own_path(
                                command,
                                &found.bases,
                                &self.own_paths,
                            )) =>
            {
                return Judgement::Ask { always: None };
            }
            Mode::Auto => return Judgement::Allow,
            Mode::Plan if harmless && line.output_files.is_empty() => return Judgement::Allow,
            Mode::Plan => {
                return Judgement::Deny(
                    "plan mode only runs commands that are known to only read inside the folders of this session: describe what you would run instead, or ask for another mode"
                        .to_owned(),
                );
            }
            Mode::Ask | Mode::Edit => {}
        }
        let about_run = |rule: &&Rule| rule.applies_to(tool, SHELL_GROUP);
        if self
            .allow
            .iter()
            .filter(about_run)
            .any(|rule| rule.pattern.is_none())
        {
            return Judgement::Allow;
        }
        // Git may replace a file with a link before or while another command reads it.
        let changes_files = line
            .commands
            .iter()
            .zip(&found.reads)
            .any(|(command, reads)| {
                let changes_work_tree =
                    || git::classify_change(command) == git::GitChange::WorkTree;
                reads.is_none() && git::is_git(command) && changes_work_tree()
            });
        if line.is_uncertain || found.leads_outside || changes_files && !line.input_files.is_empty()
        {
            return Judgement::Ask { always: None };
        }
        if !line.output_files.is_empty() {
            // A rule for a command does not cover the files that its output is redirected to. What is written
            // may be settings that a command of the same line reads, wherever the user's own settings lead.
            let reads_settings = || line.commands.iter().any(reads_settings);
            return match self.judge_edit(tool, &found.write_paths, workspace) {
                judgement if harmless && !reads_settings() => judgement,
                _ => Judgement::Ask { always: None },
            };
        }
        let is_hardened = found.all_commands_only_read(line);
        let safe_git = found.check_git_commands(line, workspace);
        let commands = line.commands.iter().zip(&found.reads).zip(&safe_git);
        let is_elsewhere = changes_files && found.bases.len() > 1;
        // The client looks up the shell of its terminals by name.
        let is_shell_known = workspace.terminals().is_none()
            || !read_only::is_project_program("", true, &found.bases, workspace);
        let may_be_covered = is_shell_known && !line.sets_variables;
        let mut open = commands.filter(|((command, reads), is_safe)| {
            let is_known = |reads: &read_only::ReadAccess| {
                let reads_files = reads.reads_unnamed_files || !reads.paths.is_empty();
                !(self.may_hide(reads) || is_elsewhere || changes_files && reads_files)
            };
            let harmless = reads.as_ref().is_some_and(is_known) && (is_hardened || **is_safe);
            let may_be_allowed = **is_safe && !is_elsewhere && may_be_covered;
            let allows = |rule: &Rule| {
                may_be_allowed && rule.allows_command(command, &found.bases, workspace)
            };
            !harmless && !self.allow.iter().filter(about_run).any(allows)
        });
        let Some(((first, _), is_safe)) = open.next() else {
            return match line.commands.is_empty() {
                true => Judgement::Ask { always: None },
                false => Judgement::Allow,
            };
        };
        let always = rule_suggestion::suggest_rule(first, &found.bases, workspace).filter(|rule| {
            *is_safe
                && may_be_covered
                && open.all(|((command, _), is_safe)| {
                    *is_safe && rule.allows_command(command, &found.bases, workspace)
                })
        });
        Judgement::Ask { always }
    }

    /// Judges a command that is to run outside the sandbox: the user is asked unless a deny rule or plan
    /// mode denies it, whatever the mode and the allow rules.
    fn judge_run_outside(
        &self,
        tool: &str,
        command: &str,
        cwd: &Path,
        workspace: &Workspace,
    ) -> Judgement {
        match (self.judge_run(tool, command, cwd, workspace), self.mode) {
            (Judgement::Deny(reason), _) => Judgement::Deny(reason),
            (Judgement::Allow | Judgement::Ask { .. }, Mode::Plan) => Judgement::Deny(
                "plan mode runs nothing outside the sandbox: leave outside_sandbox out, or ask for another mode"
                    .to_owned(),
            ),
            (Judgement::Allow | Judgement::Ask { .. }, Mode::Ask | Mode::Edit | Mode::Auto) => {
                Judgement::Ask { always: None }
            }
        }
    }

    /// Returns the denial of a command line, or a request for approval if a deny rule may match but this is
    /// not certain.
    fn judge_denied_run(
        &self,
        tool: &str,
        line: &CommandLine,
        found: &CommandLineAccess,
        workspace: &Workspace,
    ) -> Option<Judgement> {
        let mut unsure = self.is_all_reading_denied(line, found, workspace)
            || self.may_touch_denied_files(line, found, workspace);
        for rule in self
            .deny
            .iter()
            .filter(|rule| rule.applies_to(tool, SHELL_GROUP))
        {
            match rule.pattern {
                None => return Some(deny_by_rule(rule)),
                Some(RulePattern::Files { .. }) => continue,
                Some(RulePattern::Command { .. }) => {}
            }
            unsure |= line.is_uncertain;
            for (command, started) in line.commands.iter().zip(&found.inner_commands) {
                unsure |= started.is_uncertain;
                for command in std::iter::once(command).chain(&started.commands) {
                    match rule.denies_command(command) {
                        MatchCertainty::Yes => return Some(deny_by_rule(rule)),
                        MatchCertainty::Maybe => unsure = true,
                        MatchCertainty::No => {
                            unsure |= hides_command(command) && git_subcommand(command).is_none();
                        }
                    }
                }
                let mut with_names = started.with_names();
                unsure |= with_names.any(|it| rule.denies_command(&it) != MatchCertainty::No);
            }
        }
        let rule = self
            .find_edit_denial("", &found.write_paths, workspace)
            .or_else(|| self.find_named_path_denial(found, workspace));
        if let Some(rule) = rule {
            return Some(deny_by_rule(rule));
        }
        match self.mode {
            _ if !unsure => None,
            // Plan mode denies anything that does more than read, for that reason.
            Mode::Plan if !found.all_commands_only_read(line) => None,
            Mode::Plan => Some(Judgement::Deny(
                "a rule may deny what this command runs or reads, and plan mode asks nobody: name each program and file as they are, options after them"
                    .to_owned(),
            )),
            Mode::Ask | Mode::Edit | Mode::Auto => Some(Judgement::Ask { always: None }),
        }
    }

    /// Returns the rule that denies a file named by a word of a command.
    fn find_named_path_denial(
        &self,
        found: &CommandLineAccess,
        workspace: &Workspace,
    ) -> Option<&Rule> {
        self.deny.iter().find(|rule| {
            let paths = match rule.tool.as_str() {
                READ_GROUP => &found.named_read_paths,
                EDIT_GROUP => &found.named_edit_paths,
                _ => return false,
            };
            rule.pattern.is_some() && denies_any_path(rule, paths, workspace)
        })
    }

    /// Returns true if a rule may hide settings that a read-only command quotes.
    fn may_hide(&self, reads: &read_only::ReadAccess) -> bool {
        reads.may_quote_settings && self.deny.iter().any(|rule| rule.tool == READ_GROUP)
    }

    fn find_read_denial(
        &self,
        tool: &str,
        paths: &[PathBuf],
        workspace: &Workspace,
    ) -> Option<&Rule> {
        self.deny.iter().find(|rule| {
            rule.applies_to(tool, READ_GROUP) && denies_any_path(rule, paths, workspace)
        })
    }

    /// Returns the rule that denies changing one of the paths. A path that must not be read must not be
    /// changed either.
    fn find_edit_denial(
        &self,
        tool: &str,
        paths: &[PathBuf],
        workspace: &Workspace,
    ) -> Option<&Rule> {
        self.deny.iter().find(|rule| {
            let hidden = rule.tool == READ_GROUP && rule.pattern.is_some();
            (hidden || rule.applies_to(tool, EDIT_GROUP)) && denies_any_path(rule, paths, workspace)
        })
    }

    /// Returns true if a link among the user's dotfiles leads to one of the files.
    fn includes_linked_dotfile(&self, paths: &[PathBuf]) -> bool {
        let settings = self.linked_dotfiles.as_ref();
        settings.is_some_and(|settings| paths.iter().any(|path| settings.contains(path)))
    }

    fn includes_own_path(&self, paths: &[PathBuf]) -> bool {
        paths
            .iter()
            .any(|path| guarded_paths::is_own_path(path, &self.own_paths))
    }

    /// Returns true if a command moves, replaces or removes a folder that holds turnery's own files. Folders
    /// above `cwd` are left out, because everyday commands write there.
    fn may_move_own_path(&self, line: &CommandLine, found: &CommandLineAccess, cwd: &Path) -> bool {
        line.commands.iter().any(guarded_paths::may_move)
            && found.named_edit_paths.iter().any(|path| {
                !cwd.starts_with(path) && guarded_paths::contains_own_path(path, &self.own_paths)
            })
    }

    fn is_edit_allowed(&self, tool: &str, paths: &[PathBuf], workspace: &Workspace) -> bool {
        paths.iter().all(|path| {
            let mut rules = self
                .allow
                .iter()
                .filter(|rule| rule.applies_to(tool, EDIT_GROUP));
            rules.any(|rule| rule.allows_file(path, workspace.cwd()))
        })
    }
}

/// Programs without settings that name other programs, which no version manager selects.
const PROGRAMS_WITHOUT_SETTINGS: &[&str] = &[
    ":", "[", "[[", "basename", "cat", "cd", "cut", "date", "dirname", "echo", "false", "find",
    "grep", "head", "ls", "printf", "pwd", "sed", "sort", "tail", "test", "tr", "true", "uniq",
    "wc",
];

/// Returns true unless the program is one of the [`PROGRAMS_WITHOUT_SETTINGS`].
fn reads_settings(command: &SimpleCommand) -> bool {
    !PROGRAMS_WITHOUT_SETTINGS.contains(&command.name.as_str())
}

fn denies_any_path(rule: &Rule, paths: &[PathBuf], workspace: &Workspace) -> bool {
    paths
        .iter()
        .any(|path| rule.denies_file(path, workspace.roots()))
}

fn deny_by_rule(rule: &Rule) -> Judgement {
    Judgement::Deny(denial_message(rule))
}

/// Returns true if a command line must run in an environment in which git starts no program named by a
/// repository. Only read-only commands do: others may need the repository's hooks and filters.
pub(crate) fn needs_hardened_git(command: &str, cwd: &Path, workspace: &Workspace) -> bool {
    if let Some((line, _)) = analyse_confined_line(command, cwd, workspace, false) {
        return has_git_command(&line);
    }
    let line = CommandLine::parse(command);
    has_git_command(&line)
        && CommandLineAccess::new(
            &line,
            cwd,
            workspace,
            false,
            read_only::ProgramSet::Everywhere,
        )
        .all_commands_only_read(&line)
}

/// Returns true if the confined policy allows the command line as one that only reads.
#[must_use]
pub fn only_reads(command: &str, cwd: &Path, workspace: &Workspace) -> bool {
    let policy = Policy::default().with_confined(true);
    policy.judge_run(SHELL_GROUP, command, cwd, workspace) == Judgement::Allow
}

/// Analyses a command line as it runs in the read-only sandbox; `None` unless it certainly only reads,
/// because other lines run less confined.
fn analyse_confined_line(
    command: &str,
    cwd: &Path,
    workspace: &Workspace,
    with_names: bool,
) -> Option<(CommandLine, CommandLineAccess)> {
    let line = CommandLine::parse_confined(command, cwd, workspace);
    if line.is_uncertain || !line.output_files.is_empty() || count_lookups(&line) > MAX_LOOKUPS {
        return None;
    }
    let found = CommandLineAccess::new(
        &line,
        cwd,
        workspace,
        with_names,
        read_only::ProgramSet::Confined,
    );
    found.all_commands_only_read(&line).then_some((line, found))
}
