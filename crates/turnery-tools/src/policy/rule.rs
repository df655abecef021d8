//! Rules that allow or deny tool calls in advance, for example `shell(cargo test:*)`.

use super::{
    command_line::{CommandLine, SimpleCommand},
    command_starters::{as_git_command, started_script},
    known_commands,
    program_name::{ProgramName, base_name},
    shell_word::ShellWord,
};
use crate::Workspace;
use globset::{GlobBuilder, GlobMatcher};
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
        parse_rule(text).map_err(|reason| RuleError {
            rule: text.to_owned(),
            reason,
        })
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let (tool, inside) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(inside) => (tool, Some(inside.trim())),
            None => {
                return Err(
                    "the bracket is not closed: write it like shell(cargo test:*)".to_owned(),
                );
            }
        },
    };
    if tool.is_empty() {
        return Err("the tool is missing: write it like edit or shell(cargo test:*)".to_owned());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    if let Some(bad) = tool.chars().find(|c| !is_name(*c)) {
        return Err(format!(
            "{bad:?} cannot be in a tool's name: write it like edit(src/**)"
        ));
    }
    let pattern = match inside {
        None => None,
        Some("" | "*" | ":*" | ":+") => {
            return Err(format!("nothing to compare with: for all, write {tool}"));
        }
        Some(inside) if tool == SHELL_GROUP => Some(parse_command_pattern(inside)?),
        Some(inside) => Some(parse_file_pattern(inside)?),
    };
    Ok(Rule {
        text: text.to_owned(),
        tool: tool.to_owned(),
        pattern,
    })
}

fn parse_command_pattern(inside: &str) -> Result<RulePattern, String> {
    let (plain, more) = match (inside.strip_suffix(":*"), inside.strip_suffix(":+")) {
        (Some(plain), _) => (plain, ExtraArgs::Any),
        (None, Some(plain)) => (plain, ExtraArgs::Known),
        (None, None) => (inside, ExtraArgs::Nothing),
    };
    let line = CommandLine::parse(plain);
    let [command] = line.commands.as_slice() else {
        return Err(
            "it must be a single command: one rule for each, like shell(cargo test:*)".to_owned(),
        );
    };
    let clear = !line.is_uncertain && line.output_files.is_empty() && line.input_files.is_empty();
    match command.literal_words().filter(|_| clear) {
        Some(words) if more == ExtraArgs::Known && known_commands::find_known_command(&words).is_none() => Err(format!(
            "no options are known of {plain}, so `:+` cannot be used: write shell({plain}) for exactly this, or shell({plain}:*) for any further arguments"
        )),
        Some(words) => Ok(RulePattern::Command {
            words: words.into_iter().map(str::to_owned).collect(),
            extra_args: more,
        }),
        None => Err(
            "it must be plain words, without variables, patterns or redirections; `:*` at the end stands for any further arguments, like shell(cargo test:*)"
                .to_owned(),
        ),
    }
}

fn parse_file_pattern(inside: &str) -> Result<RulePattern, String> {
    if inside.starts_with('~') {
        return Err(
            "`~` is not known here: write the whole path, like read(/home/me/.ssh/**)".to_owned(),
        );
    }
    let written = inside;
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    let parts: Vec<&str> = inside.trim_end_matches('/').split('/').collect();
    let is_never = |at: usize, part: &str| matches!(part, "." | "..") || part.is_empty() && at > 0;
    let mut all = parts.iter().enumerate();
    let is_quoted = inside.starts_with(['"', '\'', '$']);
    let escapes_letter = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_escaped = inside.split('\\').skip(1).any(escapes_letter);
    let is_doubled = written.starts_with("./") && inside.starts_with('/');
    if is_quoted
        || is_escaped
        || is_doubled
        || matches!(inside, "" | "/")
        || all.any(|(at, part)| is_never(at, part))
    {
        return Err(
            "it can never match: write a path without `.`, `..`, empty parts, quotes, backslashes and variables, like read(secrets/**); `**` stands for everything"
                .to_owned(),
        );
    }
    let whole = match inside.strip_suffix('/') {
        Some(folder) => format!("{folder}/**"),
        None => inside.to_owned(),
    };
    let matcher = |pattern: &str| {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .case_insensitive(IGNORES_CASE)
            .build();
        glob.map(|glob| glob.compile_matcher())
            .map_err(|error| format!("{}: write it like edit(src/**)", error.kind()))
    };
    let mut globs = vec![matcher(&whole)?];
    if let Some(resolved) = resolve_pattern_links(&whole) {
        globs.push(matcher(&resolved)?);
    }
    Ok(RulePattern::Files {
        globs,
        is_relative: !inside.starts_with('/'),
    })
}

/// Returns the leading folders of a pattern that contain no special characters.
fn literal_prefix_folders(pattern: &str) -> Vec<&str> {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    pattern.split('/').take_while(is_plain).collect()
}

/// Resolves the links in the literal prefix of an absolute pattern; `None` if there are none.
fn resolve_pattern_links(pattern: &str) -> Option<String> {
    let literal = literal_prefix_folders(pattern).join("/");
    let existing = Path::new(&literal)
        .ancestors()
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let (written, resolved) = existing?;
    let rest = pattern.strip_prefix(written.to_str()?)?;
    let resolved = globset::escape(resolved.to_str()?);
    (resolved != written.to_str()?).then(|| format!("{resolved}{rest}"))
}

/// Certainty that a rule for commands matches a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchCertainty {
    /// No match.
    No,
    /// Known only when the command runs.
    Maybe,
    /// Certain match.
    Yes,
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

    /// Returns how certainly the rule denies the command, or the script that it runs. The folder of the program
    /// is ignored, and so is the case of its name, because some file systems treat `RM` as `rm`.
    pub(crate) fn denies_command(&self, command: &SimpleCommand) -> MatchCertainty {
        // Git's own programs are installed in a separate folder: `git-push`.
        let git =
            as_git_command(command).map(|git| self.match_command(&git).min(MatchCertainty::Maybe));
        let script = started_script(command).map(|script| self.match_command(&script));
        let other = git.max(script).unwrap_or(MatchCertainty::No);
        self.match_command(command).max(other)
    }

    /// Compares the words of the command with those of the rule.
    fn match_command(&self, command: &SimpleCommand) -> MatchCertainty {
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
        if !ProgramName::new(&command.name).is(named) {
            return MatchCertainty::No;
        }
        // A rule that names the folder may mean the same program under another path, and one without a version
        // may mean the program of any version.
        let is_same_file = command.name == *name
            || !name.contains('/') && base_name(&command.name).eq_ignore_ascii_case(named);
        match match_args(words, *more, &command.args) {
            MatchCertainty::No if words_follow_options(words, &command.args) => {
                MatchCertainty::Maybe
            }
            MatchCertainty::Yes if !is_same_file => MatchCertainty::Maybe,
            match_args => match_args,
        }
    }

    /// Returns true if the rule allows access to the file.
    pub(crate) fn allows_file(&self, path: &Path, cwd: &Path) -> bool {
        match &self.pattern {
            None => true,
            Some(RulePattern::Command { .. }) => false,
            Some(RulePattern::Files {
                globs,
                is_relative: true,
            }) => path
                .strip_prefix(cwd)
                .is_ok_and(|path| globs.iter().any(|glob| glob.is_match(path))),
            Some(RulePattern::Files {
                globs,
                is_relative: false,
            }) => globs.iter().any(|glob| glob.is_match(path)),
        }
    }

    /// Returns true if the rule denies access to the file or to a folder above it, from any root.
    pub(crate) fn denies_file(&self, path: &Path, roots: &[PathBuf]) -> bool {
        match &self.pattern {
            None => true,
            Some(RulePattern::Command { .. }) => false,
            Some(RulePattern::Files {
                globs,
                is_relative: true,
            }) => roots
                .iter()
                .filter_map(|root| path.strip_prefix(root).ok())
                .any(|path| matches_path_or_ancestor(globs, path)),
            Some(RulePattern::Files {
                globs,
                is_relative: false,
            }) => matches_path_or_ancestor(globs, path),
        }
    }

    /// Returns the literal prefixes of the paths that the pattern matches, from each root.
    pub(crate) fn literal_prefixes(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let Some(RulePattern::Files {
            globs,
            is_relative: relative,
        }) = &self.pattern
        else {
            return Vec::new();
        };
        let starts = globs
            .iter()
            .map(|glob| literal_prefix_folders(glob.glob().glob()).join("/"));
        match relative {
            true => starts
                .flat_map(|start| roots.iter().map(move |root| root.join(&start)))
                .collect(),
            false => starts.map(|start| Path::new("/").join(start)).collect(),
        }
    }
}

fn matches_path_or_ancestor(globs: &[GlobMatcher], path: &Path) -> bool {
    path.ancestors()
        .take_while(|above| !above.as_os_str().is_empty())
        .any(|above| globs.iter().any(|glob| glob.is_match(above)))
}

/// Checks that the arguments contain the words in this order, with an option or an assignment before the last
/// of them: `cargo +nightly publish` matches `cargo publish`, `make V=1 deploy` matches `make deploy`.
pub(crate) fn words_follow_options<W: AsRef<str>>(words: &[W], args: &[ShellWord]) -> bool {
    let mut texts = args.iter().filter_map(ShellWord::known_text);
    let mut has_option = false;
    let mut follows = |word: &W| {
        texts.any(|text| {
            let is_word = text == word.as_ref();
            has_option |= !is_word && (text.starts_with(['-', '+']) || is_assignment(text));
            is_word
        })
    };
    words.iter().all(&mut follows) && has_option
}

/// Returns true for a word that sets a variable: `NAME=value`.
pub(crate) fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn match_args(words: &[String], more: ExtraArgs, args: &[ShellWord]) -> MatchCertainty {
    let mut certain = MatchCertainty::Yes;
    let mut args = args.iter();
    for word in words {
        match args.next() {
            Some(ShellWord::Literal(arg) | ShellWord::FileName(arg)) if arg == word => {}
            Some(ShellWord::Literal(_) | ShellWord::FileName(_)) | None => {
                return match certain {
                    // An earlier pattern may have expanded to several words or none.
                    MatchCertainty::Maybe => MatchCertainty::Maybe,
                    MatchCertainty::Yes | MatchCertainty::No => MatchCertainty::No,
                };
            }
            Some(
                ShellWord::UnorderedFileName(_)
                | ShellWord::ExitCode
                | ShellWord::PublicText
                | ShellWord::PublicWords
                | ShellWord::Dynamic,
            ) => certain = MatchCertainty::Maybe,
        }
    }
    if more == ExtraArgs::Nothing {
        for arg in args {
            match arg {
                ShellWord::Literal(_) | ShellWord::FileName(_)
                    if certain == MatchCertainty::Yes =>
                {
                    return MatchCertainty::No;
                }
                ShellWord::Literal(_) | ShellWord::FileName(_) => {}
                ShellWord::UnorderedFileName(_)
                | ShellWord::ExitCode
                | ShellWord::PublicText
                | ShellWord::PublicWords
                | ShellWord::Dynamic => {
                    certain = MatchCertainty::Maybe;
                }
            }
        }
    }
    certain
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
    fn pattern_that_never_matches_is_error() {
        for pattern in [
            ".", "./", "./.", "sub//x", "sub/./x", "../x", "/", "/a//b", "/a/./b", "\"x\"", "'x'",
            "$PWD/x", ".//x", "a\\b",
        ] {
            assert!(
                format!("read({pattern})").parse::<Rule>().is_err(),
                "{pattern}"
            );
        }
        for pattern in ["**", "x/", "./x", ".env", "**/.env", "/a/b/", "a$b"] {
            assert!(
                format!("read({pattern})").parse::<Rule>().is_ok(),
                "{pattern}"
            );
        }
    }

    #[test]
    fn errors_explain_expected_form() {
        let reason = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        for (text, expected) in [
            (
                "",
                "invalid rule \"\": the tool is missing: write it like edit or shell(cargo test:*)",
            ),
            (
                "(x)",
                "invalid rule \"(x)\": the tool is missing: write it like edit or shell(cargo test:*)",
            ),
            (
                "shell(ls",
                "invalid rule \"shell(ls\": the bracket is not closed: write it like shell(cargo test:*)",
            ),
            (
                "read(sub/../x)",
                "invalid rule \"read(sub/../x)\": it can never match: write a path without `.`, `..`, empty parts, quotes, backslashes and variables, like read(secrets/**); `**` stands for everything",
            ),
            (
                "shell(*)",
                "invalid rule \"shell(*)\": nothing to compare with: for all, write shell",
            ),
            (
                "edit()",
                "invalid rule \"edit()\": nothing to compare with: for all, write edit",
            ),
            (
                "my tool",
                "invalid rule \"my tool\": ' ' cannot be in a tool's name: write it like edit(src/**)",
            ),
            (
                "shell(a && b)",
                "invalid rule \"shell(a && b)\": it must be a single command: one rule for each, like shell(cargo test:*)",
            ),
            (
                "read(~/.ssh)",
                "invalid rule \"read(~/.ssh)\": `~` is not known here: write the whole path, like read(/home/me/.ssh/**)",
            ),
        ] {
            assert_eq!(reason(text), expected);
        }
        assert!(reason("shell(ls > x)").contains("plain words"));
        assert!(reason("shell(ls $x)").contains("plain words"));
        assert!(reason("edit(src/[)").contains("write it like edit(src/**)"));
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
}
