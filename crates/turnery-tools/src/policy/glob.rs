//! File names that a pattern of bash stands for, where that is certain.

use super::word::Unclear;
use crate::Workspace;
use std::path::Path;

/// Most names that one pattern may stand for.
const MOST_NAMES: usize = 500;

/// The names that bash puts in place of the pattern when it runs in `folder`; none if nothing matches. `left` is the
/// number of entries that may still be looked at. An error if the result depends on the locale or on bash's options,
/// if a name could be taken for an option or an expression, or if one leads outside the roots.
pub(crate) fn expand(
    pattern: &str,
    folder: &Path,
    workspace: &Workspace,
    left: &mut usize,
) -> Result<Vec<String>, Unclear> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./*?[]@%+,=:-".contains(c);
    if !pattern.chars().all(is_plain) {
        return Err(Unclear);
    }
    let (mut names, relative) = match pattern.strip_prefix('/') {
        Some(rest) => (vec!["/".to_owned()], rest),
        None => (vec![String::new()], pattern),
    };
    let mut parts = relative.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if part.is_empty() && !is_last {
            return Err(Unclear);
        }
        let matched = match is_pattern(part) {
            true => matches(part, &names, folder, left)?,
            false => names.iter().map(|name| format!("{name}{part}")).collect(),
        };
        let is_there = |name: &String| match is_last {
            true => folder.join(name).symlink_metadata().is_ok(),
            false => folder.join(name).is_dir(),
        };
        names = matched.into_iter().filter(is_there).collect();
        if !is_last {
            names.iter_mut().for_each(|name| name.push('/'));
        }
        if names.len() > MOST_NAMES {
            return Err(Unclear);
        }
    }
    for name in &names {
        let has_certain_parts = name
            .split('/')
            .filter(|part| !matches!(*part, "" | "." | ".."))
            .all(is_certain);
        let path = folder.join(name);
        let is_inside = path
            .to_str()
            .is_some_and(|path| workspace.resolve(path).is_ok());
        if !has_certain_parts || !is_inside {
            return Err(Unclear);
        }
    }
    Ok(names)
}

/// Whether bash looks for files in place of the text.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The names below each of `folders` that match one part of a pattern.
fn matches(
    part: &str,
    folders: &[String],
    base: &Path,
    left: &mut usize,
) -> Result<Vec<String>, Unclear> {
    let tokens = tokens(part)?;
    // Whether `.*` stands for `..` depends on the version.
    if part.starts_with('.') {
        return Err(Unclear);
    }
    let depends_on_locale = tokens
        .iter()
        .any(|token| !matches!(token, Token::Byte(_) | Token::Any));
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(base.join(folder)) else {
            return Err(Unclear);
        };
        for entry in entries {
            *left = left.checked_sub(1).ok_or(Unclear)?;
            let name = entry.map_err(|_| Unclear)?.file_name();
            let name = name.as_encoded_bytes();
            if name.starts_with(b".") {
                continue;
            }
            if !name.is_ascii() && depends_on_locale {
                return Err(Unclear);
            }
            if is_match(&tokens, name) {
                let name = std::str::from_utf8(name).map_err(|_| Unclear)?;
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// One element of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Any,
    /// `[abc]`, `[0-9]`
    Set(Vec<u8>),
}

fn tokens(part: &str) -> Result<Vec<Token>, Unclear> {
    let mut tokens = Vec::new();
    let mut rest = part;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).ok_or(Unclear)?;
        tokens.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            ']' => return Err(Unclear),
            '[' => {
                let (set, after) = rest.split_once(']').ok_or(Unclear)?;
                rest = after;
                match set {
                    "0-9" => Token::Set((b'0'..=b'9').collect()),
                    _ if !set.is_empty() && set.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                        Token::Set(set.bytes().collect())
                    }
                    _ => return Err(Unclear),
                }
            }
            _ => Token::Byte(u8::try_from(c).map_err(|_| Unclear)?),
        });
    }
    Ok(tokens)
}

/// Whether the whole name matches, in steps that grow with the product of both lengths.
fn is_match(tokens: &[Token], name: &[u8]) -> bool {
    // `reached[at]`: whether the tokens so far match the first `at` bytes.
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for token in tokens {
        let mut next = vec![false; name.len() + 1];
        let mut any = false;
        for (at, was) in reached.iter().enumerate() {
            let byte = at.checked_sub(1).and_then(|before| name.get(before));
            let before = at.checked_sub(1).and_then(|before| reached.get(before));
            let steps = |fits: bool| fits && before == Some(&true);
            any |= was;
            let is_reached = match token {
                Token::Any => any,
                Token::One => steps(true),
                Token::Byte(wanted) => steps(byte == Some(wanted)),
                Token::Set(set) => steps(byte.is_some_and(|byte| set.contains(byte))),
            };
            if let Some(next) = next.get_mut(at) {
                *next = is_reached;
            }
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Whether no program takes the name for something other than a file: an option, an expression of `find`.
fn is_certain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && name.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        && !name.contains(['\\', '='])
}
