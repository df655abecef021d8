//! Decides which further options and operands a rule with `:+` covers.
//!
//! "Always allow" suggests such rules. A listed program runs the project's own build scripts and tests, which
//! the user approved. For any other command the exact command is suggested.
//!
//! The grammar is closed on purpose: an option is one whole word of a list, its value is a number or a name,
//! and an operand is a name or a plain relative path. Abbreviated and bundled options are not covered, and no
//! value is a path.

mod table;

use super::path_checks::{entry_exists, is_inside_roots};
use crate::Workspace;
use std::path::{Path, PathBuf};
use table::KNOWN_COMMANDS;

/// Program with its subcommand, and the arguments that a `:+` rule covers.
pub(super) struct KnownCommand {
    /// First words of the command; `_` matches any name.
    words: &'static [&'static str],
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options without a value that restrict the program. They are covered, but the suggestion for a command
    /// with one is the exact command, because the program does more without the option.
    restraints: &'static [&'static str],
    /// Options with a value, in the next word or after `=`.
    valued_options: &'static [(&'static str, KnownValue)],
    /// Options with a value that deselect something; suggested exactly, like `restraints`.
    restraining_values: &'static [(&'static str, KnownValue)],
    /// Options that select every package of a workspace.
    workspace_flags: &'static [&'static str],
    operands: KnownOperands,
    /// Option that must be present.
    required_option: Option<&'static str>,
    /// Arguments after `--`; `None` if `--` is not covered.
    trailing_args: Option<&'static KnownCommand>,
}

/// Form of an option's value.
#[derive(Clone, Copy)]
enum KnownValue {
    Number,
    /// Comma-separated names of letters, digits, `_` and, except at the start, `-`.
    Names,
    /// Lint of rustc or clippy.
    Lint,
    /// Package of a Cargo workspace.
    Package,
    /// Text that the program stores without interpreting it; must not begin with `-`.
    Text,
}

/// Form of the arguments that are not options.
#[derive(Clone, Copy)]
enum KnownOperands {
    None,
    /// Names of tests, or parts of such names.
    Tests,
    /// Files and folders inside the roots; at least one is required.
    Files,
    /// Python files inside the roots that pytest collects by itself, optionally with the name of a test:
    /// `tests/test_x.py::test_y`.
    TestFiles,
    /// Folders inside the roots that begin with `./`, optionally followed by `/...`; other words are import
    /// paths. Folders that `./...` skips are not covered.
    GoPackages,
}

/// Finds the entry whose words are exactly these.
pub(super) fn find_known_command<S: AsRef<str>>(words: &[S]) -> Option<&'static KnownCommand> {
    let fits = |entry: &&KnownCommand| {
        let mut pairs = entry.words.iter().zip(words);
        entry.words.len() == words.len()
            && pairs.all(|(wanted, word)| match *wanted {
                "_" => is_name(word.as_ref()),
                wanted => wanted == word.as_ref(),
            })
    };
    KNOWN_COMMANDS.iter().find(fits)
}

/// Finds the longest prefix of the words that has an entry; `None` if an option restricts the program.
pub(super) fn known_prefix<'a, 'w>(words: &'a [&'w str]) -> Option<&'a [&'w str]> {
    let (lead, entry) = (1..=words.len())
        .rev()
        .filter_map(|end| words.get(..end))
        .find_map(|lead| Some((lead, find_known_command(lead)?)))?;
    let mut args = words.iter().skip(lead.len());
    let is_held_back = args.any(|word| entry.has_restraint(word));
    (!is_held_back).then_some(lead)
}

impl KnownCommand {
    /// Checks that these further arguments are covered when the command starts in any of `bases`.
    pub(super) fn covers_args(
        &self,
        args: &[&str],
        bases: &[PathBuf],
        workspace: &Workspace,
    ) -> bool {
        let has_option = |name: &str| {
            let mut names = args
                .iter()
                .map(|arg| arg.split_once('=').map_or(*arg, |it| it.0));
            names.any(|it| it == name)
        };
        if self.required_option.is_some_and(|name| !has_option(name)) {
            return false;
        }
        let mut args = args.iter().copied();
        let mut operand_count = 0;
        let mut are_operands_complete = false;
        while let Some(arg) = args.next() {
            if arg == "--" {
                let rest: Vec<&str> = args.collect();
                return self
                    .trailing_args
                    .is_some_and(|trailing| trailing.covers_args(&rest, bases, workspace));
            }
            let is_covered = if !arg.starts_with('-') {
                operand_count += 1;
                // Some programs read an operand after options as the argument of another option.
                !are_operands_complete && self.operands.accepts(arg, bases, workspace)
            } else {
                are_operands_complete = operand_count > 0;
                self.covers_option(arg, &mut args, workspace)
            };
            if !is_covered {
                return false;
            }
        }
        operand_count > 0 || !matches!(self.operands, KnownOperands::Files)
    }

    fn has_restraint(&self, word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        self.restraints.contains(&word)
            || self
                .restraining_values
                .iter()
                .any(|(known, _)| *known == name)
            || self
                .trailing_args
                .is_some_and(|trailing| trailing.has_restraint(word))
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
            return !has_cargo_workspace_above(workspace);
        }
        let (name, attached) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let mut values = self.valued_options.iter().chain(self.restraining_values);
        let known = values.find(|(known, _)| *known == name);
        known.is_some_and(|(_, kind)| {
            let value = attached.or_else(|| rest.next());
            value.is_some_and(|value| kind.accepts(value, workspace))
        })
    }
}

impl KnownValue {
    fn accepts(self, value: &str, workspace: &Workspace) -> bool {
        match self {
            Self::Number => !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit()),
            Self::Names => value.split(',').all(is_name),
            // Clippy reads a word between underscores as the end of an option.
            Self::Lint => {
                is_name(value.strip_prefix("clippy::").unwrap_or(value)) && !value.contains("__")
            }
            Self::Package => is_name(value) && !has_cargo_workspace_above(workspace),
            Self::Text => !value.starts_with('-'),
        }
    }
}

impl KnownOperands {
    fn accepts(self, word: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
        let inside = |path: &str| is_plain_path_inside(path, bases, workspace);
        match self {
            Self::None => false,
            Self::Tests => is_test_name(word),
            Self::Files => inside(word),
            Self::TestFiles => {
                let (file, test) = word.split_once("::").unwrap_or((word, ""));
                is_collected_by_pytest(file, bases)
                    && inside(file)
                    && (test.is_empty() || is_test_name(test))
            }
            Self::GoPackages => {
                let folder = word.strip_suffix("/...").unwrap_or(word);
                folder.split('/').next() == Some(".")
                    && bases.iter().all(|base| is_walked_by_go(folder, base))
                    && inside(folder)
            }
        }
    }
}

/// Returns true for a file that pytest finds without being given its name.
fn is_collected_by_pytest(file: &str, bases: &[PathBuf]) -> bool {
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    let is_test =
        name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    let is_skipped = |folder: &str| {
        matches!(
            folder,
            "CVS" | "__pycache__" | "_darcs" | "build" | "dist" | "node_modules" | "venv"
        ) || folder.starts_with('.') && folder != "."
            || folder.ends_with(".egg")
    };
    let is_environment =
        |folder: &Path| entry_exists(folder, "pyvenv.cfg") || entry_exists(folder, "conda-meta");
    is_test
        && !folders.split('/').any(is_skipped)
        && bases.iter().all(|base| {
            let mut below = folders_below(folders, base);
            // The program would follow a link, and walk a folder.
            below.all(|folder| !folder.is_symlink() && !is_environment(&folder))
                && !base.join(file).is_symlink()
                && !base.join(file).is_dir()
        })
}

/// Returns true for a folder below `base` that belongs to `./...`: no link, no `testdata` or `vendor`, and no module
/// of its own.
fn is_walked_by_go(folder: &str, base: &Path) -> bool {
    let is_skipped = |part: &str| {
        matches!(part, "testdata" | "vendor") || part.starts_with(['_', '.']) && part != "."
    };
    !folder.split('/').any(is_skipped)
        && folders_below(folder, base).all(|folder| {
            folder.is_dir() && !folder.is_symlink() && !entry_exists(&folder, "go.mod")
        })
}

/// Returns each folder on the way from `base` to the relative path `folder`, `base` left out.
fn folders_below(folder: &str, base: &Path) -> impl Iterator<Item = PathBuf> {
    let parts: Vec<&str> = folder
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    let base = base.to_owned();
    (1..=parts.len()).map(move |count| {
        let mut path = base.clone();
        path.extend(parts.iter().take(count));
        path
    })
}

/// Returns true if a `Cargo.toml` lies above the roots: Cargo would use the packages that it names.
fn has_cargo_workspace_above(workspace: &Workspace) -> bool {
    let mut above = workspace.roots().iter().flat_map(|root| root.ancestors());
    above.any(|folder| entry_exists(folder, "Cargo.toml") && !is_inside_roots(folder, workspace))
}

/// Returns true for a plain relative path that stays inside the roots, whether links are followed or not.
fn is_plain_path_inside(path: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    path.starts_with(|c: char| c.is_ascii_alphanumeric() || "_.".contains(c))
        && path.chars().all(is_plain)
        && !path.contains("..")
        && bases
            .iter()
            .all(|base| is_inside_roots(&base.join(path), workspace))
}

/// Returns true for a word of letters, digits, `_` and, except at the start, `-`.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Returns true for the name of a test, or a part of one.
fn is_test_name(word: &str) -> bool {
    !word.is_empty()
        && word
            .split("::")
            .all(|part| part.is_empty() || is_name(part))
}
