//! Deaths: how the agent's process ended though nobody had told it to, and its last words.

use super::{Report, ending::counted, letters::line};

/// So many lines of stderr are its last words.
const WORDS: usize = 5;
/// So much of a line is shown. Unit: characters.
const WIDTH: usize = 200;
/// So many ways to end, and so many cases of each, are named.
const NAMED: usize = 5;

/// One way in which it ended.
pub(super) struct Death<'a> {
    how: &'a str,
    cases: Vec<&'a str>,
    /// The last lines of stderr, when it was first seen.
    pub(super) words: Vec<String>,
}

impl Report {
    /// The ways in which it ended: those that end in the same last line are one.
    pub(super) fn deaths(&self) -> Vec<Death<'_>> {
        let mut deaths: Vec<Death<'_>> = Vec::new();
        for case in &self.cases {
            let Some(how) = &case.died else { continue };
            let words = last_words(&case.stderr);
            let is_same =
                |death: &&mut Death<'_>| death.how == how && death.words.last() == words.last();
            match deaths.iter_mut().find(is_same) {
                Some(death) => death.cases.push(&case.name),
                None => deaths.push(Death {
                    how,
                    cases: vec![&case.name],
                    words,
                }),
            }
        }
        deaths.sort_by_key(|death| std::cmp::Reverse(death.cases.len()));
        deaths.truncate(NAMED);
        deaths
    }
}

impl Death<'_> {
    pub(super) fn says(&self) -> String {
        let cases = counted(self.cases.len(), ["case", "cases"]);
        let named = &self.cases[..self.cases.len().min(NAMED)];
        let more = if named.len() < self.cases.len() {
            ", …"
        } else {
            ""
        };
        let behind = if self.words.is_empty() {
            "; it wrote nothing to stderr"
        } else {
            "; its last words on stderr:"
        };
        let (how, named) = (self.how, named.join(", "));
        line(&format!(
            "the agent's process ended by itself ({how}) in {cases} ({named}{more}){behind}"
        ))
    }
}

fn last_words(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    let words = lines
        .take(WORDS)
        .map(|text| line(text).chars().take(WIDTH).collect());
    let mut words: Vec<String> = words.collect();
    words.reverse();
    words
}
