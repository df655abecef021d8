//! Expands the words that only the confined policy understands: file name patterns and loop variables.

use super::{
    bounded_walk::MAX_ENTRIES,
    glob,
    shell_word::{self, AmbiguousWordError, ShellWord},
};
use crate::Workspace;
use std::path::{Path, PathBuf};
use tree_sitter::Node;

/// Maximum number of commands that the loops of one line may expand to.
const MAX_COMMANDS: usize = 400;
/// Variables that hold no secret.
const PUBLIC_VARIABLES: &[&str] = &[
    "EDITOR", "HOME", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "TERM",
    "TMPDIR", "USER",
];

/// Working directory of a line, and the loops around a word.
pub(crate) struct ExpansionScope<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) cwd: &'a Path,
    /// Names and current values of the surrounding loops.
    loops: Vec<(String, ShellWord)>,
    /// Names set by any loop of the line so far.
    loop_names: Vec<String>,
    /// Number of folder entries that may still be read.
    entry_budget: usize,
}

/// Part of a word.
enum WordPart {
    /// Known text. `is_file_name`: a pattern produced it.
    Text { text: String, is_file_name: bool },
    /// Text in which `*`, `?` and `[` are special.
    Pattern(String),
    /// Unknown number.
    ExitCode,
    /// Unknown text that holds no secret.
    PublicText,
    /// Unknown unquoted text that holds no secret: any number of words.
    PublicWords,
    /// Unknown text.
    Dynamic,
}

impl<'a> ExpansionScope<'a> {
    pub(crate) fn new(cwd: &'a Path, workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            cwd,
            loops: Vec::new(),
            loop_names: Vec::new(),
            entry_budget: MAX_ENTRIES,
        }
    }

    /// Enters a loop. Fails if an earlier loop of the line already set the name.
    pub(crate) fn enter_loop(&mut self, name: &str) -> Result<(), AmbiguousWordError> {
        if self.loop_names.iter().any(|known| known == name) {
            return Err(AmbiguousWordError);
        }
        self.loop_names.push(name.to_owned());
        self.loops.push((name.to_owned(), ShellWord::Dynamic));
        Ok(())
    }

    /// Sets the variable of the innermost loop for its next iteration.
    pub(crate) fn set_loop_value(&mut self, value: ShellWord) {
        if let Some((_, now)) = self.loops.last_mut() {
            *now = value;
        }
    }

    pub(crate) fn leave_loop(&mut self) {
        self.loops.pop();
    }

    /// Returns true if a line that has expanded to this many commands may have another.
    pub(crate) fn has_command_budget(commands: usize) -> bool {
        commands < MAX_COMMANDS
    }

    /// Expands one word of the line as bash does in any of `bases`.
    pub(crate) fn expand_word(
        &mut self,
        node: Node<'_>,
        source: &str,
        bases: &[PathBuf],
    ) -> Result<Vec<ShellWord>, AmbiguousWordError> {
        let parts = self.parse_parts(node, source)?;
        let is_pattern = parts
            .iter()
            .any(|part| matches!(part, WordPart::Pattern(_)));
        let opens_set =
            |part: &WordPart| matches!(part, WordPart::Pattern(text) if text.contains('['));
        let has_set = parts.iter().any(opens_set);
        // Within brackets, quoting or escaping changes the meaning of these characters.
        let may_close_set =
            |text: &str| has_set && text.contains(['[', ']', '!', '^', '-', ':', '.', '=']);
        let (mut whole, mut named, mut unknown_kind) = (String::new(), false, None);
        for part in parts {
            match part {
                WordPart::Text { text, .. }
                    if is_pattern && (glob::is_pattern(&text) || may_close_set(&text)) =>
                {
                    return Err(AmbiguousWordError);
                }
                WordPart::Text { text, is_file_name } => {
                    whole.push_str(&text);
                    named |= is_file_name;
                }
                WordPart::Pattern(text) => whole.push_str(&text),
                WordPart::ExitCode if unknown_kind.is_none() => {
                    unknown_kind = Some(ShellWord::ExitCode)
                }
                WordPart::ExitCode | WordPart::PublicText
                    if unknown_kind == Some(ShellWord::PublicWords) => {}
                WordPart::ExitCode | WordPart::PublicText => {
                    unknown_kind = Some(ShellWord::PublicText)
                }
                WordPart::PublicWords => unknown_kind = Some(ShellWord::PublicWords),
                WordPart::Dynamic => return Ok(vec![ShellWord::Dynamic]),
            }
        }
        match (is_pattern, unknown_kind, named) {
            (true, None, _) => self.expand_files(&whole, bases),
            (true, Some(_), _) => Ok(vec![ShellWord::Dynamic]),
            (false, Some(ShellWord::ExitCode), _) if !whole.is_empty() => {
                Ok(vec![ShellWord::PublicText])
            }
            (false, Some(shown), _) => Ok(vec![shown]),
            // The name would be read as an option or as the value of one.
            (false, None, true) if whole.starts_with(['-', '+']) => Ok(vec![ShellWord::Dynamic]),
            (false, None, true) => Ok(vec![ShellWord::FileName(whole)]),
            (false, None, false) => Ok(vec![ShellWord::Literal(whole)]),
        }
    }

    /// Expands a pattern to file names; fails unless the result is the same in all of `bases`.
    fn expand_files(
        &mut self,
        pattern: &str,
        bases: &[PathBuf],
    ) -> Result<Vec<ShellWord>, AmbiguousWordError> {
        let (first, others) = bases.split_first().ok_or(AmbiguousWordError)?;
        let mut expand =
            |base| glob::expand_pattern(pattern, base, self.workspace, &mut self.entry_budget);
        let found = expand(first)?;
        for base in others {
            if expand(base)? != found {
                return Err(AmbiguousWordError);
            }
        }
        match found.as_slice() {
            // bash leaves an option such as `--include=*.rs` unchanged.
            [] if pattern.starts_with('-') => Ok(vec![ShellWord::Literal(pattern.to_owned())]),
            [] => Err(AmbiguousWordError),
            [name] => Ok(vec![ShellWord::FileName(name.clone())]),
            _ => Ok(found
                .into_iter()
                .map(ShellWord::UnorderedFileName)
                .collect()),
        }
    }

    fn parse_parts(
        &self,
        node: Node<'_>,
        source: &str,
    ) -> Result<Vec<WordPart>, AmbiguousWordError> {
        let text = source.get(node.byte_range()).ok_or(AmbiguousWordError)?;
        match node.kind() {
            // find replaces `{}`; to bash, empty braces are plain text.
            _ if text == "{}" => Ok(vec![WordPart::Text {
                text: text.to_owned(),
                is_file_name: false,
            }]),
            "word" | "concatenation" if shell_word::is_revision_with_braces(text) => {
                self.parse_whole_word(node, source)
            }
            "word" if glob::is_pattern(text) && !text.contains(['\\', '{', '}', '~']) => {
                Ok(vec![WordPart::Pattern(text.to_owned())])
            }
            "concatenation" if !text.contains(['\'', '"', '$', '`', '\\', '{', '}', '~']) => {
                match glob::is_pattern(text) {
                    true => Ok(vec![WordPart::Pattern(text.to_owned())]),
                    false => self.parse_whole_word(node, source),
                }
            }
            "concatenation" => {
                let mut parts = Vec::new();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    parts.extend(self.parse_parts(child, source)?);
                }
                Ok(parts)
            }
            "simple_expansion" | "expansion" => Ok(vec![self.expand_variable(text, false)?]),
            "command_substitution" => Ok(vec![WordPart::PublicWords]),
            "string" => self.parse_quoted(node, source),
            _ => self.parse_whole_word(node, source),
        }
    }

    /// Parses a word as the unconfined policy does.
    fn parse_whole_word(
        &self,
        node: Node<'_>,
        source: &str,
    ) -> Result<Vec<WordPart>, AmbiguousWordError> {
        Ok(vec![match shell_word::parse_word(node, source)? {
            ShellWord::Literal(text) => WordPart::Text {
                text,
                is_file_name: false,
            },
            ShellWord::ExitCode => WordPart::ExitCode,
            ShellWord::PublicText => WordPart::PublicText,
            ShellWord::FileName(_)
            | ShellWord::UnorderedFileName(_)
            | ShellWord::PublicWords
            | ShellWord::UnknownText
            | ShellWord::Dynamic => WordPart::Dynamic,
        }])
    }

    fn parse_quoted(
        &self,
        node: Node<'_>,
        source: &str,
    ) -> Result<Vec<WordPart>, AmbiguousWordError> {
        let mut cursor = node.walk();
        let mut children = node.named_children(&mut cursor);
        if children.all(|child| child.kind() == "string_content") {
            return self.parse_whole_word(node, source);
        }
        let text_of = |from: usize, to: usize| -> Result<WordPart, AmbiguousWordError> {
            let text = source.get(from..to).ok_or(AmbiguousWordError)?;
            match text.contains(['\\', '"', '$', '`']) {
                true => Err(AmbiguousWordError),
                false => Ok(WordPart::Text {
                    text: text.to_owned(),
                    is_file_name: false,
                }),
            }
        };
        let mut parts = Vec::new();
        let mut at = node.start_byte() + 1;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind() == "string_content" {
                continue;
            }
            parts.push(text_of(at, child.start_byte())?);
            let text = source.get(child.byte_range()).ok_or(AmbiguousWordError)?;
            parts.push(match child.kind() {
                "simple_expansion" | "expansion" => self.expand_variable(text, true)?,
                "command_substitution" => WordPart::PublicText,
                _ => return Err(AmbiguousWordError),
            });
            at = child.end_byte();
        }
        parts.push(text_of(at, node.end_byte() - 1)?);
        Ok(parts)
    }

    fn expand_variable(&self, text: &str, is_quoted: bool) -> Result<WordPart, AmbiguousWordError> {
        let name = text.strip_prefix('$').ok_or(AmbiguousWordError)?;
        let name = match name.strip_prefix('{') {
            Some(rest) => rest.strip_suffix('}').ok_or(AmbiguousWordError)?,
            None => name,
        };
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '?')
        {
            return Err(AmbiguousWordError);
        }
        Ok(match self.loop_value(name) {
            Some((value, is_file_name)) if is_quoted || is_single_word(value) => WordPart::Text {
                text: value.to_owned(),
                is_file_name,
            },
            Some(_) => WordPart::Dynamic,
            None if name == "?" => WordPart::ExitCode,
            None if !PUBLIC_VARIABLES.contains(&name) => WordPart::Dynamic,
            None if is_quoted => WordPart::PublicText,
            None => WordPart::PublicWords,
        })
    }

    /// Returns the value of a surrounding loop's variable, and whether a pattern produced it.
    fn loop_value(&self, name: &str) -> Option<(&str, bool)> {
        let (_, value) = self.loops.iter().find(|(known, _)| known == name)?;
        match value {
            ShellWord::Literal(text) => Some((text, false)),
            ShellWord::FileName(text) | ShellWord::UnorderedFileName(text) => Some((text, true)),
            ShellWord::ExitCode
            | ShellWord::PublicText
            | ShellWord::PublicWords
            | ShellWord::UnknownText
            | ShellWord::Dynamic => None,
        }
    }

    /// Parses the words of `[ … ]` or `[[ … ]]`: plain words, strings and known variables, separated by
    /// blanks.
    pub(crate) fn parse_condition(&self, text: &str) -> Result<Vec<ShellWord>, AmbiguousWordError> {
        let mut words = Vec::new();
        let mut rest = text.trim_matches([' ', '\t']);
        while let Some(first) = rest.chars().next() {
            let end = match first {
                '\'' | '"' => rest
                    .get(1..)
                    .and_then(|rest| rest.find(first))
                    .map(|at| at + 2),
                _ => Some(rest.find([' ', '\t']).unwrap_or(rest.len())),
            };
            let (word, after) = rest
                .split_at_checked(end.ok_or(AmbiguousWordError)?)
                .ok_or(AmbiguousWordError)?;
            if !after.is_empty() && !after.starts_with([' ', '\t']) {
                return Err(AmbiguousWordError);
            }
            words.push(self.parse_condition_word(word)?);
            rest = after.trim_start_matches([' ', '\t']);
        }
        Ok(words)
    }

    fn parse_condition_word(&self, word: &str) -> Result<ShellWord, AmbiguousWordError> {
        // `&` and `|` end a single-bracket condition anywhere.
        if matches!(word, "&&" | "||") {
            return Ok(ShellWord::Literal(word.to_owned()));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./=!:@%+,-".contains(c);
        let inside = |quote: char| {
            word.strip_prefix(quote)
                .and_then(|rest| rest.strip_suffix(quote))
        };
        if let Some(inside) = inside('\'') {
            return Ok(ShellWord::Literal(inside.to_owned()));
        }
        let (text, is_quoted) = match inside('"') {
            Some(inside) => (inside, true),
            None => (word, false),
        };
        if text.starts_with('$') {
            return match self.expand_variable(text, is_quoted)? {
                WordPart::Text {
                    text,
                    is_file_name: false,
                } => Ok(ShellWord::Literal(text)),
                WordPart::Text {
                    text,
                    is_file_name: true,
                } => Ok(ShellWord::FileName(text)),
                WordPart::ExitCode => Ok(ShellWord::ExitCode),
                WordPart::PublicText => Ok(ShellWord::PublicText),
                WordPart::Dynamic if is_quoted => Ok(ShellWord::PublicText),
                // These parts may expand to several words.
                WordPart::PublicWords | WordPart::Dynamic | WordPart::Pattern(_) => {
                    Err(AmbiguousWordError)
                }
            };
        }
        let is_text = |c: char| c == ' ' || is_plain(c);
        match is_quoted && text.chars().all(is_text) || !is_quoted && word.chars().all(is_plain) {
            true => Ok(ShellWord::Literal(text.to_owned())),
            false => Err(AmbiguousWordError),
        }
    }
}

/// Returns true if bash leaves the unquoted value unchanged.
fn is_single_word(value: &str) -> bool {
    !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c))
}
