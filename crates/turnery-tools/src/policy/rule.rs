//! Rules that allow or deny tool calls in advance, for example `shell(cargo test:*)`.

mod parse;

use super::{
    command_line::SimpleCommand,
    command_starters::{as_git_command, possible_scripts},
    known_commands,
    program_name::{ProgramName, base_name},
    shell_word::{MatchCertainty, ShellWord},
};
use crate::Workspace;
use globset::GlobMatcher;
use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Permission rule: a tool or a group of tools, optionally with a pattern.
///
/// - `shell`, `edit`, `read`: all commands, all changes to files, all reading of files;
/// - `shell(cargo test)`: exactly this command; `shell(cargo test:*)`: with any further arguments;
///   `shell(cargo test:+)`: with further options and operands that are known to run no other program and to
///   touch nothing outside the roots, which is what "always allow" offers;
/// - `edit(src/**)`, `read(**/.env)`: files by glob, relative to the working directory, or absolute;
/// - `write_file`, `write_file(src/**)`: one tool by name.
///
/// In a deny rule, a pattern for files also covers everything below a folder that it matches.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    pub(crate) tool: String,
    pub(crate) pattern: Option<RulePattern>,
    /// Copy of a folder, to which an absolute pattern for files applies as to the folder.
    copied_folder: Option<CopiedFolder>,
}

/// Folder and a copy of it. Absolute, links resolved.
#[derive(Clone, Debug)]
struct CopiedFolder {
    original: PathBuf,
    copy: PathBuf,
}

/// Pattern in the parentheses of a rule.
#[derive(Clone, Debug)]
pub(crate) enum RulePattern {
    /// Command.
    Command {
        /// Name and arguments.
        words: Vec<String>,
        /// Arguments that may follow.
        extra_args: ExtraArgs,
    },
    /// Files.
    Files {
        /// The glob as written, and with the links in its literal prefix resolved if that differs.
        globs: Vec<GlobMatcher>,
        /// Globs of everything below what `globs` match, as folders.
        below: Vec<GlobMatcher>,
        /// True if the globs match paths relative to the working directory.
        is_relative: bool,
    },
}

/// Arguments that may follow the words of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraArgs {
    Nothing,
    /// `:+`: only those listed in [`known_commands`].
    Known,
    /// `:*`
    Any,
}

/// Name of the group of tools that run commands.
pub(crate) const SHELL_GROUP: &str = "shell";
/// Name of the group of tools that change files.
pub(crate) const EDIT_GROUP: &str = "edit";
/// Name of the group of tools that read files.
pub(crate) const READ_GROUP: &str = "read";

/// True if file systems on this platform usually treat `.ENV` as `.env`.
const IGNORES_CASE: bool = cfg!(target_os = "macos");

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Error of an invalid rule, with the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rule {rule:?}: {reason}")]
pub struct RuleError {
    /// Text of the rule.
    pub rule: String,
    /// Description of the problem and the expected form.
    pub reason: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        parse::parse_rule(text).map_err(|reason| RuleError {
            rule: text.to_owned(),
            reason,
        })
    }
}

/// Returns the leading components of a pattern, up to the first with special characters.
fn literal_prefix_components(pattern: &str) -> Vec<&str> {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    pattern.split('/').take_while(is_plain).collect()
}

/// Resolves the links in the literal prefix of an absolute pattern; `None` if there are none.
fn resolve_pattern_links(pattern: &str) -> Option<String> {
    let literal = literal_prefix_components(pattern).join("/");
    let existing = Path::new(&literal)
        .ancestors()
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let (written, resolved) = existing?;
    let rest = pattern.strip_prefix(written.to_str()?)?;
    let resolved = globset::escape(resolved.to_str()?);
    (resolved != written.to_str()?).then(|| format!("{resolved}{rest}"))
}

impl Rule {
    /// Returns true if the rule applies to `tool`, which belongs to `group`.
    pub(crate) fn applies_to(&self, tool: &str, group: &str) -> bool {
        self.tool == group || self.tool == tool
    }

    /// Returns true if the rule certainly allows the command, started in any of `bases`.
    pub(crate) fn allows_command(
        &self,
        command: &SimpleCommand,
        bases: &[PathBuf],
        workspace: &Workspace,
    ) -> bool {
        let Some(RulePattern::Command {
            words,
            extra_args: more,
        }) = &self.pattern
        else {
            return false;
        };
        // In another folder the same words may mean another program, script or Makefile.
        let is_relative = command.name.contains('/') && !command.name.starts_with('/');
        let is_same = *more != ExtraArgs::Nothing && !is_relative
            || bases.iter().all(|base| base == workspace.cwd());
        let fits = is_same
            && command.name == words.first().map_or("", String::as_str)
            && match_args(&words[1..], *more, &command.args) == MatchCertainty::Yes;
        match more {
            // Its input may determine what the command does and is not part of the rule.
            ExtraArgs::Nothing => fits && !command.is_stdin_redirected,
            ExtraArgs::Any => fits && !command.is_opaque,
            ExtraArgs::Known => {
                let known = known_commands::find_known_command(words).zip(command.literal_words());
                fits && !command.is_opaque
                    && !command.is_stdin_redirected
                    && known.is_some_and(|(known, all)| {
                        let further = all.get(words.len()..).unwrap_or_default();
                        known.covers_args(further, bases, workspace)
                    })
            }
        }
    }

    /// Returns how certainly the rule denies the command, or a script that it may run. The folder of the program
    /// is ignored, and so is the case of its name, because some file systems treat `RM` as `rm`.
    pub(crate) fn denies_command(&self, command: &SimpleCommand) -> MatchCertainty {
        // Git's own programs are installed in a separate folder: `git-push`.
        let git = as_git_command(command).map(|git| {
            self.match_words(&git.name, &git.args)
                .min(MatchCertainty::Maybe)
        });
        let scripts = possible_scripts(command).filter_map(|words| {
            let (name, args) = words.split_first()?;
            let certainty = self.match_words(name.known_text()?, args);
            Some(certainty.min(MatchCertainty::Maybe))
        });
        let other = git.into_iter().chain(scripts).max();
        self.match_words(&command.name, &command.args)
            .max(other.unwrap_or(MatchCertainty::No))
    }

    /// Compares the words of a command with those of the rule.
    fn match_words(&self, called: &str, args: &[ShellWord]) -> MatchCertainty {
        let Some(RulePattern::Command {
            words,
            extra_args: more,
        }) = &self.pattern
        else {
            return MatchCertainty::No;
        };
        let Some((name, words)) = words.split_first() else {
            return MatchCertainty::No;
        };
        let named = base_name(name);
        if !ProgramName::new(called).is(named) {
            return MatchCertainty::No;
        }
        // A rule that names the folder may mean the same program under another path, and one without a version
        // may mean the program of any version.
        let is_same_file =
            called == *name || !name.contains('/') && base_name(called).eq_ignore_ascii_case(named);
        match match_args(words, *more, args) {
            MatchCertainty::No if may_follow_options(words, args) => MatchCertainty::Maybe,
            MatchCertainty::Yes if !is_same_file => MatchCertainty::Maybe,
            certainty => certainty,
        }
    }

    /// Returns true if the rule allows access to the file.
    pub(crate) fn allows_file(&self, path: &Path, cwd: &Path) -> bool {
        self.matches_file(path, &[cwd], false)
    }

    /// Returns true if the rule denies access to the file or to a folder above it, from any root.
    pub(crate) fn denies_file(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.matches_file(path, roots, true)
    }

    /// Compares the path, or its part below any of `bases`, with the pattern. If `or_above`, the pattern may also match a
    /// folder above the path.
    fn matches_file<B: AsRef<Path>>(&self, path: &Path, bases: &[B], or_above: bool) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let RulePattern::Files {
            globs,
            below,
            is_relative,
        } = pattern
        else {
            return false;
        };
        // Not one match for each folder above: a word may name thousands of long paths.
        let matches = |path: &Path| {
            let below = below.iter().filter(|_| or_above);
            globs.iter().chain(below).any(|glob| glob.is_match(path))
        };
        if *is_relative {
            let mut parts = bases.iter().filter_map(|base| path.strip_prefix(base).ok());
            return parts.any(matches);
        }
        let of_original = self.copied_folder.as_ref().and_then(|it| {
            let below = path.strip_prefix(&it.copy).ok()?;
            Some(it.original.join(below))
        });
        matches(path) || of_original.is_some_and(|path| matches(&path))
    }

    /// Applies an absolute pattern for files to `copy` as well, as if it were `original`.
    pub(crate) fn with_copied_folder(self, original: &Path, copy: &Path) -> Self {
        let copied_folder = Some(CopiedFolder {
            original: original.to_owned(),
            copy: copy.to_owned(),
        });
        Self {
            copied_folder,
            ..self
        }
    }

    /// Returns the literal prefixes of the paths that the pattern matches, from each root.
    pub(crate) fn literal_prefixes(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let Some(RulePattern::Files {
            globs,
            is_relative: relative,
            ..
        }) = &self.pattern
        else {
            return Vec::new();
        };
        let starts = globs
            .iter()
            .map(|glob| literal_prefix_components(glob.glob().glob()).join("/"));
        match relative {
            true => starts
                .flat_map(|start| roots.iter().map(move |root| root.join(&start)))
                .collect(),
            false => {
                let starts: Vec<PathBuf> = starts.map(|start| Path::new("/").join(start)).collect();
                let in_copy = self.copied_folder.iter().flat_map(|it| {
                    starts.iter().filter_map(|start| {
                        let below = start.strip_prefix(&it.original).ok();
                        let covers = || it.original.starts_with(start).then(|| it.copy.clone());
                        below.map(|below| it.copy.join(below)).or_else(covers)
                    })
                });
                let in_copy: Vec<PathBuf> = in_copy.collect();
                [starts, in_copy].concat()
            }
        }
    }
}

/// Returns true if the arguments may contain the words in this order, with an option or an assignment before the
/// last of them: `cargo +nightly publish` matches `cargo publish`, `make V=1 deploy` matches `make deploy`.
/// An unknown word may be all that is left of them, unless it follows a word that is none of them and no value
/// of an option: `git -C sub commit -m "$text"` is no `git push`.
pub(crate) fn may_follow_options<W: AsRef<str>>(words: &[W], args: &[ShellWord]) -> bool {
    let mut left = words;
    let (mut has_option, mut may_be_value, mut is_elsewhere) = (false, false, false);
    for arg in args {
        let Some((word, rest)) = left.split_first() else {
            break;
        };
        let certainty = arg.matches(word.as_ref());
        if certainty == MatchCertainty::Maybe && !is_elsewhere {
            return true;
        }
        let text = arg.known_text().unwrap_or_default();
        if text == word.as_ref() {
            left = rest;
            may_be_value = false;
        } else if text.starts_with(['-', '+']) || text.contains('=') {
            has_option = true;
            may_be_value =
                text.starts_with('-') && !text.contains('=') && !text.starts_with("--no-");
        } else {
            // A word found before was the option's value if it comes again.
            let found = words.get(..words.len() - left.len()).unwrap_or_default();
            let comes_again = found.last().is_some_and(|word| text == word.as_ref());
            is_elsewhere |= !may_be_value && !comes_again;
            may_be_value = false;
        }
    }
    left.is_empty() && has_option
}

/// Returns true for a word that sets a variable: `NAME=value`.
pub(crate) fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Returns how certainly the arguments are the words, followed by what `more` allows.
pub(crate) fn match_args<W: AsRef<str>>(
    words: &[W],
    more: ExtraArgs,
    args: &[ShellWord],
) -> MatchCertainty {
    let mut certainty = MatchCertainty::Yes;
    for (at, word) in words.iter().enumerate() {
        let fits = args.get(at).map(|arg| arg.matches(word.as_ref()));
        certainty = match fits.unwrap_or(MatchCertainty::No) {
            MatchCertainty::Yes => certainty,
            MatchCertainty::Maybe => MatchCertainty::Maybe,
            // An earlier word may be several or none.
            MatchCertainty::No if certainty == MatchCertainty::Maybe => certainty,
            MatchCertainty::No => return MatchCertainty::No,
        };
    }
    let further = args.get(words.len()..).unwrap_or_default();
    let is_known = |arg: &ShellWord| arg.known_text().is_some();
    match more {
        ExtraArgs::Known | ExtraArgs::Any => certainty,
        ExtraArgs::Nothing if further.is_empty() => certainty,
        ExtraArgs::Nothing if certainty == MatchCertainty::Yes && further.iter().any(is_known) => {
            MatchCertainty::No
        }
        ExtraArgs::Nothing => MatchCertainty::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_display_as_written() {
        for text in [
            "shell",
            "edit",
            "shell(cargo test:*)",
            "shell(cargo test:+)",
            "shell(git commit -m 'x y')",
            "edit(src/**)",
            "read(**/.env)",
            "read(/etc/**)",
            "write_file(a.txt)",
            "mcp__github__create_issue",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn files_are_matched_from_the_working_directory() {
        let cwd = Path::new("/w");
        let roots = [PathBuf::from("/w"), PathBuf::from("/other")];
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        let src = rule("edit(src/**)");
        assert!(src.allows_file(Path::new("/w/src/a/b.rs"), cwd));
        assert!(!src.allows_file(Path::new("/w/a.rs"), cwd));
        assert!(!src.allows_file(Path::new("/other/src/a.rs"), cwd));
        assert!(src.denies_file(Path::new("/other/src/a.rs"), &roots));
        let top = rule("edit(*.rs)");
        assert!(top.allows_file(Path::new("/w/a.rs"), cwd));
        assert!(!top.allows_file(Path::new("/w/src/a.rs"), cwd));
        let env = rule("read(**/.env)");
        assert!(env.denies_file(Path::new("/w/.env"), &roots));
        assert!(env.denies_file(Path::new("/w/a/b/.env"), &roots));
        assert!(!env.denies_file(Path::new("/w/a/env"), &roots));
        let is_the_same = cfg!(target_os = "macos");
        assert_eq!(env.denies_file(Path::new("/w/.Env"), &roots), is_the_same);
        let folder = rule("read(secret)");
        assert!(folder.denies_file(Path::new("/w/secret/deep/key"), &roots));
        assert!(!folder.allows_file(Path::new("/w/secret/deep/key"), cwd));
        let absolute = rule("read(/etc/**)");
        assert!(absolute.denies_file(Path::new("/etc/passwd"), &roots));
    }

    proptest::proptest! {
        /// A rule denies what is below a folder that its pattern matches.
        #[test]
        fn path_is_denied_with_each_folder_above(
            pattern in proptest::collection::vec(
                proptest::sample::select(vec!["**", "*", "a", "*.x", "b?", ".env", "{a,b}", "[ab]"]),
                1..5,
            ),
            path in proptest::collection::vec(
                proptest::sample::select(vec!["a", "b", "bb", ".env", "c.x"]),
                1..7,
            ),
            is_absolute: bool,
        ) {
            let start = if is_absolute { "/w/" } else { "" };
            let Ok(rule) = format!("read({start}{})", pattern.join("/")).parse::<Rule>() else {
                return Ok(());
            };
            let path = PathBuf::from(format!("/w/{}", path.join("/")));
            let roots = [PathBuf::from("/w")];
            let is_covered = path.ancestors().any(|above| rule.allows_file(above, &roots[0]));
            // `**` matches the root itself only as the empty path.
            let is_top = pattern.iter().all(|part| *part == "**");
            proptest::prop_assert_eq!(rule.denies_file(&path, &roots), is_covered || is_top);
        }
    }
}
