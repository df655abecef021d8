//! Determines the value of a word of a command line, as far as it is certain.

use tree_sitter::Node;

/// Word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShellWord {
    /// Exact text.
    Literal(String),
    /// Name of a file found by a pattern.
    FileName(String),
    /// Name of one of several files found by a pattern; their order depends on the locale.
    UnorderedFileName(String),
    /// Unknown number: the exit code of the previous command.
    ExitCode,
    /// Unknown text that holds no secret.
    PublicText,
    /// Unknown unquoted text that holds no secret: any number of words.
    PublicWords,
    /// Exactly one word, known only at run time.
    UnknownText,
    /// Known only at run time: a variable, a pattern, the output of a command.
    Dynamic,
}

impl ShellWord {
    pub(crate) fn known_text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) | Self::FileName(text) | Self::UnorderedFileName(text) => {
                Some(text)
            }
            Self::ExitCode
            | Self::PublicText
            | Self::PublicWords
            | Self::UnknownText
            | Self::Dynamic => None,
        }
    }

    /// Returns how certainly the word is `text`; [`MatchCertainty::Maybe`] also if it may be several words.
    pub(crate) fn matches(&self, text: &str) -> MatchCertainty {
        match self {
            Self::Literal(word) | Self::FileName(word) if word == text => MatchCertainty::Yes,
            Self::Literal(_) | Self::FileName(_) => MatchCertainty::No,
            Self::UnorderedFileName(_)
            | Self::ExitCode
            | Self::PublicText
            | Self::PublicWords
            | Self::UnknownText
            | Self::Dynamic => MatchCertainty::Maybe,
        }
    }
}

/// Certainty that a word or a rule for commands matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchCertainty {
    /// No match.
    No,
    /// Known only when the command runs.
    Maybe,
    /// Certain match.
    Yes,
}

/// Error of a word that cannot be read with certainty.
pub(crate) struct AmbiguousWordError;

/// Parses a word node. Commands inside the word are visited elsewhere.
pub(crate) fn parse_word(node: Node<'_>, source: &str) -> Result<ShellWord, AmbiguousWordError> {
    let text = source.get(node.byte_range()).ok_or(AmbiguousWordError)?;
    match node.kind() {
        "word" | "concatenation" if is_revision_with_braces(text) => {
            Ok(ShellWord::Literal(text.to_owned()))
        }
        "word" | "number" => parse_bare(text),
        "raw_string" => text
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''))
            .filter(|inside| !inside.contains('\''))
            .map(|inside| ShellWord::Literal(inside.to_owned()))
            .ok_or(AmbiguousWordError),
        "string" => parse_double_quoted(node, text),
        "simple_expansion" => Ok(match text {
            "$?" => ShellWord::ExitCode,
            _ => ShellWord::Dynamic,
        }),
        "expansion" => parse_braced_expansion(text),
        "command_substitution" | "process_substitution" => Ok(ShellWord::Dynamic),
        "concatenation" => {
            let mut whole = ShellWord::Literal(String::new());
            let mut cursor = node.walk();
            for part in node.children(&mut cursor) {
                whole = match (whole, parse_word(part, source)?) {
                    (ShellWord::Literal(whole), ShellWord::Literal(text)) => {
                        ShellWord::Literal(whole + &text)
                    }
                    (
                        ShellWord::Literal(_) | ShellWord::PublicText,
                        ShellWord::Literal(_) | ShellWord::ExitCode | ShellWord::PublicText,
                    ) => ShellWord::PublicText,
                    _ => ShellWord::Dynamic,
                };
            }
            Ok(whole)
        }
        _ => Err(AmbiguousWordError),
    }
}

/// Returns true for revisions of git such as `HEAD@{1}` and `v1^{commit}`, whose braces are plain text to bash.
pub(crate) fn is_revision_with_braces(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./^@~".contains(c);
    let mut parts = text.split('{');
    let is_before = |part: &str| part.ends_with(['@', '^']) && part.chars().all(is_plain);
    let Some(mut before) = parts.next().filter(|first| !first.starts_with('~')) else {
        return false;
    };
    let mut has_braces = false;
    for part in parts {
        let Some((inside, after)) = part.split_once('}') else {
            return false;
        };
        has_braces = true;
        if !is_before(before)
            || inside.is_empty()
            || !inside
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-')
        {
            return false;
        }
        before = after;
    }
    has_braces && before.chars().all(is_plain)
}

/// Parses an unquoted word. A character that may be special to the shell and that the parser did not treat as
/// such makes the word uncertain, because the parser is not the shell.
fn parse_bare(text: &str) -> Result<ShellWord, AmbiguousWordError> {
    let mut literal = String::with_capacity(text.len());
    let mut dynamic = text.starts_with('~');
    let mut chars = text.chars().enumerate();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, escaped)) if escaped.is_ascii_graphic() => literal.push(escaped),
                _ => return Err(AmbiguousWordError),
            },
            '*' | '?' | '[' | ']' | '{' | '}' => dynamic = true,
            // Bash also expands the tilde in words that look like assignments: `x=~/a`, `x=a:~/b`.
            '~' => {
                dynamic |= literal.ends_with(['=', ':']);
                literal.push(c);
            }
            '#' if at == 0 => return Err(AmbiguousWordError),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '"' | '\'' => {
                return Err(AmbiguousWordError);
            }
            _ if c.is_whitespace() || c.is_control() => return Err(AmbiguousWordError),
            _ => literal.push(c),
        }
    }
    Ok(if dynamic {
        ShellWord::Dynamic
    } else {
        ShellWord::Literal(literal)
    })
}

fn parse_double_quoted(node: Node<'_>, text: &str) -> Result<ShellWord, AmbiguousWordError> {
    let mut cursor = node.walk();
    let plain = node
        .named_children(&mut cursor)
        .all(|child| child.kind() == "string_content" || is_exit_code_expansion(child, node, text));
    let mut holds_number = false;
    if !plain {
        return match has_only_known_parts(node, text) {
            // Quoted, this expands to several words.
            true if text.contains("$@") => Ok(ShellWord::Dynamic),
            true => Ok(ShellWord::UnknownText),
            false => Err(AmbiguousWordError),
        };
    }
    let inside = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or(AmbiguousWordError)?;
    let mut literal = String::with_capacity(inside.len());
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '$' if chars.next_if_eq(&'?').is_some() => holds_number = true,
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | '"' | '$' | '`')) => literal.push(escaped),
                // Bash removes both characters.
                Some('\n') => return Err(AmbiguousWordError),
                Some(other) => literal.extend(['\\', other]),
                None => return Err(AmbiguousWordError),
            },
            '"' | '$' | '`' => return Err(AmbiguousWordError),
            _ => literal.push(c),
        }
    }
    Ok(match holds_number {
        true => ShellWord::PublicText,
        false => ShellWord::Literal(literal),
    })
}

/// Returns true if the child is `$?` inside the string `whole`, whose text is `text`.
fn is_exit_code_expansion(child: Node<'_>, whole: Node<'_>, text: &str) -> bool {
    let start = whole.start_byte();
    let part = text.get(child.start_byte() - start..child.end_byte() - start);
    child.kind() == "simple_expansion" && part == Some("$?")
}

/// Returns true if every part of a string with expansions is of a known kind.
fn has_only_known_parts(node: Node<'_>, text: &str) -> bool {
    let start = node.start_byte();
    let mut cursor = node.walk();
    node.named_children(&mut cursor).all(|child| {
        let part = text.get(child.start_byte() - start..child.end_byte() - start);
        match (child.kind(), part) {
            ("string_content" | "simple_expansion" | "command_substitution", Some(_)) => true,
            ("expansion", Some(part)) => parse_braced_expansion(part).is_ok(),
            _ => false,
        }
    })
}

/// Parses `${name}` and no other form: `${x@P}` runs commands, `${x:=y}` assigns.
fn parse_braced_expansion(text: &str) -> Result<ShellWord, AmbiguousWordError> {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .map(|_| ShellWord::Dynamic)
        .ok_or(AmbiguousWordError)
}

/// Joins words to a command line, quoting those that the shell would read otherwise.
pub(crate) fn quote_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                (*word).to_owned()
            } else {
                format!("'{}'", word.replace('\'', r#"'"'"'"#))
            }
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::is_revision_with_braces;

    #[test]
    fn braces_of_revisions_are_plain_text() {
        for text in [
            "HEAD@{1}",
            "stash@{0}",
            "@{u}..",
            "v1^{commit}",
            "a@{-1}~2..b^{tree}",
        ] {
            assert!(is_revision_with_braces(text), "{text}");
        }
        for text in [
            "HEAD",
            "{1}",
            "a{b}",
            "a@{b,c}",
            "a@{1..3}",
            "a@{}",
            "a@{1",
            "a@1}",
            "~@{1}",
            "a@{b{c}",
            "a@{*}",
            "$x@{1}",
            "a@{1}*",
            "x{a,b@{1}}",
            "@{1}{a,b}",
        ] {
            assert!(!is_revision_with_braces(text), "{text}");
        }
    }
}
