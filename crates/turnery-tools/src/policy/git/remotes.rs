//! Determines which remotes a git command contacts.

use super::{
    config::PlainConfig,
    git_dir::{EntryKind, entry_kind},
};
use crate::policy::command_line::SimpleCommand;
use std::path::Path;

/// Subcommands of git that contact no remote.
const LOCAL_SUBCOMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "fsck",
    "gc",
    "grep",
    "init",
    "log",
    "ls-files",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "notes",
    "pickaxe",
    "range-diff",
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
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "version",
    "whatchanged",
    "worktree",
];

/// Subcommands of git that may contact a remote.
const REMOTE_SUBCOMMANDS: &[&str] = &[
    "archive",
    "clone",
    "fetch",
    "ls-remote",
    "pull",
    "push",
    "remote",
];

/// Returns true for subcommands whose effects are known. Others may be aliases, or start programs by themselves.
pub(super) fn is_known_subcommand(word: &str) -> bool {
    LOCAL_SUBCOMMANDS.contains(&word) || REMOTE_SUBCOMMANDS.contains(&word)
}

/// Remotes that a command may contact.
pub(super) enum RemoteAccess {
    /// No remote.
    None,
    /// The configured remotes, and possibly those named by these operands.
    Fetches(Vec<String>),
    /// The target of a push.
    Pushes(PushTarget),
}

impl RemoteAccess {
    pub(super) fn from_command(command: &SimpleCommand) -> Self {
        let first = command.args.first().and_then(|arg| arg.known_text());
        let is_local = first.is_some_and(|word| LOCAL_SUBCOMMANDS.contains(&word));
        if is_local && command.name == "git" {
            return Self::None;
        }
        match find_push_target(command) {
            Some(target) => Self::Pushes(target),
            None => {
                let words = command
                    .args
                    .iter()
                    .skip(1)
                    .filter_map(|arg| arg.known_text());
                // `git archive` takes the repository as the value of an option.
                let operand = |word: &str| match word.strip_prefix('-') {
                    Some(option) => Some(option.split_once('=')?.1.to_owned()),
                    None => Some(word.to_owned()),
                };
                Self::Fetches(words.filter_map(operand).collect())
            }
        }
    }

    /// Returns true if the command, which runs in `folder`, may contact a repository that it names by its path from
    /// there, or by the program that reads it.
    pub(super) fn names_local_path(&self, folder: &Path) -> bool {
        match self {
            Self::None | Self::Pushes(_) => false,
            Self::Fetches(names) => {
                let is_unsafe =
                    |name: &String| may_be_local_path(name, folder) || may_name_remote_helper(name);
                names.iter().any(is_unsafe)
            }
        }
    }

    /// Returns true if the command contacts no repository on this machine: a push would run the other
    /// repository's hooks, and a fetch could show files outside the session's folders. Git resolves a name
    /// that is not a remote as a path from the top of the work tree.
    pub(super) fn avoids_local_repositories(
        &self,
        work_tree: &Path,
        configs: &[&PlainConfig; 2],
    ) -> bool {
        let is_remote = |name: &str| configs[0].remotes.contains(name);
        let is_folder = |name: &str| !is_remote(name) && may_be_local_path(name, work_tree);
        let is_known = match self {
            Self::None => return true,
            Self::Fetches(names) if names.is_empty() => !is_folder("origin"),
            Self::Fetches(names) => !names.iter().any(|name| is_folder(name)),
            Self::Pushes(PushTarget::Configured) => is_remote("origin"),
            Self::Pushes(PushTarget::Named(name)) => is_remote(name),
            Self::Pushes(PushTarget::Unknown) => false,
        };
        let mut of_branches = configs.iter().flat_map(|config| &config.branch_remotes);
        // Git uses the name of a remote without a URL as a path.
        let mut sections = configs.iter().flat_map(|config| &config.remote_sections);
        is_known
            && sections.all(|name| is_remote(name))
            && of_branches.all(|name| name == "." || is_remote(name))
            && !configs.iter().any(|config| config.has_local_remotes)
    }
}

/// Returns true if git may take the name, which is no remote's, for a path of this machine, from `base`.
fn may_be_local_path(name: &str, base: &Path) -> bool {
    let exists = |name: &str| entry_kind(&base.join(name)) != EntryKind::Absent;
    name.starts_with(['/', '.', '~'])
        || name.starts_with("file:")
        || exists(name)
        || exists(&format!("{name}.git"))
}

/// Returns true if git may run a program that the address names, `git-remote-HELPER`.
fn may_name_remote_helper(name: &str) -> bool {
    let is_known = |scheme: &str| matches!(scheme, "git" | "http" | "https" | "ssh");
    name.contains("::")
        || name
            .split_once("://")
            .is_some_and(|(scheme, _)| !is_known(scheme))
}

/// Target of a push.
pub(super) enum PushTarget {
    /// The branch's remote, or the default one.
    Configured,
    /// A remote by name. Git uses a name that is not a remote as a path.
    Named(String),
    /// Unknown target.
    Unknown,
}

fn find_push_target(command: &SimpleCommand) -> Option<PushTarget> {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.known_text()).collect();
    // Anywhere else it may be the name of a branch.
    if !matches!(words.first(), Some(Some("push") | None)) {
        return None;
    }
    let mut operands = Vec::new();
    for word in &words {
        match word {
            Some(word) if is_push_flag(word) => {}
            Some(word) if !word.starts_with('-') => operands.push(*word),
            // The next word may be the option's value.
            Some(_) | None => return Some(PushTarget::Unknown),
        }
    }
    Some(match operands.as_slice() {
        ["push"] => PushTarget::Configured,
        ["push", name, ..] => PushTarget::Named((*name).to_owned()),
        _ => PushTarget::Unknown,
    })
}

/// Returns true for options of `git push` that have no value, or have it in the same word.
fn is_push_flag(word: &str) -> bool {
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

/// Returns true if the command may fetch into submodules. A fetch continues in the submodules of new commits,
/// even those not checked out, and their repositories below `.git/modules` may also name programs. Excluding
/// submodules counts only as the single option of the line: git uses the last one, and the word may be the
/// value of another option.
pub(super) fn may_fetch_submodules(command: &SimpleCommand) -> bool {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.known_text()).collect();
    match words.first() {
        Some(Some("add" | "commit" | "push" | "stash" | "tag")) if command.name == "git" => false,
        _ => !words
            .iter()
            .filter(|word| word.is_none_or(|word| word.starts_with('-')))
            .eq([&Some("--no-recurse-submodules")]),
    }
}
