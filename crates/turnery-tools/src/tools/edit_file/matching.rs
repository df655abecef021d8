//! Finds the text to replace in a file: first exactly, then line by line ignoring the white space around each
//! line, with the replacement indented like the file. An ambiguous match is an error.

use super::indent::Reindenter;
use std::ops::Range;

/// Maximum number of places listed when there are several.
pub(super) const MAX_LISTED_LINES: usize = 10;

/// Maximum number of places counted, since the cost grows with their length.
pub(super) const MAX_COUNTED_MATCHES: usize = 1_000;

/// One replacement to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    /// Range to remove.
    pub(super) range: Range<usize>,
    /// Text to insert.
    pub(super) text: String,
}

/// Error of finding the text to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatchError {
    /// The text occurs nowhere.
    NotFound,
    /// The text occurs in several places, and only one was to be replaced.
    Ambiguous {
        /// Number of places.
        count: usize,
        /// Line numbers of the first places, from 1.
        lines: Vec<usize>,
    },
}

/// Returns the replacements to make, in order and not overlapping. All texts have bare line feeds; `old` is
/// not empty.
pub(super) fn find_replacements(
    text: &str,
    old: &str,
    new: &str,
    all: bool,
) -> Result<Vec<Replacement>, MatchError> {
    let exact = find_exact(text, old, all);
    let found = if exact.is_empty() {
        find_by_lines(text, old, new, all)
    } else {
        exact
            .into_iter()
            .map(|range| Replacement {
                range,
                text: new.to_owned(),
            })
            .collect()
    };
    match found.as_slice() {
        [] => Err(MatchError::NotFound),
        [_] => Ok(found),
        several if all => Ok(drop_overlapping(several)),
        several => Err(MatchError::Ambiguous {
            count: several.len(),
            lines: several
                .iter()
                .take(MAX_LISTED_LINES)
                .map(|replacement| line_number_at(text, replacement.range.start))
                .collect(),
        }),
    }
}

/// Returns the text with the replacements made.
pub(super) fn apply_replacements(text: &str, replacements: &[Replacement]) -> String {
    let mut applied = String::with_capacity(text.len());
    let mut done = 0;
    for replacement in replacements {
        applied.push_str(&text[done..replacement.range.start]);
        applied.push_str(&replacement.text);
        done = replacement.range.end;
    }
    applied.push_str(&text[done..]);
    applied
}

/// Returns the ranges in which `old` occurs: non-overlapping ones if `all`, otherwise up to
/// [`MAX_COUNTED_MATCHES`], including overlapping ones.
fn find_exact(text: &str, old: &str, all: bool) -> Vec<Range<usize>> {
    let range = |start| start..start + old.len();
    match all {
        true => text.match_indices(old).map(|(at, _)| range(at)).collect(),
        false => match_starts(text, old)
            .take(MAX_COUNTED_MATCHES)
            .map(range)
            .collect(),
    }
}

/// Returns the start of each occurrence of `old`, including overlapping ones, which are different places to
/// change.
fn match_starts<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(old)?;
        from = start + step;
        Some(start)
    })
}

fn drop_overlapping(several: &[Replacement]) -> Vec<Replacement> {
    let mut kept: Vec<Replacement> = Vec::new();
    for replacement in several {
        if kept
            .last()
            .is_none_or(|last| last.range.end <= replacement.range.start)
        {
            kept.push(replacement.clone());
        }
    }
    kept
}

/// Finds runs of whole lines that equal the lines of `old` except for white space around each.
fn find_by_lines(text: &str, old: &str, new: &str, all: bool) -> Vec<Replacement> {
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    // The longest line is compared first, because short ones such as braces match many others.
    let telling = (0..wanted.len())
        .max_by_key(|at| wanted[*at].trim().len())
        .unwrap_or(0);
    let lines = lines_with_offsets(text);
    lines
        .windows(wanted.len())
        .filter_map(|window| {
            let is_like = |at: usize| window[at].1.trim() == wanted[at].trim();
            if !is_like(telling) || !(0..wanted.len()).all(is_like) {
                return None;
            }
            let pairs = wanted
                .iter()
                .zip(window)
                .map(|(old, (_, line))| (*old, *line));
            let reindented = Reindenter::from_line_pairs(pairs)?.apply(new);
            let ((first, _), (last, line)) = (window.first()?, window.last()?);
            let mut range = *first..last + line.len();
            let mut text_in = reindented;
            if old.ends_with('\n') {
                if text[range.end..].starts_with('\n') {
                    range.end += 1;
                } else if text_in.ends_with('\n') {
                    text_in.pop();
                }
            }
            Some(Replacement {
                range,
                text: text_in,
            })
        })
        .filter(|replacement| text[replacement.range.clone()] != replacement.text)
        .take(if all { usize::MAX } else { MAX_COUNTED_MATCHES })
        .collect()
}

/// Returns each line without its line break, and its start.
pub(super) fn lines_with_offsets(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let at = start;
            start += line.len() + 1;
            (at, line)
        })
        .collect()
}

/// Returns the line number, from 1, of a position.
pub(super) fn line_number_at(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}
