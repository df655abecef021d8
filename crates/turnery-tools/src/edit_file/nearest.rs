//! Nearest: the place in a file that looks most like a text which is not in it.

use super::matching::lines;
use crate::text::cut;
use std::{collections::HashMap, fmt::Write as _};

const AROUND: usize = 2;
const MOST_LINES: usize = 20;
/// Comparing letters is slow: only so many lines, and none that are longer.
const COMPARED: usize = 5_000;
const LONGEST: usize = 300;

/// What a model is told of a text that was not found.
pub(super) fn hint(text: &str, old: &str) -> String {
    if numbered(old) {
        return "Leave out the line numbers that read_file shows".to_owned();
    }
    let lines = lines(text);
    let Some(start) = start(&lines, old) else {
        return "Nothing in the file is like it: read the file again".to_owned();
    };
    let length = old.trim_end().split('\n').count().min(MOST_LINES);
    let first = start.saturating_sub(AROUND);
    let last = (start + length + AROUND).min(lines.len());
    let mut hint = format!("The nearest text is lines {}-{last}:\n", first + 1);
    for (index, (_, line)) in lines.iter().enumerate().take(last).skip(first) {
        // Writing to a string cannot fail.
        let _ = writeln!(hint, "{}\t{}", index + 1, cut(line, LONGEST));
    }
    hint
}

/// Whether each line begins with a number and a tab.
fn numbered(old: &str) -> bool {
    old.lines().all(|line| {
        line.split_once('\t').is_some_and(|(number, _)| {
            let number = number.trim();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

/// Where the most lines are the same; if none is, where one is alike.
fn start(lines: &[(usize, &str)], old: &str) -> Option<usize> {
    let wanted: Vec<&str> = old.split('\n').map(str::trim).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        // A brace alone says nothing.
        if line.len() > 2 {
            places.entry(line).or_insert(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, (_, line)) in lines.iter().enumerate() {
        if let Some(place) = places.get(line.trim()) {
            *votes.entry(index.saturating_sub(*place)).or_default() += 1;
        }
    }
    let most = votes
        .into_iter()
        .max_by_key(|(start, votes)| (*votes, usize::MAX - start))
        .map(|(start, _)| start);
    most.or_else(|| {
        let (place, longest) = wanted
            .iter()
            .enumerate()
            .max_by_key(|(_, line)| line.len())?;
        let longest = &longest[..longest.floor_char_boundary(LONGEST)];
        lines
            .iter()
            .enumerate()
            .take(COMPARED)
            .filter(|(_, (_, line))| line.len() <= LONGEST)
            .map(|(index, (_, line))| (strsim::sorensen_dice(line.trim(), longest), index))
            .filter(|(alike, _)| *alike > 0.5)
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .map(|(_, index)| index.saturating_sub(place))
    })
}
