//! Finds the part of a file that is most similar to a text which does not occur in it.

use super::matching::lines_with_offsets;
use crate::text::truncate_line;
use std::{collections::HashMap, fmt::Write as _};

const CONTEXT_LINES: usize = 2;
const MAX_LINES: usize = 20;
/// Comparing characters is slow, so the number and the length of compared lines are limited.
const MAX_COMPARED_LINES: usize = 5_000;
const MAX_LINE_LEN: usize = 300;

/// Returns a hint for the model about a text that was not found.
pub(super) fn not_found_hint(text: &str, old: &str) -> String {
    if has_line_numbers(old) {
        return "Leave out the line numbers that read_file shows".to_owned();
    }
    let lines = lines_with_offsets(text);
    let Some(start) = find_nearest_start(&lines, old) else {
        return "No text in the file is similar: read the file again".to_owned();
    };
    let length = old.trim_end().split('\n').count().min(MAX_LINES);
    let first = start.saturating_sub(CONTEXT_LINES);
    let last = (start + length + CONTEXT_LINES).min(lines.len());
    let mut hint = format!("The nearest text is lines {}-{last}:\n", first + 1);
    for (index, (_, line)) in lines.iter().enumerate().take(last).skip(first) {
        // Writing to a string cannot fail.
        let _ = writeln!(hint, "{}\t{}", index + 1, truncate_line(line, MAX_LINE_LEN));
    }
    hint
}

/// Returns true if each line begins with a number and a tab.
fn has_line_numbers(old: &str) -> bool {
    old.lines().all(|line| {
        line.split_once('\t').is_some_and(|(number, _)| {
            let number = number.trim();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

/// Returns the line where most lines are equal, or else where one is similar.
fn find_nearest_start(lines: &[(usize, &str)], old: &str) -> Option<usize> {
    let wanted: Vec<&str> = old.split('\n').map(str::trim).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        // A brace alone is too common to be a clue.
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
        let longest = &longest[..longest.floor_char_boundary(MAX_LINE_LEN)];
        lines
            .iter()
            .enumerate()
            .take(MAX_COMPARED_LINES)
            .filter(|(_, (_, line))| line.len() <= MAX_LINE_LEN)
            .map(|(index, (_, line))| (strsim::sorensen_dice(line.trim(), longest), index))
            .filter(|(alike, _)| *alike > 0.5)
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .map(|(_, index)| index.saturating_sub(place))
    })
}
