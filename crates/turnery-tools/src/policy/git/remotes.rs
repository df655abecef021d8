//! Which commands talk to a remote, and to which one.

use crate::policy::line::Command;

/// Where a command pushes to, if it may push at all.
pub(super) enum Target {
    /// A branch's remote, or the usual one.
    Configured,
    /// A remote by its name. What is none is a path to git.
    Named(String),
    /// Not known.
    Unknown,
}

pub(super) fn pushes_to(command: &Command) -> Option<Target> {
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
pub(super) fn is_flag_of_push(word: &str) -> bool {
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
