//! Programs that a rule with `:+` covers, with the options and operands that it covers.
//!
//! "Always allow" offers such a rule. A listed program runs the project's own build scripts and tests; that is what the
//! user was asked about. Any other command is offered exactly as it is.
//!
//! The grammar is closed on purpose: an option is one whole word of a list, its value is a number or a name, and an
//! operand is a name or a plain relative path. Nothing is abbreviated or bundled, and no value is a path.

mod table;

use super::{harmless::exists, line_access::is_inside};
use crate::Workspace;
use std::path::PathBuf;
use table::ALL;

/// A program with the subcommand that it was called with.
pub(super) struct Offered {
    /// First words of the command; `_` stands for one name.
    words: &'static [&'static str],
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options without a value that hold the program back. They are covered, but a command that has one is offered
    /// exactly: without the option it would do more.
    restraints: &'static [&'static str],
    /// Options with a value, in the next word or after `=`.
    values: &'static [(&'static str, Value)],
    /// Options that reach every package of a workspace.
    workspace_flags: &'static [&'static str],
    operands: Operands,
    /// Option that must be there.
    required: Option<&'static str>,
    /// Arguments after `--`; `None` if `--` is not covered.
    trailing: Option<&'static Offered>,
}

/// Form of the value of an option.
#[derive(Clone, Copy)]
enum Value {
    Number,
    /// One name, or several with commas between them.
    Names,
    /// Names and the words between them, such as `slow and not net`.
    Expression,
    /// A lint of rustc or clippy.
    Lint,
    /// A package of a Cargo workspace.
    Package,
    /// Text that the program stores and does not interpret. It does not begin with `-`.
    Text,
}

/// Form of the arguments that are no options.
#[derive(Clone, Copy)]
enum Operands {
    None,
    /// Names of tests, or parts of them.
    Tests,
    /// Files and folders inside the roots, of which there must be one.
    Files,
    /// Python files inside the roots, with or without the name of a test: `tests/x.py::test_y`.
    TestFiles,
    /// Folders inside the roots that begin with `./`, with or without `/...`: other words are import paths. Those that
    /// `./...` passes over are left out.
    GoPackages,
}

/// Finds the entry of a program that is called by exactly these words.
pub(super) fn find<S: AsRef<str>>(words: &[S]) -> Option<&'static Offered> {
    let fits = |entry: &&Offered| {
        let mut pairs = entry.words.iter().zip(words);
        entry.words.len() == words.len()
            && pairs.all(|(wanted, word)| match *wanted {
                "_" => is_name(word.as_ref()),
                wanted => wanted == word.as_ref(),
            })
    };
    ALL.iter().find(fits)
}

/// Finds the longest beginning of the words that has an entry; `None` where an option holds the program back.
pub(super) fn lead<'a, 'w>(words: &'a [&'w str]) -> Option<&'a [&'w str]> {
    let (lead, entry) = (1..=words.len())
        .rev()
        .filter_map(|end| words.get(..end))
        .find_map(|lead| Some((lead, find(lead)?)))?;
    let is_held_back = words.iter().any(|word| entry.restrains(word));
    (!is_held_back).then_some(lead)
}

impl Offered {
    /// Checks that these further arguments are covered, started in any of `bases`.
    pub(super) fn covers(&self, args: &[&str], bases: &[PathBuf], workspace: &Workspace) -> bool {
        let has_option = |name: &str| {
            let mut names = args
                .iter()
                .map(|arg| arg.split_once('=').map_or(*arg, |it| it.0));
            names.any(|it| it == name)
        };
        if self.required.is_some_and(|name| !has_option(name)) {
            return false;
        }
        let mut args = args.iter().copied();
        let mut operand_count = 0;
        let mut are_operands_complete = false;
        while let Some(arg) = args.next() {
            if arg == "--" {
                let rest: Vec<&str> = args.collect();
                return self
                    .trailing
                    .is_some_and(|trailing| trailing.covers(&rest, bases, workspace));
            }
            let is_covered = if !arg.starts_with('-') {
                operand_count += 1;
                // Some programs take an operand after options for the argument of something else.
                !are_operands_complete && self.operands.covers(arg, bases, workspace)
            } else {
                are_operands_complete = operand_count > 0;
                self.covers_option(arg, &mut args, workspace)
            };
            if !is_covered {
                return false;
            }
        }
        operand_count > 0 || !matches!(self.operands, Operands::Files)
    }

    fn restrains(&self, word: &str) -> bool {
        self.restraints.contains(&word)
            || self
                .trailing
                .is_some_and(|trailing| trailing.restrains(word))
    }

    fn covers_option<'a>(
        &self,
        arg: &str,
        rest: &mut impl Iterator<Item = &'a str>,
        workspace: &Workspace,
    ) -> bool {
        if self.flags.contains(&arg) || self.restraints.contains(&arg) {
            return true;
        }
        if self.workspace_flags.contains(&arg) {
            return !is_workspace_above(workspace);
        }
        let (name, attached) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let known = self.values.iter().find(|(known, _)| *known == name);
        known.is_some_and(|(_, kind)| {
            let value = attached.or_else(|| rest.next());
            value.is_some_and(|value| kind.covers(value, workspace))
        })
    }
}

impl Value {
    fn covers(self, value: &str, workspace: &Workspace) -> bool {
        match self {
            Self::Number => !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit()),
            Self::Names => value.split(',').all(is_name),
            Self::Expression => value.split(' ').all(is_name),
            // Clippy takes a word between underscores for the end of an option.
            Self::Lint => {
                is_name(value.strip_prefix("clippy::").unwrap_or(value)) && !value.contains("__")
            }
            Self::Package => is_name(value) && !is_workspace_above(workspace),
            Self::Text => !value.starts_with('-'),
        }
    }
}

impl Operands {
    fn covers(self, word: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
        let inside = |path: &str| stays_inside(path, bases, workspace);
        match self {
            Self::None => false,
            Self::Tests => is_test(word),
            Self::Files => inside(word),
            Self::TestFiles => {
                let (file, test) = word.split_once("::").unwrap_or((word, ""));
                // Links in a folder would be followed.
                let is_folder = bases.iter().any(|base| base.join(file).is_dir());
                file.ends_with(".py")
                    && !is_folder
                    && inside(file)
                    && (test.is_empty() || is_test(test))
            }
            Self::GoPackages => {
                let folder = word.strip_suffix("/...").unwrap_or(word);
                let mut parts = folder.split('/').skip(1);
                folder.split('/').next() == Some(".")
                    && parts.all(|part| {
                        !matches!(part, "testdata" | "vendor") && !part.starts_with(['_', '.'])
                    })
                    && inside(folder)
            }
        }
    }
}

/// Finds a `Cargo.toml` above the roots: Cargo would take packages from wherever that one says.
fn is_workspace_above(workspace: &Workspace) -> bool {
    let mut above = workspace.roots().iter().flat_map(|root| root.ancestors());
    above.any(|folder| exists(folder, "Cargo.toml") && !is_inside(folder, workspace))
}

/// Recognises a plain relative path that leads nowhere outside the roots, whether links are followed or not.
fn stays_inside(path: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    path.starts_with(|c: char| c.is_ascii_alphanumeric() || "_.".contains(c))
        && path.chars().all(is_plain)
        && !path.contains("..")
        && bases
            .iter()
            .all(|base| is_inside(&base.join(path), workspace))
}

/// Recognises a word of letters, digits, `_` and, not at the start, `-`.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Recognises the name of a test, or a part of it.
fn is_test(word: &str) -> bool {
    !word.is_empty()
        && word
            .split("::")
            .all(|part| part.is_empty() || is_name(part))
}
