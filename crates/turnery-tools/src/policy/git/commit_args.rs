//! Reads the arguments of `git commit`: its messages, the files that it names, and whether it commits just the index.

use super::program_name;
use crate::policy::{command_line::SimpleCommand, shell_word::ShellWord};

/// Long options of `git commit` whose value, if any, is in the same word, and that name no files.
const COMMIT_FLAGS: &[&str] = &[
    "all",
    "allow-empty",
    "allow-empty-message",
    "amend",
    "branch",
    "dry-run",
    "edit",
    "gpg-sign",
    "long",
    "no-edit",
    "no-gpg-sign",
    "no-post-rewrite",
    "no-signoff",
    "no-status",
    "no-verify",
    "null",
    "porcelain",
    "quiet",
    "reset-author",
    "short",
    "signoff",
    "status",
    "untracked-files",
    "verbose",
    "verify",
];

/// Long options of `git commit` whose value may be the next word.
const VALUED_COMMIT_OPTIONS: &[&str] = &[
    "author",
    "cleanup",
    "date",
    "file",
    "fixup",
    "message",
    "reedit-message",
    "reuse-message",
    "squash",
    "template",
];

/// Returns true for `git commit` with files to commit. Git reads those that the last commit names, through links on the
/// way to them and outside the work tree.
pub(super) fn commits_named_files(command: &SimpleCommand) -> bool {
    let mut args = command.args.iter().map(|arg| arg.known_text());
    if args.next() != Some(Some("commit")) {
        return false;
    }
    while let Some(arg) = args.next() {
        // A lone `-` is a file.
        let option = arg.filter(|arg| *arg != "-");
        let Some(option) = option.and_then(|arg| arg.strip_prefix('-')) else {
            return true;
        };
        match option.strip_prefix('-') {
            Some("") => return args.next().is_some(),
            Some(long) => match long.split_once('=') {
                Some((name, _)) if VALUED_COMMIT_OPTIONS.contains(&name) => {}
                Some((name, _)) if COMMIT_FLAGS.contains(&name) => {}
                None if VALUED_COMMIT_OPTIONS.contains(&long) => drop(args.next()),
                None if COMMIT_FLAGS.contains(&long) => {}
                // The option, or an abbreviation, may name files or take the next word as its value.
                Some(_) | None => return true,
            },
            None => {
                let valued = option.find(['C', 'F', 'c', 'm', 't', 'S', 'u']);
                let flags = option.get(..valued.unwrap_or(option.len()));
                if flags.is_none_or(|flags| flags.contains(['i', 'o'])) {
                    return true;
                }
                // `-S` and `-u` have their value in the same word, or none.
                let is_last = valued.is_some_and(|at| at + 1 == option.len());
                if is_last && !option.ends_with(['S', 'u']) {
                    args.next();
                }
            }
        }
    }
    false
}

/// Returns true for a `git commit` of the index that reads no other file. Without a message on the command
/// line, git reads files to describe the commit.
pub(crate) fn is_index_commit(command: &SimpleCommand) -> bool {
    let mut args = command.args.iter().map(|arg| arg.known_text());
    let is_git = program_name::base_name(&command.name) == "git";
    if !is_git || args.next() != Some(Some("commit")) {
        return false;
    }
    let mut has_message = false;
    while let Some(arg) = args.next() {
        has_message |= match arg {
            Some("-m" | "-qm" | "-sm" | "--message") if args.next().is_some() => true,
            Some("--no-edit") => true,
            Some("-q" | "-s" | "--amend" | "--quiet" | "--signoff") => false,
            Some(arg) if arg.starts_with("--message=") => true,
            Some(_) | None => return false,
        };
    }
    has_message
}

/// Returns the words of `git commit` but its messages, which may be about any file.
pub(crate) fn words_but_messages(args: &[ShellWord]) -> Vec<&str> {
    let (mut words, mut value, mut is_clear) = (Vec::new(), None, true);
    for arg in args {
        let word = arg.known_text().unwrap_or_default();
        match value.take() {
            Some(CommitValue::Message) if is_clear => continue,
            Some(CommitValue::Other) => {
                words.push(word);
                continue;
            }
            Some(CommitValue::Message) | None => {}
        }
        value = match word {
            "-C" | "-F" | "-c" | "-t" | "--author" | "--date" | "--file" => {
                Some(CommitValue::Other)
            }
            _ => takes_message(word).then_some(CommitValue::Message),
        };
        let is_attached = word.starts_with("--message=");
        let is_listed = value.is_some() || is_attached || FLAGS_BESIDE_MESSAGE.contains(&word);
        // Another option may take the next word as its value.
        is_clear &= !word.starts_with('-') || is_listed;
        if !(is_clear && is_attached) {
            words.push(word);
        }
    }
    words
}

/// Value of an option of `git commit`, in the next word.
enum CommitValue {
    Message,
    Other,
}

/// Options of `git commit` without a value that are usual beside a message.
const FLAGS_BESIDE_MESSAGE: &[&str] = &[
    "--all",
    "--allow-empty",
    "--amend",
    "--no-edit",
    "--no-verify",
    "--quiet",
    "--signoff",
    "-a",
    "-n",
    "-q",
    "-s",
    "-v",
];

/// Returns true for an option of `git commit` whose value is the next word, a message.
pub(super) fn takes_message(option: &str) -> bool {
    let letters = option.strip_prefix('-').and_then(|it| it.strip_suffix('m'));
    option == "--message"
        || letters.is_some_and(|letters| letters.chars().all(|c| "aenqsv".contains(c)))
}
