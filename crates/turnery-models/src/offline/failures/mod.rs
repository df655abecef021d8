//! Failures: what test runners and compilers print, sorted into what failed, where, and how often.

mod compilers;
mod runners;

use super::{output::short, rules::pattern};

/// One failing test, error or warning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    /// The test or the error code; may be empty.
    pub(super) name: String,
    /// `file:line`, as printed; may be empty.
    pub(super) place: String,
    /// What it says; may be empty.
    pub(super) message: String,
}

impl Failure {
    pub(super) fn place_and_name(&self) -> String {
        match (self.place.is_empty(), self.name.is_empty()) {
            (false, false) => format!("{} ({})", self.place, self.name),
            (false, true) => self.place.clone(),
            (true, _) => self.name.clone(),
        }
    }

    pub(super) fn in_a_line(&self) -> String {
        let first = self.message.lines().next().unwrap_or_default();
        short(&format!("{}  {first}", self.place_and_name()), 160)
    }
}

/// What a run printed, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) failures: Vec<Failure>,
    pub(super) warnings: Vec<Failure>,
    passed: Option<u64>,
    failed: Option<u64>,
    skipped: Option<u64>,
}

impl Report {
    pub(super) fn of(text: &str) -> Self {
        let text = pattern!(r"\x1b\[[0-9;]*[A-Za-z]").replace_all(text, "");
        let lines: Vec<&str> = text.lines().collect();
        let mut report = Self::default();
        for (at, line) in lines.iter().enumerate() {
            let rest = &lines[at + 1..];
            let _known = report.rustc(line, rest)
                || report.cargo_test(line, rest)
                || report.pytest(line)
                || report.go(line, rest)
                || report.node(line, rest)
                || report.compiler(line);
        }
        report
    }

    /// Nothing was tested, since there are errors and no counts.
    pub(super) fn broke_off(&self) -> bool {
        self.passed.is_none() && self.failed.is_none() && !self.failures.is_empty()
    }

    /// There is something to tell of.
    pub(super) fn has_failures(&self) -> bool {
        !self.failures.is_empty() || self.failed.is_some_and(|number| number > 0)
    }

    /// `2 failed, 40 passed, 1 ignored`; empty when nothing was counted.
    pub(super) fn counts(&self) -> String {
        let failed = self.failed.filter(|number| *number > 0);
        let skipped = self.skipped.filter(|number| *number > 0);
        let mut parts: Vec<String> = [
            (failed, "failed"),
            (self.passed, "passed"),
            (skipped, "skipped"),
        ]
        .into_iter()
        .filter_map(|(number, word)| number.map(|number| format!("{number} {word}")))
        .collect();
        if parts.is_empty() && !self.failures.is_empty() {
            parts.push(super::output::count(self.failures.len(), "error"));
        }
        if parts.is_empty() && !self.warnings.is_empty() {
            parts.push(super::output::count(self.warnings.len(), "warning"));
        }
        parts.join(", ")
    }

    fn add(&mut self, failure: Failure) {
        if self.failures.contains(&failure) {
            return;
        }
        let same = |other: &&mut Failure| {
            !failure.name.is_empty()
                && other.name == failure.name
                && (other.place.is_empty() || failure.place.is_empty())
        };
        match self.failures.iter_mut().find(same) {
            Some(other) => {
                if other.place.is_empty() {
                    other.place = failure.place;
                }
                if other.message.is_empty() {
                    other.message = failure.message;
                }
            }
            None => self.failures.push(failure),
        }
    }
}
