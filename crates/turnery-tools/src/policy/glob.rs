//! Expands bash file name patterns where the result is certain.

use super::shell_word::AmbiguousWordError;
use crate::Workspace;
use std::path::Path;

/// Maximum number of names that one pattern may expand to.
const MAX_NAMES: usize = 500;

/// Returns the names to which bash expands the pattern in `folder`; empty if nothing matches. Counts the
/// visited entries against a budget. Fails if the result depends on the locale or on bash's options, if a
/// name could be read as an option or an expression, or if a name leads outside the roots.
pub(crate) fn expand_pattern(
    pattern: &str,
    folder: &Path,
    workspace: &Workspace,
    left: &mut usize,
) -> Result<Vec<String>, AmbiguousWordError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./*?[]@%+,=:-".contains(c);
    if !pattern.chars().all(is_plain) {
        return Err(AmbiguousWordError);
    }
    let (mut names, relative) = match pattern.strip_prefix('/') {
        Some(rest) => (vec!["/".to_owned()], rest),
        None => (vec![String::new()], pattern),
    };
    let mut parts = relative.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if part.is_empty() && !is_last {
            return Err(AmbiguousWordError);
        }
        let matched = match is_pattern(part) {
            true => match_part(part, &names, folder, left)?,
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
        if names.len() > MAX_NAMES {
            return Err(AmbiguousWordError);
        }
    }
    for name in &names {
        let has_certain_parts = name
            .split('/')
            .filter(|part| !matches!(*part, "" | "." | ".."))
            .all(is_unambiguous_name);
        let path = folder.join(name);
        let is_inside = path
            .to_str()
            .is_some_and(|path| workspace.resolve(path).is_ok());
        if !has_certain_parts || !is_inside {
            return Err(AmbiguousWordError);
        }
    }
    Ok(names)
}

/// Returns true if bash treats the text as a pattern.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the names in each of `folders` that match one component of a pattern.
fn match_part(
    part: &str,
    folders: &[String],
    base: &Path,
    left: &mut usize,
) -> Result<Vec<String>, AmbiguousWordError> {
    let tokens = tokenize(part)?;
    // It depends on bash's version whether `.*` matches `..`.
    if part.starts_with('.') {
        return Err(AmbiguousWordError);
    }
    let depends_on_locale = tokens
        .iter()
        .any(|token| !matches!(token, GlobToken::Byte(_) | GlobToken::Star));
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(base.join(folder)) else {
            return Err(AmbiguousWordError);
        };
        for entry in entries {
            *left = left.checked_sub(1).ok_or(AmbiguousWordError)?;
            let name = entry.map_err(|_| AmbiguousWordError)?.file_name();
            let name = name.as_encoded_bytes();
            if name.starts_with(b".") {
                continue;
            }
            if !name.is_ascii() && depends_on_locale {
                return Err(AmbiguousWordError);
            }
            if is_match(&tokens, name) {
                let name = std::str::from_utf8(name).map_err(|_| AmbiguousWordError)?;
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Element of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum GlobToken {
    Byte(u8),
    /// `?`
    Question,
    /// `*`
    Star,
    /// `[abc]`, `[0-9]`
    Set(Vec<u8>),
}

fn tokenize(part: &str) -> Result<Vec<GlobToken>, AmbiguousWordError> {
    let mut tokens = Vec::new();
    let mut rest = part;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).ok_or(AmbiguousWordError)?;
        tokens.push(match c {
            '*' if tokens.last() == Some(&GlobToken::Star) => continue,
            '*' => GlobToken::Star,
            '?' => GlobToken::Question,
            ']' => return Err(AmbiguousWordError),
            '[' => {
                let (set, after) = rest.split_once(']').ok_or(AmbiguousWordError)?;
                rest = after;
                match set {
                    "0-9" => GlobToken::Set((b'0'..=b'9').collect()),
                    _ if !set.is_empty() && set.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                        GlobToken::Set(set.bytes().collect())
                    }
                    _ => return Err(AmbiguousWordError),
                }
            }
            _ => GlobToken::Byte(u8::try_from(c).map_err(|_| AmbiguousWordError)?),
        });
    }
    Ok(tokens)
}

/// Returns true if the whole name matches; takes time proportional to the product of both lengths.
fn is_match(tokens: &[GlobToken], name: &[u8]) -> bool {
    // All tokens but stars, no two of which are neighbours, match one byte.
    if tokens.len() > 2 * name.len() + 1 {
        return false;
    }
    // `reached[at]` is true if the tokens so far match the first `at` bytes.
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
                GlobToken::Star => any,
                GlobToken::Question => steps(true),
                GlobToken::Byte(wanted) => steps(byte == Some(wanted)),
                GlobToken::Set(set) => steps(byte.is_some_and(|byte| set.contains(byte))),
            };
            if let Some(next) = next.get_mut(at) {
                *next = is_reached;
            }
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Returns true if no program reads the name as an option or as an expression of `find`.
fn is_unambiguous_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && name.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        && !name.contains(['\\', '='])
}
