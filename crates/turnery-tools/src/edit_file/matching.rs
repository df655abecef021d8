//! Matching: where the text that a model wants replaced stands in a file. Exact first; then line by
//! line without regard to the white space around each line, with the replacement indented as the
//! file is. More than one place is never guessed at.

use super::indent::Reindent;
use std::ops::Range;

/// How many places are named when there are several.
pub(super) const NAMED: usize = 10;

/// More places than this are not counted, since each costs as much as it is long.
pub(super) const COUNTED: usize = 1_000;

/// One replacement to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    /// What goes.
    pub(super) range: Range<usize>,
    /// What comes.
    pub(super) text: String,
}

/// Why nothing is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// It stands nowhere.
    NotFound,
    /// It stands in several places, and only one was wanted.
    Ambiguous {
        /// How many.
        places: usize,
        /// The first [`NAMED`] lines, from 1.
        lines: Vec<usize>,
    },
}

/// The replacements to make, in order and apart from each other. All texts have bare line feeds;
/// `old` is not empty.
pub(super) fn replacements(
    text: &str,
    old: &str,
    new: &str,
    all: bool,
) -> Result<Vec<Replacement>, Mismatch> {
    let exact = exact(text, old, all);
    let found = if exact.is_empty() {
        by_lines(text, old, new, all)
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
        [] => Err(Mismatch::NotFound),
        [_] => Ok(found),
        several if all => Ok(apart(several)),
        several => Err(Mismatch::Ambiguous {
            places: several.len(),
            lines: several
                .iter()
                .take(NAMED)
                .map(|replacement| line_at(text, replacement.range.start))
                .collect(),
        }),
    }
}

/// The text with the replacements made.
pub(super) fn apply(text: &str, replacements: &[Replacement]) -> String {
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

/// Where `old` stands: apart from each other if all are wanted, or else as many as are counted.
fn exact(text: &str, old: &str, all: bool) -> Vec<Range<usize>> {
    let range = |start| start..start + old.len();
    match all {
        true => text.match_indices(old).map(|(at, _)| range(at)).collect(),
        false => starts(text, old).take(COUNTED).map(range).collect(),
    }
}

/// Where `old` begins, also where it overlaps with itself: those are different places to change.
fn starts<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(old)?;
        from = start + step;
        Some(start)
    })
}

fn apart(several: &[Replacement]) -> Vec<Replacement> {
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

/// Runs of whole lines that are equal to the lines of `old` but for the space around each.
fn by_lines(text: &str, old: &str, new: &str, all: bool) -> Vec<Replacement> {
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    // The line that says most is compared first: empty ones and braces are like many others.
    let telling = (0..wanted.len())
        .max_by_key(|at| wanted[*at].trim().len())
        .unwrap_or(0);
    let lines = lines(text);
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
            let reindented = Reindent::learn(pairs)?.apply(new);
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
        .take(if all { usize::MAX } else { COUNTED })
        .collect()
}

/// Each line, without its end, and where it begins.
pub(super) fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let at = start;
            start += line.len() + 1;
            (at, line)
        })
        .collect()
}

/// The line, from 1, that a place is on.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}
