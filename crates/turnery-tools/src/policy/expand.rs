//! Words of a line that only the confined policy understands: patterns that stand for files, and variables of loops.

use super::{
    glob,
    walk::MOST_ENTRIES,
    word::{self, Unclear, Word},
};
use crate::Workspace;
use std::path::{Path, PathBuf};
use tree_sitter::Node;

/// Most commands that the loops of one line may be taken apart into.
const MOST_COMMANDS: usize = 400;
/// Variables that hold no secret.
const SHOWN: &[&str] = &[
    "EDITOR", "HOME", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "TERM",
    "TMPDIR", "USER",
];

/// Where a line runs, and the loops that surround a word.
pub(crate) struct Scope<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) cwd: &'a Path,
    /// Names and present values of the surrounding loops.
    loops: Vec<(String, Word)>,
    /// Every name that a loop has set.
    seen: Vec<String>,
    /// Entries of folders that may still be looked at.
    entries: usize,
}

/// Part of a word.
enum Part {
    /// Exactly this text. `is_name`: it is the name of a file that a pattern stands for.
    Text { text: String, is_name: bool },
    /// Text in which `*`, `?` and `[` are special.
    Pattern(String),
    /// A number that is unknown.
    Number,
    /// Text that is unknown and holds no secret.
    Shown,
    /// The same without quotes.
    Split,
    /// Unknown.
    Dynamic,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(cwd: &'a Path, workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            cwd,
            loops: Vec::new(),
            seen: Vec::new(),
            entries: MOST_ENTRIES,
        }
    }

    /// Begins a loop. An error if a loop of the line has set the name already.
    pub(crate) fn enter_loop(&mut self, name: &str) -> Result<(), Unclear> {
        if self.seen.iter().any(|seen| seen == name) {
            return Err(Unclear);
        }
        self.seen.push(name.to_owned());
        self.loops.push((name.to_owned(), Word::Dynamic));
        Ok(())
    }

    /// The next turn of the innermost loop.
    pub(crate) fn set_loop_value(&mut self, value: Word) {
        if let Some((_, now)) = self.loops.last_mut() {
            *now = value;
        }
    }

    pub(crate) fn leave_loop(&mut self) {
        self.loops.pop();
    }

    /// Whether a line may be taken apart into so many commands.
    pub(crate) fn has_room(commands: usize) -> bool {
        commands < MOST_COMMANDS
    }

    /// The words that bash makes of one word of the line, run in any of `bases`.
    pub(crate) fn words(
        &mut self,
        node: Node<'_>,
        source: &str,
        bases: &[PathBuf],
    ) -> Result<Vec<Word>, Unclear> {
        let parts = self.parts(node, source)?;
        let is_pattern = parts.iter().any(|part| matches!(part, Part::Pattern(_)));
        let opens_set = |part: &Part| matches!(part, Part::Pattern(text) if text.contains('['));
        let has_set = parts.iter().any(opens_set);
        // Between brackets these mean something else with quotes or a backslash than without.
        let may_close_set =
            |text: &str| has_set && text.contains(['[', ']', '!', '^', '-', ':', '.', '=']);
        let (mut whole, mut named, mut shown) = (String::new(), false, None);
        for part in parts {
            match part {
                Part::Text { text, .. }
                    if is_pattern && (glob::is_pattern(&text) || may_close_set(&text)) =>
                {
                    return Err(Unclear);
                }
                Part::Text { text, is_name } => {
                    whole.push_str(&text);
                    named |= is_name;
                }
                Part::Pattern(text) => whole.push_str(&text),
                Part::Number if shown.is_none() => shown = Some(Word::Number),
                Part::Number | Part::Shown if shown == Some(Word::Split) => {}
                Part::Number | Part::Shown => shown = Some(Word::Shown),
                Part::Split => shown = Some(Word::Split),
                Part::Dynamic => return Ok(vec![Word::Dynamic]),
            }
        }
        match (is_pattern, shown, named) {
            (true, None, _) => self.files(&whole, bases),
            (true, Some(_), _) => Ok(vec![Word::Dynamic]),
            (false, Some(Word::Number), _) if !whole.is_empty() => Ok(vec![Word::Shown]),
            (false, Some(shown), _) => Ok(vec![shown]),
            // The name would be an option, or the value of one.
            (false, None, true) if whole.starts_with(['-', '+']) => Ok(vec![Word::Dynamic]),
            (false, None, true) => Ok(vec![Word::Name(whole)]),
            (false, None, false) => Ok(vec![Word::Literal(whole)]),
        }
    }

    /// The files that a pattern stands for, the same in all of `bases`.
    fn files(&mut self, pattern: &str, bases: &[PathBuf]) -> Result<Vec<Word>, Unclear> {
        let (first, others) = bases.split_first().ok_or(Unclear)?;
        let mut expand = |base| glob::expand(pattern, base, self.workspace, &mut self.entries);
        let found = expand(first)?;
        for base in others {
            if expand(base)? != found {
                return Err(Unclear);
            }
        }
        match found.as_slice() {
            // An option such as `--include=*.rs`, which bash leaves as it is.
            [] if pattern.starts_with('-') => Ok(vec![Word::Literal(pattern.to_owned())]),
            [] => Err(Unclear),
            [name] => Ok(vec![Word::Name(name.clone())]),
            _ => Ok(found.into_iter().map(Word::Among).collect()),
        }
    }

    fn parts(&self, node: Node<'_>, source: &str) -> Result<Vec<Part>, Unclear> {
        let text = source.get(node.byte_range()).ok_or(Unclear)?;
        match node.kind() {
            // What find replaces; braces with nothing between are plain to bash.
            _ if text == "{}" => Ok(vec![Part::Text {
                text: text.to_owned(),
                is_name: false,
            }]),
            "word" if glob::is_pattern(text) && !text.contains(['\\', '{', '}', '~']) => {
                Ok(vec![Part::Pattern(text.to_owned())])
            }
            "concatenation" if !text.contains(['\'', '"', '$', '`', '\\', '{', '}', '~']) => {
                match glob::is_pattern(text) {
                    true => Ok(vec![Part::Pattern(text.to_owned())]),
                    false => self.whole(node, source),
                }
            }
            "concatenation" => {
                let mut parts = Vec::new();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    parts.extend(self.parts(child, source)?);
                }
                Ok(parts)
            }
            "simple_expansion" | "expansion" => Ok(vec![self.variable(text, false)?]),
            "command_substitution" => Ok(vec![Part::Split]),
            "string" => self.quoted(node, source),
            _ => self.whole(node, source),
        }
    }

    /// A word that is read as the policy reads it without confinement.
    fn whole(&self, node: Node<'_>, source: &str) -> Result<Vec<Part>, Unclear> {
        Ok(vec![match word::value(node, source)? {
            Word::Literal(text) => Part::Text {
                text,
                is_name: false,
            },
            Word::Number => Part::Number,
            Word::Shown => Part::Shown,
            Word::Name(_) | Word::Among(_) | Word::Split | Word::Dynamic => Part::Dynamic,
        }])
    }

    fn quoted(&self, node: Node<'_>, source: &str) -> Result<Vec<Part>, Unclear> {
        let mut cursor = node.walk();
        let mut children = node.named_children(&mut cursor);
        if children.all(|child| child.kind() == "string_content") {
            return self.whole(node, source);
        }
        let text_of = |from: usize, to: usize| -> Result<Part, Unclear> {
            let text = source.get(from..to).ok_or(Unclear)?;
            match text.contains(['\\', '"', '$', '`']) {
                true => Err(Unclear),
                false => Ok(Part::Text {
                    text: text.to_owned(),
                    is_name: false,
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
            let text = source.get(child.byte_range()).ok_or(Unclear)?;
            parts.push(match child.kind() {
                "simple_expansion" | "expansion" => self.variable(text, true)?,
                "command_substitution" => Part::Shown,
                _ => return Err(Unclear),
            });
            at = child.end_byte();
        }
        parts.push(text_of(at, node.end_byte() - 1)?);
        Ok(parts)
    }

    fn variable(&self, text: &str, is_quoted: bool) -> Result<Part, Unclear> {
        let name = text.strip_prefix('$').ok_or(Unclear)?;
        let name = match name.strip_prefix('{') {
            Some(rest) => rest.strip_suffix('}').ok_or(Unclear)?,
            None => name,
        };
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '?')
        {
            return Err(Unclear);
        }
        Ok(match self.value(name) {
            Some((value, is_name)) if is_quoted || is_one_word(value) => Part::Text {
                text: value.to_owned(),
                is_name,
            },
            Some(_) => Part::Dynamic,
            None if name == "?" => Part::Number,
            None if !SHOWN.contains(&name) => Part::Dynamic,
            None if is_quoted => Part::Shown,
            None => Part::Split,
        })
    }

    /// The value of the variable of a surrounding loop, and whether a pattern gave it.
    fn value(&self, name: &str) -> Option<(&str, bool)> {
        let (_, value) = self.loops.iter().find(|(known, _)| known == name)?;
        match value {
            Word::Literal(text) => Some((text, false)),
            Word::Name(text) | Word::Among(text) => Some((text, true)),
            Word::Number | Word::Shown | Word::Split | Word::Dynamic => None,
        }
    }

    /// The words of `[ … ]`, `[[ … ]]`: plain ones, strings and known variables, between blanks. `None` stands for a
    /// text that is unknown.
    pub(crate) fn condition(&self, text: &str) -> Result<Vec<Word>, Unclear> {
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
            let (word, after) = rest.split_at_checked(end.ok_or(Unclear)?).ok_or(Unclear)?;
            if !after.is_empty() && !after.starts_with([' ', '\t']) {
                return Err(Unclear);
            }
            words.push(self.condition_word(word)?);
            rest = after.trim_start_matches([' ', '\t']);
        }
        Ok(words)
    }

    fn condition_word(&self, word: &str) -> Result<Word, Unclear> {
        // `&` and `|` end a condition of single brackets wherever they stand.
        if matches!(word, "&&" | "||") {
            return Ok(Word::Literal(word.to_owned()));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./=!:@%+,-".contains(c);
        let inside = |quote: char| {
            word.strip_prefix(quote)
                .and_then(|rest| rest.strip_suffix(quote))
        };
        if let Some(inside) = inside('\'') {
            return Ok(Word::Literal(inside.to_owned()));
        }
        let (text, is_quoted) = match inside('"') {
            Some(inside) => (inside, true),
            None => (word, false),
        };
        if text.starts_with('$') {
            return match self.variable(text, is_quoted)? {
                Part::Text {
                    text,
                    is_name: false,
                } => Ok(Word::Literal(text)),
                Part::Text {
                    text,
                    is_name: true,
                } => Ok(Word::Name(text)),
                Part::Number => Ok(Word::Number),
                Part::Shown => Ok(Word::Shown),
                Part::Dynamic if is_quoted => Ok(Word::Shown),
                // It may be several words.
                Part::Split | Part::Dynamic | Part::Pattern(_) => Err(Unclear),
            };
        }
        let is_text = |c: char| c == ' ' || is_plain(c);
        match is_quoted && text.chars().all(is_text) || !is_quoted && word.chars().all(is_plain) {
            true => Ok(Word::Literal(text.to_owned())),
            false => Err(Unclear),
        }
    }
}

/// Whether the value stays as it is without quotes.
fn is_one_word(value: &str) -> bool {
    !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c))
}
