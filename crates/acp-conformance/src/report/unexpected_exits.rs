//! Summarizes unexpected exits of the agent, with the last lines of its stderr.

use super::{contents::Report, exit_summary::format_count, sanitize::sanitize_line};

/// Number of stderr lines to show.
const MAX_LAST_LINES: usize = 5;
/// Length of a shown line. Unit: characters.
const MAX_LINE_CHARS: usize = 200;
/// Maximum number of exit kinds, and of cases of each kind, to name.
const MAX_NAMED: usize = 5;

/// Kind of unexpected exit.
pub(super) struct UnexpectedExit<'a> {
    status: &'a str,
    cases: Vec<&'a str>,
    /// Last lines of stderr at the first occurrence.
    pub(super) last_lines: Vec<String>,
}

impl Report {
    /// Groups the unexpected exits by status and last line of stderr.
    pub(super) fn unexpected_exits(&self) -> Vec<UnexpectedExit<'_>> {
        let mut deaths: Vec<UnexpectedExit<'_>> = Vec::new();
        for case in &self.cases {
            let Some(how) = &case.unexpected_exit else {
                continue;
            };
            let words = last_stderr_lines(&case.stderr);
            let is_same = |death: &&mut UnexpectedExit<'_>| {
                death.status == how && death.last_lines.last() == words.last()
            };
            match deaths.iter_mut().find(is_same) {
                Some(death) => death.cases.push(&case.name),
                None => deaths.push(UnexpectedExit {
                    status: how,
                    cases: vec![&case.name],
                    last_lines: words,
                }),
            }
        }
        deaths.sort_by_key(|death| std::cmp::Reverse(death.cases.len()));
        deaths.truncate(MAX_NAMED);
        deaths
    }
}

impl UnexpectedExit<'_> {
    pub(super) fn message(&self) -> String {
        let cases = format_count(self.cases.len(), ["case", "cases"]);
        let named = &self.cases[..self.cases.len().min(MAX_NAMED)];
        let more = if named.len() < self.cases.len() {
            ", …"
        } else {
            ""
        };
        let behind = if self.last_lines.is_empty() {
            "; it wrote nothing to stderr"
        } else {
            "; last lines of stderr:"
        };
        let (how, named) = (self.status, named.join(", "));
        sanitize_line(&format!(
            "the agent's process ended by itself ({how}) in {cases} ({named}{more}){behind}"
        ))
    }
}

fn last_stderr_lines(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    let words = lines
        .take(MAX_LAST_LINES)
        .map(|text| sanitize_line(text).chars().take(MAX_LINE_CHARS).collect());
    let mut words: Vec<String> = words.collect();
    words.reverse();
    words
}
