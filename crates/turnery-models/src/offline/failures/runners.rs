//! Runners: failing tests and counts, as Cargo, pytest, Go and the runners of Node print them.

use super::{Failure, Report};
use crate::offline::rules::pattern;

impl Report {
    pub(super) fn cargo_test(&mut self, line: &str, rest: &[&str]) -> bool {
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

    pub(super) fn pytest(&mut self, line: &str) -> bool {
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

    pub(super) fn go(&mut self, line: &str, rest: &[&str]) -> bool {
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

    pub(super) fn node(&mut self, line: &str, rest: &[&str]) -> bool {
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
                let (place, message) = tap(rest);
                self.add(Failure {
                    name: parts[1].to_owned(),
                    place,
                    message,
                });
            }
        } else {
            return false;
        }
        true
    }
}

/// The place and the message of a failure, as Node tells them below its name.
fn tap(rest: &[&str]) -> (String, String) {
    let block: Vec<&str> = rest
        .iter()
        .map(|line| line.trim())
        .take_while(|line| *line != "..." && !line.starts_with("not ok "))
        .take(40)
        .collect();
    if block.first() != Some(&"---") {
        return (String::new(), String::new());
    }
    let field = |key: &str| block.iter().position(|line| line.starts_with(key));
    let place = field("location:")
        .and_then(|at| pattern!(r"'(?:file://)?(.+:\d+):\d+'").captures(block[at]))
        .map_or(String::new(), |parts| parts[1].to_owned());
    let message = field("error:").map_or(String::new(), |at| match &block[at][6..].trim() {
        text if text.starts_with('|') => block[at + 1..]
            .iter()
            .take_while(|line| {
                !pattern!(r"^(code|name|expected|actual|operator|stack|cause|failureType):")
                    .is_match(line)
            })
            .copied()
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned(),
        text => text.trim_matches(['\'', '"']).to_owned(),
    });
    (place, message)
}
