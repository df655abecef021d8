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
    /// Short options whose value is a lint.
    lints: &'static str,
    /// Short options with a number or nothing.
    counts: &'static str,
    /// Long options; with `=` at the end when they take a value, `=~` when that is text and no file, `=@` when it is a
    /// package, and `@` when they stand for packages without a value.
    long: &'static [&'static str],
    /// Other arguments.
    operands: Operands,
    /// How much of a work tree git goes through.
    reach: Reach,
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
    /// Names of tests, or parts of them.
    Tests,
    /// Files inside the roots that begin with `./` or `../`: other words are packages, which may lie anywhere.
    Relative,
    /// Names of remotes and branches, not of files.
    Names,
}

/// How much of a work tree git goes through. Its top must lie inside the roots where that is all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Named files, and those that git has been told of.
    Named,
    /// All of it with one of these short options, or a long one that ends with `@`.
    AllWith(&'static str),
    /// All of it where no operand is given.
    AllWithoutOperands,
    /// All of it.
    All,
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
        let inside = |text: &str| stays_inside(text, bases, workspace);
        let reaches_beyond = || match self.words.first() {
            Some(&"git") => holds_above(".git", bases, workspace, Which::Nearest),
            // Another root may be named (`--manifest-path`).
            _ => holds_above("Cargo.toml", workspace.roots(), workspace, Which::Any),
        };
        let is_package = |text: &str| inside(text) && !reaches_beyond();
        let is_all = match self.reach {
            Reach::Named => false,
            Reach::AllWith(letters) => args.iter().any(|arg| self.has_flag(arg, letters)),
            // Unless an operand is found.
            Reach::AllWithoutOperands | Reach::All => true,
        };
        let is_beyond = is_all && reaches_beyond();
        if is_beyond && self.reach != Reach::AllWithoutOperands {
            return false;
        }
        let is_operand = |text: &str| match self.operands {
            Operands::None => false,
            Operands::Inside => inside(text),
            Operands::Tests => is_test(text),
            Operands::Relative => is_relative(text) && inside(text),
            Operands::Names => is_ref_name(text) && bases.iter().all(|base| !exists(base, text)),
        };
        let mut args = args.iter().peekable();
        let mut is_elsewhere = false;
        let (mut has_operand, mut are_complete) = (false, false);
        while let Some(&arg) = args.next() {
            if arg == "--" {
                let rest: Vec<&str> = args.copied().collect();
                return match self.after {
                    After::Nothing => false,
                    After::Operands => {
                        (!is_beyond || !rest.is_empty())
                            && rest.iter().all(|operand| is_operand(operand))
                    }
                    After::Program(program) => program.covers(&rest, bases, workspace),
                };
            }
            let option = self.option(arg);
            let is_word = matches!(option, Match::Operand);
            // What comes behind packages and an option is given to the test.
            if self.operands == Operands::Relative && is_word && are_complete {
                return false;
            }
            are_complete |= has_operand && !is_word;
            has_operand |= is_word;
            let is_covered = match option {
                Match::Operand => is_operand(arg),
                Match::Unknown => false,
                Match::Flag => true,
                Match::Wide => !reaches_beyond(),
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
                        // Clippy takes a word between underscores for the end of an option.
                        Value::Lint => is_test(value) && !value.contains("__"),
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
        has_operand || !is_beyond
    }

    /// Finds one of `letters` among short options, before the first that has a value.
    fn has_flag(&self, arg: &str, letters: &str) -> bool {
        let short = arg.strip_prefix('-').unwrap_or_default();
        let mut flags = short.chars().take_while(|it| self.flags.contains(*it));
        flags.any(|flag| letters.contains(flag))
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
            (Some("@"), None) => Match::Wide,
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
                (self.lints, Value::Lint),
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
    /// An option that reaches all packages of a workspace, or all of a work tree.
    Wide,
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
    Lint,
    Folder,
}

/// Folders above others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The nearest one that holds a name.
    Nearest,
    /// Each of them.
    Any,
}

/// Looks for `name` in the folders outside the roots, above each of `bases`.
fn holds_above(name: &str, bases: &[PathBuf], workspace: &Workspace, which: Which) -> bool {
    let is_above = |base: &PathBuf| {
        let Ok(base) = workspace.resolve(&base.to_string_lossy()) else {
            return true;
        };
        let holds = |folder: &&Path| folder.join(name).symlink_metadata().is_ok();
        let mut holders = base.ancestors().filter(holds);
        let is_outside = |folder: &Path| !is_inside(folder, workspace);
        match which {
            Which::Nearest => holders.next().is_some_and(is_outside),
            Which::Any => holders.any(is_outside),
        }
    };
    bases.iter().any(is_above)
}

/// Recognises the words that are folders to go; others are import paths.
fn is_relative(word: &str) -> bool {
    word == "." || word.starts_with("./") || word.starts_with("../")
}

/// Names and the words between them, such as `slow and not net`: some programs evaluate more than that.
fn is_expression(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ')
}

/// Checks that every path that the word may name lies inside the roots, and that it stands for nothing else: `@file` is a
/// file of options, `:(top)` the whole repository, and pytest cuts off what begins with `[`. Where the system follows
/// links before `..`, some programs go by the text of the path.
fn stays_inside(word: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let resolves = |part: &str| {
        let mut paths = bases.iter().map(|base| base.join(part));
        paths.all(|path| is_inside(&path, workspace) && is_inside(&clean(&path), workspace))
    };
    !word.starts_with(['@', ':', '~'])
        && resolves(word)
        && word
            .split(['=', ',', ':', '['])
            .all(|part| !part.starts_with('@') && resolves(part))
}

/// Recognises names in a crate: of a test, or of a lint.
fn is_test(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-:".contains(c))
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
