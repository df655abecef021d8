//! Judge: what a policy says of a call.

use super::{
    GitSettings, GuardedPaths, LineLimits, Mode, Rule, carriers, git, guarded, harmless,
    hidden::denial,
    line::{Command, Line},
    line_access::{LineAccess, MOST_LOOKUPS, lookups},
    line_limits::has_git,
    proposal,
    rule::{EDIT, Fit, Pattern, READ, SHELL},
    xargs::Started,
};
use crate::{Access, Workspace};
use std::path::{Path, PathBuf};

/// What a policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may run.
    Allow,
    /// It may not; the sentence is for the model and for people.
    Deny(String),
    /// Ask. `always` is the rule that "always allow" would add for the session, in words for the button too;
    /// `None` when no single rule can stand for it (the command was not understood).
    Ask {
        /// The rule that "always" would add.
        always: Option<Rule>,
    },
}

/// The rules in force for a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// How freely.
    pub mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    own: GuardedPaths,
    confined: bool,
}

impl Policy {
    /// A policy. A deny rule always wins.
    #[must_use]
    pub fn new(mode: Mode, allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Self {
            mode,
            allow,
            deny,
            own: GuardedPaths::default(),
            confined: false,
        }
    }

    /// The same policy, for commands that run in the read-only sandbox while they only read: more of them go
    /// unasked.
    #[must_use]
    pub fn confined(self, confined: bool) -> Self {
        Self { confined, ..self }
    }

    /// The same policy, which asks in every mode before these files, or what lies in these folders, are changed.
    #[must_use]
    pub fn guarding(self, own: GuardedPaths) -> Self {
        Self { own, ..self }
    }

    /// Remember for the session (PERM-6).
    pub fn allow(&mut self, rule: Rule) {
        if !self.allow.contains(&rule) {
            self.allow.push(rule);
        }
    }

    /// Remember for the session (PERM-6).
    pub fn deny(&mut self, rule: Rule) {
        if !self.deny.contains(&rule) {
            self.deny.push(rule);
        }
    }

    /// The rules that allow.
    #[must_use]
    pub fn allowed(&self) -> &[Rule] {
        &self.allow
    }

    /// The rules that deny.
    #[must_use]
    pub fn denied(&self) -> &[Rule] {
        &self.deny
    }

    /// Judge a call of `tool` that touches `access`. Relative patterns start at the working directory;
    /// what a command line reads must lie inside the roots to go unasked.
    #[must_use]
    pub fn judge(&self, tool: &str, access: &Access, workspace: &Workspace) -> Judgement {
        match access {
            Access::Nothing => match self.deny.iter().find(|rule| rule.tool == tool) {
                Some(rule) => denied_by(rule),
                None => Judgement::Allow,
            },
            Access::Read(paths) => match self.read_denied(tool, paths, workspace) {
                Some(rule) => denied_by(rule),
                None => Judgement::Allow,
            },
            Access::Edit(paths) => self.judge_edit(tool, paths, workspace),
            Access::Run { command, cwd } => self.judge_run(tool, command, cwd, workspace),
            Access::RunOutside { command, cwd } => {
                self.judge_run_outside(tool, command, cwd, workspace)
            }
            Access::Server {
                all,
                reads_only,
                destroys,
            } => self.judge_server(tool, all, (*reads_only, *destroys)),
        }
    }

    /// Judges like [`judge`](Self::judge); with the limits that an allowed command line runs within.
    #[must_use]
    pub fn judge_with_limits(
        &self,
        tool: &str,
        access: &Access,
        workspace: &Workspace,
    ) -> (Judgement, LineLimits) {
        let Access::Run { command, cwd } = access else {
            return (self.judge(tool, access, workspace), LineLimits::default());
        };
        let (line, found) = self.look_at(command, cwd, workspace);
        let judgement = self.judge_line(tool, command, cwd, &line, &found, workspace);
        let limits = match judgement {
            Judgement::Allow => {
                // A rule for all commands is about every repository.
                let is_about_all =
                    |rule: &Rule| rule.is_about(tool, SHELL) && rule.pattern.is_none();
                let is_free = self.mode == Mode::Auto || self.allow.iter().any(is_about_all);
                let settings = match is_free {
                    true if self.deny.iter().any(|rule| rule.tool == READ) => GitSettings::Discreet,
                    true => GitSettings::Own,
                    false => GitSettings::Careful,
                };
                LineLimits::of(&line, found.only_reads(&line), settings)
            }
            Judgement::Deny(_) | Judgement::Ask { .. } => LineLimits::default(),
        };
        (judgement, limits)
    }

    /// What holds for a command that could not be judged in time: it is asked about, unless a rule
    /// denies all commands, and not run in plan mode.
    #[must_use]
    pub fn unjudged(&self, tool: &str) -> Judgement {
        let denies_all = |rule: &&Rule| rule.is_about(tool, SHELL) && rule.pattern.is_none();
        if let Some(rule) = self.deny.iter().find(denies_all) {
            return denied_by(rule);
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
        if let Some(rule) = self.edit_denied(tool, paths, workspace) {
            return denied_by(rule);
        }
        match self.mode {
            Mode::Plan => Judgement::Deny(
                "plan mode only reads: describe the change instead, or ask for another mode"
                    .to_owned(),
            ),
            Mode::Ask | Mode::Edit | Mode::Auto if self.is_own(paths) => {
                Judgement::Ask { always: None }
            }
            Mode::Auto => Judgement::Allow,
            Mode::Ask | Mode::Edit if paths.iter().any(|path| guarded::is_guarded(path)) => {
                Judgement::Ask { always: None }
            }
            Mode::Edit => Judgement::Allow,
            Mode::Ask if self.edit_allowed(tool, paths, workspace) => Judgement::Allow,
            Mode::Ask => Judgement::Ask {
                always: EDIT.parse().ok(),
            },
        }
    }

    fn judge_run(&self, tool: &str, command: &str, cwd: &Path, workspace: &Workspace) -> Judgement {
        let (line, found) = self.look_at(command, cwd, workspace);
        self.judge_line(tool, command, cwd, &line, &found, workspace)
    }

    /// Parses a command line, and looks up what it touches.
    fn look_at(&self, command: &str, cwd: &Path, workspace: &Workspace) -> (Line, LineAccess) {
        let about_files = |rule: &Rule| matches!(rule.pattern, Some(Pattern::Files { .. }));
        let with_names = self.mode == Mode::Auto || self.deny.iter().any(about_files);
        let confined = || read_confined(command, cwd, workspace, with_names);
        self.confined.then(confined).flatten().unwrap_or_else(|| {
            let mut line = Line::parse(command);
            line.doubtful |= lookups(&line) > MOST_LOOKUPS;
            let found = LineAccess::new(
                &line,
                cwd,
                workspace,
                with_names,
                harmless::Table::Everywhere,
            );
            (line, found)
        })
    }

    fn judge_line(
        &self,
        tool: &str,
        command: &str,
        cwd: &Path,
        line: &Line,
        found: &LineAccess,
        workspace: &Workspace,
    ) -> Judgement {
        if let Some(judgement) = self.run_denied(tool, line, found, workspace) {
            return judgement;
        }
        let harmless = found.only_reads(line) && !self.hides_from(found);
        match self.mode {
            // Also where a shell of its own, a pattern or a variable hides the path.
            Mode::Auto
                if self.is_own(&found.named_to_edit)
                    || self.may_move_own(line, found, cwd)
                    || !harmless
                        && (guarded::mentions_own(command, &self.own)
                            || guarded::may_match_own(command, &found.bases, &self.own)) =>
            {
                return Judgement::Ask { always: None };
            }
            Mode::Auto => return Judgement::Allow,
            Mode::Plan if harmless && line.writes.is_empty() => return Judgement::Allow,
            Mode::Plan => {
                return Judgement::Deny(
                    "plan mode only runs commands that are known to only read inside the folders of this session: describe what you would run instead, or ask for another mode"
                        .to_owned(),
                );
            }
            Mode::Ask | Mode::Edit => {}
        }
        let about_run = |rule: &&Rule| rule.is_about(tool, SHELL);
        if self
            .allow
            .iter()
            .filter(about_run)
            .any(|rule| rule.pattern.is_none())
        {
            return Judgement::Allow;
        }
        // Git may put a link in the place of a file, before or while another command reads it.
        let changes_files = line
            .commands
            .iter()
            .zip(&found.reads)
            .any(|(command, reads)| {
                let leaves = || git::leaves(command) == git::Leaves::WorkTree;
                reads.is_none() && git::is_git(command) && leaves()
            });
        if line.doubtful || found.outside || changes_files && !line.reads.is_empty() {
            return Judgement::Ask { always: None };
        }
        if !line.writes.is_empty() {
            // A rule for a command says nothing about the files that its output goes to.
            return match self.judge_edit(tool, &found.writes, workspace) {
                judgement if harmless => judgement,
                _ => Judgement::Ask { always: None },
            };
        }
        let is_hardened = found.only_reads(line);
        let safe_git = found.safe_git(line, workspace);
        let commands = line.commands.iter().zip(&found.reads).zip(&safe_git);
        let is_elsewhere = changes_files && found.bases.len() > 1;
        let mut open = commands.filter(|((command, reads), is_safe)| {
            let is_known = |reads: &harmless::Reads| {
                let reads_files = reads.widely || !reads.paths.is_empty();
                !(self.hides(reads) || is_elsewhere || changes_files && reads_files)
            };
            let harmless = reads.as_ref().is_some_and(is_known) && (is_hardened || **is_safe);
            let may_be_allowed = **is_safe && !is_elsewhere;
            let allows =
                |rule: &Rule| may_be_allowed && found.is_allowed_by(rule, command, workspace);
            !harmless && !self.allow.iter().filter(about_run).any(allows)
        });
        let Some(((first, _), is_safe)) = open.next() else {
            return match line.commands.is_empty() {
                true => Judgement::Ask { always: None },
                false => Judgement::Allow,
            };
        };
        let always = proposal::for_command(first, &found.bases, workspace).filter(|rule| {
            *is_safe
                && open.all(|((command, _), is_safe)| {
                    *is_safe && found.is_allowed_by(rule, command, workspace)
                })
        });
        Judgement::Ask { always }
    }

    /// A command outside the sandbox is a question for the person in every mode that runs commands, and no
    /// rule answers it.
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

    /// The denial of a command line, or the question that a rule that denies makes of a line which
    /// may or may not be what it means.
    fn run_denied(
        &self,
        tool: &str,
        line: &Line,
        found: &LineAccess,
        workspace: &Workspace,
    ) -> Option<Judgement> {
        let mut unsure = self.may_touch_denied_files(line, found, workspace);
        for rule in self.deny.iter().filter(|rule| rule.is_about(tool, SHELL)) {
            if rule.pattern.is_none() {
                return Some(denied_by(rule));
            }
            if matches!(rule.pattern, Some(Pattern::Files { .. })) {
                continue;
            }
            unsure |= line.doubtful;
            for (command, started) in line.commands.iter().zip(&found.started) {
                unsure |= matches!(started, Started::Unknown);
                for command in std::iter::once(command).chain(started.command()) {
                    match rule.denies(command) {
                        Fit::Yes => return Some(denied_by(rule)),
                        Fit::Perhaps => unsure = true,
                        Fit::No => unsure |= command.opaque,
                    }
                }
            }
        }
        let rule = self
            .edit_denied("", &found.writes, workspace)
            .or_else(|| self.naming_denied(found, workspace));
        if let Some(rule) = rule {
            return Some(denied_by(rule));
        }
        match self.mode {
            _ if !unsure => None,
            // What does more than read is denied for that.
            Mode::Plan if !found.only_reads(line) => None,
            Mode::Plan => Some(Judgement::Deny(
                "a rule may deny what this command runs or reads, and plan mode asks nobody: name each program and file as they are, options after them"
                    .to_owned(),
            )),
            Mode::Ask | Mode::Edit | Mode::Auto => Some(Judgement::Ask { always: None }),
        }
    }

    /// The rule against a file that some word of a command names.
    fn naming_denied(&self, found: &LineAccess, workspace: &Workspace) -> Option<&Rule> {
        self.deny.iter().find(|rule| {
            let paths = match rule.tool.as_str() {
                READ => &found.named_to_read,
                EDIT => &found.named_to_edit,
                _ => return false,
            };
            rule.pattern.is_some() && denies_any(rule, paths, workspace)
        })
    }

    /// Whether a rule hides files that a command reads without naming them.
    fn hides(&self, reads: &harmless::Reads) -> bool {
        self.deny
            .iter()
            .any(|rule| rule.tool == READ && (reads.widely || rule.pattern.is_none()))
    }

    fn hides_from(&self, found: &LineAccess) -> bool {
        found.reads.iter().flatten().any(|reads| self.hides(reads))
    }

    fn read_denied(&self, tool: &str, paths: &[PathBuf], workspace: &Workspace) -> Option<&Rule> {
        self.deny
            .iter()
            .find(|rule| rule.is_about(tool, READ) && denies_any(rule, paths, workspace))
    }

    /// The rule against changing one of these: what may not be read may not be changed either.
    fn edit_denied(&self, tool: &str, paths: &[PathBuf], workspace: &Workspace) -> Option<&Rule> {
        self.deny.iter().find(|rule| {
            let hidden = rule.tool == READ && rule.pattern.is_some();
            (hidden || rule.is_about(tool, EDIT)) && denies_any(rule, paths, workspace)
        })
    }

    fn is_own(&self, paths: &[PathBuf]) -> bool {
        paths.iter().any(|path| guarded::is_own(path, &self.own))
    }

    /// Whether a command moves, replaces or removes a folder that turnery's own files lie in. Folders above `cwd` are
    /// left out: those are where everyday commands put things.
    fn may_move_own(&self, line: &Line, found: &LineAccess, cwd: &Path) -> bool {
        let moves = |command: &Command| {
            let program = carriers::base_name(&command.name);
            matches!(program, "cp" | "install" | "ln" | "mv" | "rm" | "rsync")
        };
        line.commands.iter().any(moves)
            && found
                .named_to_edit
                .iter()
                .any(|path| !cwd.starts_with(path) && guarded::holds_own(path, &self.own))
    }

    fn edit_allowed(&self, tool: &str, paths: &[PathBuf], workspace: &Workspace) -> bool {
        paths.iter().all(|path| {
            let mut rules = self.allow.iter().filter(|rule| rule.is_about(tool, EDIT));
            rules.any(|rule| rule.allows_file(path, workspace.cwd()))
        })
    }
}

fn denies_any(rule: &Rule, paths: &[PathBuf], workspace: &Workspace) -> bool {
    paths
        .iter()
        .any(|path| rule.denies_file(path, workspace.roots()))
}

fn denied_by(rule: &Rule) -> Judgement {
    Judgement::Deny(denial(rule))
}

/// Whether a command line runs in an environment in which git runs nothing that a repository names. It is right for
/// what only reads: other commands may have to run the repository's hooks and filters.
pub(crate) fn is_hardened(command: &str, cwd: &Path, workspace: &Workspace) -> bool {
    if let Some((line, _)) = read_confined(command, cwd, workspace, false) {
        return has_git(&line);
    }
    let line = Line::parse(command);
    has_git(&line)
        && LineAccess::new(&line, cwd, workspace, false, harmless::Table::Everywhere)
            .only_reads(&line)
}

/// Whether the confined policy allows the command line by itself, as one that only reads.
#[must_use]
pub fn only_reads(command: &str, cwd: &Path, workspace: &Workspace) -> bool {
    let policy = Policy::default().confined(true);
    policy.judge_run(SHELL, command, cwd, workspace) == Judgement::Allow
}

/// A line that only reads as the confined policy understands it. What is allowed by a rule or a person, and so runs
/// less confined, is never read in this way.
fn read_confined(
    command: &str,
    cwd: &Path,
    workspace: &Workspace,
    with_names: bool,
) -> Option<(Line, LineAccess)> {
    let line = Line::parse_confined(command, cwd, workspace);
    if line.doubtful || !line.writes.is_empty() || lookups(&line) > MOST_LOOKUPS {
        return None;
    }
    let found = LineAccess::new(&line, cwd, workspace, with_names, harmless::Table::Confined);
    found.only_reads(&line).then_some((line, found))
}
