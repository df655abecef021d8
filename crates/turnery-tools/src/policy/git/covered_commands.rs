//! Decides which git commands a rule can allow: those that stay in the checked repository.

use super::{
    commit_args::{commits_named_files, takes_message},
    covered_options::has_harmless_options,
    git_dir::{EntryKind, entry_kind, has_git_name},
    has_word, program_name, remotes,
};
use crate::{
    policy::{
        command_line::SimpleCommand, command_starters::as_git_command, shell_word::ShellWord,
    },
    workspace::normalise_lexically,
};
use std::{fs, path::Path};

/// Returns true if every word of the command is known, except the message of a commit, and it works in, and opens
/// files of, no other folder than the checked repository. An unknown word may be any option.
pub(super) fn may_be_covered(command: &SimpleCommand) -> bool {
    if command.name != "git" {
        return true;
    }
    let mut args = command.args.iter();
    let subcommand = args.next().and_then(|arg| arg.known_text());
    let mut is_message = false;
    let are_known = args.all(|arg| {
        let is_one_word = matches!(arg, ShellWord::UnknownText | ShellWord::PublicText);
        let is_known = arg.known_text().is_some() || is_message && is_one_word;
        is_message = subcommand == Some("commit") && arg.known_text().is_some_and(takes_message);
        is_known
    });
    are_known
        && subcommand.is_some_and(remotes::is_known_subcommand)
        && !may_give_input_to_editor(command)
        && !works_in_other_folder(command)
        && !takes_template(command)
        && has_harmless_options(command)
        && !views_bisection(command)
        && !shows_submodules(command)
        && !writes_other_file_than_ref(command)
        && !commits_named_files(command)
}

/// Returns true if an editor that git starts may read the command's input, which a pipe or a file gives: editors run what
/// they are told there.
fn may_give_input_to_editor(command: &SimpleCommand) -> bool {
    let first = command.args.first().and_then(|arg| arg.known_text());
    let quiet = [
        "-3",
        "-k",
        "-q",
        "-s",
        "--3way",
        "--keep",
        "--quiet",
        "--signoff",
    ];
    let mut words = command.known_args();
    // `git apply` asks nothing, and `git am` only if an option says so.
    let reads_patch = first == Some("apply")
        || first == Some("am") && words.all(|word| !word.starts_with('-') || quiet.contains(&word));
    command.is_stdin_redirected && !reads_patch && !takes_message_from_input(command)
}

/// Returns true for `git commit -F -` with no option that starts an editor or asks about changes.
fn takes_message_from_input(command: &SimpleCommand) -> bool {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.known_text()).collect();
    let known = [
        "-a",
        "-q",
        "-s",
        "--all",
        "--no-verify",
        "--quiet",
        "--signoff",
    ];
    matches!(
        words.as_slice(),
        [Some("commit"), flags @ .., Some("-F" | "--file"), Some("-")]
            if flags.iter().flatten().all(|flag| known.contains(flag))
    )
}

/// Returns the command under the name `git`, however it is called: `/usr/bin/git x`, `git-x`.
pub(super) fn as_plain_git(command: &SimpleCommand) -> SimpleCommand {
    let mut git = as_git_command(command).unwrap_or_else(|| command.clone());
    git.name = program_name::base_name(&git.name).to_owned();
    git
}

/// Returns true for a new repository with settings, hooks or a git folder that the line chooses.
fn takes_template(command: &SimpleCommand) -> bool {
    let mut words = command.known_args();
    let is_setting = |word: &str| match word.strip_prefix("--") {
        Some(long) => ["c", "sep", "t"]
            .iter()
            .any(|start| long.starts_with(start)),
        None => word.starts_with('-') && word.contains('c'),
    };
    matches!(words.next(), Some("clone" | "init")) && words.any(is_setting)
}

/// Returns true for `git bisect view`, which runs any subcommand that follows.
fn views_bisection(command: &SimpleCommand) -> bool {
    has_word(command, "bisect") && (has_word(command, "view") || has_word(command, "visualize"))
}

/// Returns true for commands that work in a folder named by work tree records or by their own arguments,
/// which is not checked.
fn works_in_other_folder(command: &SimpleCommand) -> bool {
    let has = |word| has_word(command, word);
    let is_folder = |word: &str| word == "-" || !word.starts_with('-');
    let mut words = command.known_args();
    has("worktree") && ["add", "move", "remove", "repair"].into_iter().any(has)
        || words.next() == Some("init") && words.any(is_folder)
}

/// Returns true if `git mv` or `git clone`, run in `folder`, may place files behind a link or in a `.git` folder. They may
/// become hooks, and `git mv` runs one after the move.
pub(super) fn may_place_hooks(command: &SimpleCommand, folder: &Path) -> bool {
    let mut words = command.known_args();
    let leads_elsewhere = |word: &str| {
        normalise_lexically(&folder.join(word))
            .ancestors()
            .any(|part| has_git_name(part) || entry_kind(part) == EntryKind::Other)
    };
    match words.next() {
        Some("mv") => words.any(leads_elsewhere),
        Some("clone") => words.any(|word| {
            leads_elsewhere(word)
                || word.contains("..")
                || word.contains(|c: char| c.is_whitespace() || c.is_control())
                || derived_folder_names(word).any(leads_elsewhere)
        }),
        _ => false,
    }
}

/// Returns the names that `git clone` may give to the folder if only this address names it: the last part of the path or
/// the host, without an ending. Returns other parts of the address too.
fn derived_folder_names(address: &str) -> impl Iterator<Item = &str> {
    let parts = address
        .split(['/', ':', '@'])
        .filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let endings = ["", ".git", ".bundle"].into_iter();
        endings.filter_map(|ending| part.strip_suffix(ending))
    })
}

/// Returns true if `git symbolic-ref` or `git update-ref` may write another file than a ref: git takes any other name for a
/// path, and a symbolic ref may contain shell code.
fn writes_other_file_than_ref(command: &SimpleCommand) -> bool {
    let mut words = command.known_args();
    let name_count = match words.next() {
        Some("symbolic-ref") => 2,
        Some("update-ref") => 1,
        _ => return false,
    };
    let is_ref = |word: &str| {
        let parts = word.strip_prefix("refs/").map(|rest| rest.split('/'));
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        word == "HEAD" || parts.is_some_and(|mut parts| parts.all(is_plain))
    };
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-m" => drop(words.next()),
            "-d" | "-q" | "--create-reflog" | "--delete" | "--no-deref" | "--quiet" | "--short" => {
            }
            option if option.starts_with('-') => return true,
            name => names.push(name),
        }
    }
    !names.into_iter().take(name_count).all(is_ref)
}

/// Returns true if the command applies patches to the index and the work tree: git then follows links that the index does
/// not record, and runs a hook afterwards.
pub(super) fn applies_patches(command: &SimpleCommand) -> bool {
    let mut words = command.known_args();
    match words.next() {
        Some("am") => true,
        Some("apply") => words.any(|word| {
            let is_long = ["--3way", "--index", "--intent-to-add"].contains(&word);
            is_long || !word.starts_with("--") && word.starts_with('-') && word.contains(['3', 'N'])
        }),
        _ => false,
    }
}

/// Maximum size of a patch that is read to judge `git apply`. Unit: bytes.
const MAX_PATCH_BYTES: u64 = 4 << 20;

/// Returns true if `git apply`, run in `folder`, may copy files: a patch may name any file of the machine as the source.
/// With the index, git takes only what that contains. Right after the subcommand an option is no other one's value.
pub(super) fn may_copy_files(command: &SimpleCommand, folder: &Path) -> bool {
    let mut words = command.known_args();
    if words.next() != Some("apply") {
        return false;
    }
    let from_index = ["--index", "--cached", "--3way", "-3"];
    let first = words.clone().next();
    let is_negated = words.clone().any(|word| word.starts_with("--no-"));
    if first.is_some_and(|option| from_index.contains(&option)) && !is_negated {
        return false;
    }
    // Behind `--`, a word is a patch whatever it looks like.
    let mut behind = words.clone().skip_while(|word| *word != "--").skip(1);
    if behind.any(|word| word.starts_with('-')) {
        return true;
    }
    let is_copy = |line: &[u8]| line.starts_with(b"copy from ") || line.starts_with(b"copy to ");
    let may_copy = |word: &str| {
        let path = folder.join(word);
        let is_readable = entry_kind(&path) == EntryKind::File
            && fs::metadata(&path).is_ok_and(|found| found.len() <= MAX_PATCH_BYTES);
        let patch = is_readable.then(|| fs::read(&path).ok()).flatten();
        patch.is_none_or(|patch| patch.split(|byte| *byte == b'\n').any(is_copy))
    };
    let mut patches = words
        .filter(|word| *word == "-" || !word.starts_with('-'))
        .peekable();
    patches.peek().is_none() || patches.any(may_copy)
}

/// Returns true if the command may start git in submodules to show them. A commit may name any folder as one.
fn shows_submodules(command: &SimpleCommand) -> bool {
    let mut words = command.known_args();
    words.any(|word| word.starts_with("--sub") && word != "--submodule=short")
}
