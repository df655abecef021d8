//! Which commands talk to a remote, and to which one.

use super::{
    config::PlainConfig,
    git_dir::{EntryKind, kind},
};
use crate::policy::line::Command;
use std::path::Path;

/// Subcommands of git that talk to no remote.
const SILENT: &[&str] = &[
    "add",
    "am",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "config",
    "describe",
    "diff",
    "grep",
    "init",
    "log",
    "ls-files",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "rebase",
    "reflog",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
    "worktree",
];

/// Which remotes a command may talk to.
pub(super) enum Talk {
    /// None.
    Silent,
    /// Those that are configured, and perhaps those of its operands.
    Fetches(Vec<String>),
    /// It pushes.
    Pushes(Target),
}

impl Talk {
    pub(super) fn of(command: &Command) -> Self {
        if let Some(target) = pushes_to(command) {
            return Self::Pushes(target);
        }
        let mut words = command.args.iter().filter_map(|arg| arg.literal());
        match words.next() {
            Some(word) if command.name == "git" && SILENT.contains(&word) => Self::Silent,
            _ => {
                let operands = words.filter(|word| !word.starts_with('-'));
                Self::Fetches(operands.map(str::to_owned).collect())
            }
        }
    }

    /// Whether no repository on this machine is meant: its hooks would run for a push, and a fetch could show what
    /// lies outside the session's folders. To git, what is no remote is a path from the top of the work tree.
    pub(super) fn keeps_off_this_machine(
        &self,
        work_tree: &Path,
        configs: &[&PlainConfig; 2],
    ) -> bool {
        let is_remote = |name: &str| configs[0].remotes.contains(name);
        let is_folder = |name: &str| {
            let is_path = name.starts_with(['/', '.', '~']) || name.starts_with("file:");
            let exists = |name: &str| kind(&work_tree.join(name)) != EntryKind::Absent;
            !is_remote(name) && (is_path || exists(name) || exists(&format!("{name}.git")))
        };
        let is_known = match self {
            Self::Silent => return true,
            Self::Fetches(names) if names.is_empty() => !is_folder("origin"),
            Self::Fetches(names) => !names.iter().any(|name| is_folder(name)),
            Self::Pushes(Target::Configured) => is_remote("origin"),
            Self::Pushes(Target::Named(name)) => is_remote(name),
            Self::Pushes(Target::Unknown) => false,
        };
        let mut of_branches = configs.iter().flat_map(|config| &config.branch_remotes);
        // One without a URL is a path by its name.
        let mut sections = configs.iter().flat_map(|config| &config.remote_sections);
        is_known
            && sections.all(|name| is_remote(name))
            && of_branches.all(|name| name == "." || is_remote(name))
            && !configs.iter().any(|config| config.has_local_remotes)
    }
}

/// Where a command pushes to, if it may push at all.
pub(super) enum Target {
    /// A branch's remote, or the usual one.
    Configured,
    /// A remote by its name. What is none is a path to git.
    Named(String),
    /// Not known.
    Unknown,
}

fn pushes_to(command: &Command) -> Option<Target> {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.literal()).collect();
    if words.first() == Some(&Some("stash")) {
        return None;
    }
    let at = words
        .iter()
        .position(|word| word.is_none_or(|word| word == "push"))?;
    let mut operands = Vec::new();
    for word in words.iter().skip(at) {
        match word {
            Some(word) if is_flag_of_push(word) => {}
            Some(word) if !word.starts_with('-') => operands.push(*word),
            // The next word may be its value.
            Some(_) | None => return Some(Target::Unknown),
        }
    }
    Some(match operands.as_slice() {
        ["push"] => Target::Configured,
        ["push", name, ..] => Target::Named((*name).to_owned()),
        _ => Target::Unknown,
    })
}

/// Options of `git push` that take no value, or have it in the same word.
fn is_flag_of_push(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    matches!(
        name,
        "--" | "-4"
            | "-6"
            | "-d"
            | "-f"
            | "-n"
            | "-q"
            | "-u"
            | "-v"
            | "--all"
            | "--atomic"
            | "--branches"
            | "--delete"
            | "--dry-run"
            | "--follow-tags"
            | "--force"
            | "--force-if-includes"
            | "--force-with-lease"
            | "--no-verify"
            | "--porcelain"
            | "--progress"
            | "--prune"
            | "--quiet"
            | "--set-upstream"
            | "--tags"
            | "--verbose"
    )
}

/// Whether the command may fetch. A fetch goes on in the submodules of new commits, also in those that are not
/// checked out: what is kept of them below `.git/modules` may name programs too. That submodules are left out counts
/// only as the one option of the line: git goes by the last one, and the word may be the value of another.
pub(super) fn may_fetch(command: &Command) -> bool {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.literal()).collect();
    match words.first() {
        Some(Some("add" | "commit" | "push" | "stash" | "tag")) if command.name == "git" => false,
        _ => !words
            .iter()
            .filter(|word| word.is_none_or(|word| word.starts_with('-')))
            .eq([&Some("--no-recurse-submodules")]),
    }
}
