//! Compilers: errors and warnings with their file and line.

use super::{Failure, Report};
use crate::offline::rules::pattern;

impl Report {
    pub(super) fn rustc(&mut self, line: &str, rest: &[&str]) -> bool {
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

    /// `file:line:column: error: text` and `file(line,column): error TS1: text`.
    pub(super) fn compiler(&mut self, line: &str) -> bool {
        let plain = pattern!(r"^(\S+\.\w+:\d+):(\d+:)? (?:fatal )?(?:(error|warning): ?)?(.+)$");
        let typed = pattern!(r"^(\S+\.\w+)\((\d+),\d+\): (error|warning) (.+)$");
        let (place, warns, message) = if let Some(parts) = typed.captures(line) {
            (
                format!("{}:{}", &parts[1], &parts[2]),
                &parts[3] == "warning",
                parts[4].to_owned(),
            )
        } else if let Some(parts) = plain.captures(line)
            && (parts.get(2).is_some() || parts.get(3).is_some())
        {
            let warns = parts.get(3).is_some_and(|word| word.as_str() == "warning");
            (parts[1].to_owned(), warns, parts[4].to_owned())
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
