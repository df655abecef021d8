//! The programs that a rule with `:+` may stand for, each with the options and operands that it covers.
//!
//! "Always allow" offers such a rule. What a listed program runs anyway (the project's own build scripts and
//! tests) is what the person was asked about. Any other command is offered exactly as it is.

mod table;

use super::line_access::is_inside;
use crate::{Workspace, workspace::clean};
use std::path::{Path, PathBuf};
use table::ALL;

/// A program with the subcommand that it was called with.
pub(super) struct Offered {
    /// Its first words; `_` stands for one plain name.
    words: &'static [&'static str],
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value.
    valued: &'static str,
    /// The short option that changes to a folder first, of which there may be one.
    folder: Option<char>,
    /// Short options whose value is a package, which may lie wherever the workspace above says.
    packages: &'static str,
    /// Short options whose value is text and no file.
    texts: &'static str,
    /// Short options whose value is an expression of names.
    names: &'static str,
    /// Short options with a number or nothing.
    counts: &'static str,
    /// Long options; with `=` at the end when they take a value, `=~` when that is text and no file, `=@` when it is a
    /// package, and `@` when they stand for packages without a value.
    long: &'static [&'static str],
    /// The file by which the program finds where it runs: in the nearest folder with it, there or above.
    manifest: Option<&'static str>,
    /// Other arguments.
    operands: Operands,
    /// Arguments after `--`.
    after: After,
}

/// Arguments that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// There must be none.
    None,
    /// Files inside the roots, or words that are no files.
    Inside,
    /// Files inside the roots that begin with `.`: other words are packages, which may lie anywhere.
    Relative,
    /// Files inside the roots or words that are no files, of characters that mean nothing to a shell: older package managers put them into a line unquoted.
    Plain,
    /// Names of remotes and branches, not of files.
    Names,
}

/// Arguments after `--`.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    /// The same operands.
    Operands,
    /// Options and operands of another program.
    Program(&'static Offered),
}

/// Programs that start what follows in the project's own environment.
const STARTERS: &[&[&str]] = &[&["poetry", "run"], &["uv", "run"]];

/// What is known of a program that is called by exactly these words.
pub(super) fn find<S: AsRef<str>>(words: &[S]) -> Option<&'static Offered> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let words = after_starter(&words);
    let fits = |entry: &&Offered| {
        entry.words.len() == words.len()
            && entry
                .words
                .iter()
                .zip(words)
                .all(|(wanted, word)| match *wanted {
                    "_" => is_name(word),
                    "python" => matches!(*word, "python" | "python3"),
                    wanted => wanted == *word,
                })
    };
    // One that is named by all its words says more than one with a placeholder.
    let all = || ALL.iter().filter(fits);
    all()
        .find(|entry| !entry.words.contains(&"_"))
        .or_else(|| all().next())
}

/// The longest beginning of the words that something is known of.
pub(super) fn lead<'a, 'w>(words: &'a [&'w str]) -> Option<&'a [&'w str]> {
    (1..=words.len())
        .rev()
        .filter_map(|end| words.get(..end))
        .find(|lead| find(lead).is_some())
}

fn after_starter<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    let is_git = |words: &&[&str]| words.first().is_some_and(|word| *word == "git");
    STARTERS
        .iter()
        .find_map(|starter| words.strip_prefix(*starter))
        // What git would run there is judged by its own name.
        .filter(|words| !is_git(words))
        .unwrap_or(words)
}

/// A target or a script: no option, no assignment, no path.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-:.".contains(c))
}

impl Offered {
    /// Whether these further arguments are known to be covered, started in any of `bases`.
    pub(super) fn covers(&self, args: &[&str], bases: &[PathBuf], workspace: &Workspace) -> bool {
        let folders = match self.manifest {
            Some(name) => match nearest_with(name, bases, workspace) {
                Some(folders) => folders,
                None => return false,
            },
            None => bases.to_vec(),
        };
        let bases = folders.as_slice();
        let inside = |text: &str| stays_inside(text, bases, workspace);
        let is_package = |text: &str| inside(text) && !is_in_workspace_above(bases, workspace);
        let is_operand = |text: &str| match self.operands {
            Operands::None => false,
            Operands::Inside => inside(text),
            Operands::Relative => text.starts_with('.') && inside(text),
            Operands::Plain => is_plain(text) && inside(text),
            Operands::Names => is_ref_name(text) && bases.iter().all(|base| !exists(base, text)),
        };
        let mut args = args.iter().peekable();
        let mut is_elsewhere = false;
        while let Some(&arg) = args.next() {
            if arg == "--" {
                let rest: Vec<&str> = args.copied().collect();
                return match self.after {
                    After::Nothing => false,
                    After::Operands => rest.iter().all(|operand| is_operand(operand)),
                    After::Program(program) => program.covers(&rest, bases, workspace),
                };
            }
            let is_covered = match self.option(arg) {
                Match::Operand => is_operand(arg),
                Match::Unknown => false,
                Match::Flag => true,
                Match::Packages => !is_in_workspace_above(bases, workspace),
                Match::Count => {
                    args.next_if(|next| next.chars().all(|c| c.is_ascii_digit()));
                    true
                }
                Match::Value { value, kind } => {
                    // A value may be optional: then the next word is another option.
                    let value =
                        value.or_else(|| args.next_if(|next| !next.starts_with('-')).copied());
                    value.is_some_and(|value| match kind {
                        Value::Text => true,
                        Value::Names => is_expression(value),
                        Value::Inside => inside(value),
                        Value::Package => is_package(value),
                        // A second one starts from the first.
                        Value::Folder => {
                            !std::mem::replace(&mut is_elsewhere, true) && inside(value)
                        }
                    })
                }
            };
            if !is_covered {
                return false;
            }
        }
        true
    }

    fn option<'a>(&self, arg: &'a str) -> Match<'a> {
        let is_go = self.words.first() == Some(&"go");
        let Some(short) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return match arg {
                "-" => Match::Unknown,
                _ => Match::Operand,
            };
        };
        let long = match short.strip_prefix('-') {
            None if is_go => Some(short),
            long => long,
        };
        match long {
            Some(long) => self.long_option(long),
            None => self.short_options(short),
        }
    }

    fn long_option<'a>(&self, arg: &'a str) -> Match<'a> {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let known = self.long.iter().find_map(|known| {
            let kind = known.strip_prefix("--")?.strip_prefix(name)?;
            matches!(kind, "" | "@" | "=" | "=~" | "=@").then_some(kind)
        });
        match (known, value) {
            (Some(""), None) => Match::Flag,
            (Some("@"), None) => Match::Packages,
            (Some("=@"), value) => Match::Value {
                value,
                kind: Value::Package,
            },
            (Some("="), value) => Match::Value {
                value,
                kind: Value::Inside,
            },
            (Some("=~"), value) => Match::Value {
                value,
                kind: Value::Text,
            },
            _ => Match::Unknown,
        }
    }

    fn short_options<'a>(&self, letters: &'a str) -> Match<'a> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            if self.flags.contains(letter) {
                continue;
            }
            let value = Some(rest.as_str()).filter(|value| !value.is_empty());
            if self.counts.contains(letter) {
                return match value {
                    None => Match::Count,
                    Some(count) if count.chars().all(|c| c.is_ascii_digit()) => Match::Flag,
                    Some(_) => Match::Unknown,
                };
            }
            let kinds = [
                (self.texts, Value::Text),
                (self.names, Value::Names),
                (self.valued, Value::Inside),
                (self.packages, Value::Package),
            ];
            let kind = kinds.iter().find(|(letters, _)| letters.contains(letter));
            return match kind {
                Some((_, kind)) => Match::Value { value, kind: *kind },
                None if self.folder == Some(letter) => Match::Value {
                    value,
                    kind: Value::Folder,
                },
                None => Match::Unknown,
            };
        }
        Match::Flag
    }
}

/// What an argument is.
enum Match<'a> {
    Operand,
    Flag,
    /// An option that stands for packages of the workspace.
    Packages,
    /// An option that the next word belongs to if that is a number.
    Count,
    Value {
        /// In the same word; otherwise it is the next one.
        value: Option<&'a str>,
        kind: Value,
    },
    Unknown,
}

/// What the value of an option may be.
#[derive(Clone, Copy)]
enum Value {
    Text,
    Names,
    Inside,
    Package,
    Folder,
}

/// For each of `bases` the nearest folder with such a file; `None` where that lies outside the roots.
fn nearest_with(name: &str, bases: &[PathBuf], workspace: &Workspace) -> Option<Vec<PathBuf>> {
    let nearest = |base: &PathBuf| {
        let base = workspace.resolve(base.to_str()?).ok()?;
        let mut above = base.ancestors();
        let folder = above.find(|folder| folder.join(name).symlink_metadata().is_ok())?;
        is_inside(folder, workspace).then(|| folder.to_owned())
    };
    bases.iter().map(nearest).collect()
}

/// Whether a folder above the roots may hold a workspace of cargo, with packages of other names beside the session's.
fn is_in_workspace_above(bases: &[PathBuf], workspace: &Workspace) -> bool {
    bases.iter().any(|base| {
        let base = base.to_str().and_then(|base| workspace.resolve(base).ok());
        base.is_none_or(|base| {
            let mut above = base.ancestors().filter(|it| !is_inside(it, workspace));
            above.any(|folder| folder.join("Cargo.toml").symlink_metadata().is_ok())
        })
    })
}

/// Names and the words between them, such as `slow and not net`: some programs evaluate more than that.
fn is_expression(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ')
}

/// Whether every path that the word may name lies inside the roots, and it stands for nothing else: `@file` is a
/// file of options, `:(top)` the whole repository. Where the system follows links before `..`, some programs go by the text
/// of the path.
fn stays_inside(word: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let resolves = |part: &str| {
        let mut paths = bases.iter().map(|base| base.join(part));
        paths.all(|path| is_inside(&path, workspace) && is_inside(&clean(&path), workspace))
    };
    !word.starts_with(['@', ':', '~'])
        && resolves(word)
        && word
            .split(['=', ',', ':'])
            .all(|part| !part.starts_with('@') && resolves(part))
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c))
}

fn is_ref_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
}

/// Whether git may take the name for a repository in this folder: `x` stands for `x.git` too.
fn exists(base: &Path, name: &str) -> bool {
    let bare = format!("{name}.git");
    [name, bare.as_str()]
        .iter()
        .any(|name| base.join(name).symlink_metadata().is_ok())
}
