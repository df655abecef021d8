//! Failures: what test runners and compilers print, sorted into what failed, where, and how often.

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
                || report.node(line)
                || report.compiler(line);
        }
        report
    }

    /// Nothing was tested, since there are errors and no counts.
    pub(super) fn broke_off(&self) -> bool {
        self.passed.is_none() && self.failed.is_none() && !self.failures.is_empty()
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

    fn rustc(&mut self, line: &str, rest: &[&str]) -> bool {
        let Some(parts) = pattern!(r"^(error|warning)(\[[\w:]+\])?: (.+)$").captures(line) else {
            return false;
        };
        let message = parts[3].to_owned();
        let place = rest
            .iter()
            .take(4)
            .find_map(|next| pattern!(r"^\s*--> (.+:\d+):\d+").captures(next))
            .map(|found| found[1].to_owned());
        let Some(place) = place else {
            return true;
        };
        let name = parts
            .get(2)
            .map_or("", |code| code.as_str().trim_matches(['[', ']']));
        let failure = Failure {
            name: name.to_owned(),
            place,
            message,
        };
        let list = if &parts[1] == "error" {
            &mut self.failures
        } else {
            &mut self.warnings
        };
        if !list.contains(&failure) {
            list.push(failure);
        }
        true
    }

    fn cargo_test(&mut self, line: &str, rest: &[&str]) -> bool {
        let result = pattern!(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored");
        let panicked = pattern!(r"^thread '(.+?)'(?: \(\d+\))? panicked at (.+?:\d+):\d+:?$");
        if let Some(parts) = result.captures(line) {
            for (count, part) in [
                (&mut self.passed, 1),
                (&mut self.failed, 2),
                (&mut self.skipped, 3),
            ] {
                *count = Some(
                    count
                        .unwrap_or(0)
                        .saturating_add(parts[part].parse().unwrap_or(0)),
                );
            }
        } else if let Some(parts) = pattern!(r"^test (\S+)(?: - .+)? \.\.\. FAILED").captures(line)
        {
            self.add(Failure {
                name: parts[1].to_owned(),
                ..Failure::default()
            });
        } else if let Some(parts) = panicked.captures(line) {
            let message: Vec<&str> = rest
                .iter()
                .take(6)
                .take_while(|next| {
                    !next.trim().is_empty()
                        && !next.starts_with("note:")
                        && !next.starts_with("stack backtrace")
                })
                .copied()
                .collect();
            self.add(Failure {
                name: parts[1].to_owned(),
                place: parts[2].to_owned(),
                message: message.join("\n"),
            });
        } else {
            return false;
        }
        true
    }

    fn pytest(&mut self, line: &str) -> bool {
        if let Some(parts) =
            pattern!(r"^(?:FAILED|ERROR) (\S+?\.py)(?:::(\S+))?(?: - (.*))?$").captures(line)
        {
            let name = parts.get(2).map_or("", |name| name.as_str());
            let message = parts.get(3).map_or("", |message| message.as_str());
            let place = self
                .failures
                .iter()
                .position(|other| other.name.is_empty() && other.place.starts_with(&parts[1]))
                .map(|at| self.failures.remove(at).place);
            self.add(Failure {
                name: name.to_owned(),
                place: place.unwrap_or_else(|| parts[1].to_owned()),
                message: message.to_owned(),
            });
        } else if let Some(parts) =
            pattern!(r"^(\S+\.py:\d+): (\w*(?:Error|Exception|Failure)\b.*)$").captures(line)
        {
            self.add(Failure {
                name: String::new(),
                place: parts[1].to_owned(),
                message: parts[2].to_owned(),
            });
        } else if pattern!(r"^=*\s*\d+ (passed|failed|error|skipped).* in [\d.]+").is_match(line) {
            for part in pattern!(r"(\d+) (passed|failed|errors?|skipped)").captures_iter(line) {
                let number = part[1].parse().ok();
                match &part[2] {
                    "passed" => self.passed = number,
                    "skipped" => self.skipped = number,
                    _ => {
                        self.failed =
                            Some(self.failed.unwrap_or(0).saturating_add(number.unwrap_or(0)))
                    }
                }
            }
        } else {
            return false;
        }
        true
    }

    fn go(&mut self, line: &str, rest: &[&str]) -> bool {
        let Some(parts) = pattern!(r"^\s*--- (FAIL|PASS|SKIP): (\S+) \(").captures(line) else {
            return false;
        };
        let count = match &parts[1] {
            "FAIL" => &mut self.failed,
            "PASS" => &mut self.passed,
            _ => &mut self.skipped,
        };
        *count = Some(count.unwrap_or(0).saturating_add(1));
        if &parts[1] == "FAIL" {
            let said = rest
                .iter()
                .take(6)
                .take_while(|next| !next.trim_start().starts_with("---"))
                .find_map(|next| pattern!(r"^\s+(\S+\.go:\d+): (.*)$").captures(next));
            self.add(Failure {
                name: parts[2].to_owned(),
                place: said
                    .as_ref()
                    .map_or(String::new(), |said| said[1].to_owned()),
                message: said
                    .as_ref()
                    .map_or(String::new(), |said| said[2].to_owned()),
            });
        }
        true
    }

    fn node(&mut self, line: &str) -> bool {
        if let Some(parts) = pattern!(r"^(?:#|ℹ) (pass|fail|skipped) (\d+)$").captures(line) {
            let number = parts[2].parse().ok();
            match &parts[1] {
                "pass" => self.passed = number,
                "fail" => self.failed = number,
                _ => self.skipped = number,
            }
        } else if let Some(parts) =
            pattern!(r"^\s*Tests:?\s+(.*\d+ (?:failed|passed).*)$").captures(line)
        {
            for part in pattern!(r"(\d+) (passed|failed|skipped)").captures_iter(&parts[1]) {
                let number = part[1].parse().ok();
                match &part[2] {
                    "passed" => self.passed = number,
                    "failed" => self.failed = number,
                    _ => self.skipped = number,
                }
            }
        } else if let Some(parts) =
            pattern!(r"^\s*(?:not ok \d+ -|✖|●|✕|×)\s+(.+?)(?: \([\d.]+ ?m?s\))?$").captures(line)
        {
            if &parts[1] != "failing tests:" && !parts[1].contains(" # ") {
                self.add(Failure {
                    name: parts[1].to_owned(),
                    ..Failure::default()
                });
            }
        } else {
            return false;
        }
        true
    }

    /// `file:line:column: error: text` and `file(line,column): error TS1: text`.
    fn compiler(&mut self, line: &str) -> bool {
        let plain = pattern!(r"^(\S+\.\w+:\d+)(?::\d+)?: (?:fatal )?(error|warning)?:? ?(.+)$");
        let typed = pattern!(r"^(\S+\.\w+)\((\d+),\d+\): (error|warning) (.+)$");
        let (place, warns, message) = if let Some(parts) = typed.captures(line) {
            (
                format!("{}:{}", &parts[1], &parts[2]),
                &parts[3] == "warning",
                parts[4].to_owned(),
            )
        } else if let Some(parts) = plain.captures(line) {
            let warns = parts.get(2).is_some_and(|word| word.as_str() == "warning");
            (parts[1].to_owned(), warns, parts[3].to_owned())
        } else {
            return false;
        };
        let failure = Failure {
            name: String::new(),
            place,
            message,
        };
        let list = if warns {
            &mut self.warnings
        } else {
            &mut self.failures
        };
        let known = list.iter().any(|other| other.place == failure.place);
        if !known {
            list.push(failure);
        }
        true
    }
}
