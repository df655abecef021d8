//! Finds failures in the output of cargo, pytest, Go, Node and compilers.

use super::command_context::pattern;

/// First lines of a failure.
const HEAD: &str = r"(?x) ^----\ \S+\ stdout\ ----$ | ^error(?:\[\w+\])?:\  | ^(?:FAILED|ERROR)\ \S+\.py
    | ^\s*---\ FAIL:\  | ^\s*(?:not\ ok\ \d+|✖|●|✕|×)\ | ^[^\s:]+\.\w+(?::\d+|\(\d+,\d+\)):";
/// Following lines with location or reason.
const DETAIL: &str = r"^\s*-->|^\s+\S+\.go:\d+: |^\s*(?:location|error): ";
/// Lines that are not failures, or that summarize failures.
const OTHER: &str = r"^(?:warning|note)\b|^\S+: (?:warning|note)\b|^error: (?:could not compile|aborting|(?:doc)?test failed|\d+ target)|failing tests:$";
/// Lines in which test runners report counts.
const COUNT: &str = r"^test result: |^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)\b.* in [\d.]+|^Tests:\s+\d|^(?:#|ℹ) (?:pass|fail|skipped) \d";
/// Number of lines inspected after the first one of a failure.
const MAX_LINES: usize = 10;

/// Returns the failures, and the lines with counts.
pub(super) fn parse_failures(output: &str) -> (Vec<String>, String) {
    let (mut failures, mut counts, mut left) = (Vec::<String>::new(), String::new(), 0);
    for line in output.lines() {
        let is_count = pattern!(COUNT).is_match(line);
        if is_count {
            counts += &format!("{line}\n");
        }
        if is_count || pattern!(OTHER).is_match(line) {
            left = 0;
        } else if let Some(failure) = failures.last_mut().filter(|_| left > 0)
            && (failure.starts_with("----") || pattern!(DETAIL).is_match(line))
        {
            left -= 1;
            if !line.trim().is_empty() {
                *failure += &format!("\n  {line}");
            } else if failure.contains('\n') {
                left = 0;
            }
        } else if pattern!(HEAD).is_match(line) {
            failures.push(line.trim().to_owned());
            left = MAX_LINES;
        } else {
            left = left.saturating_sub(1);
        }
    }
    (failures, counts)
}
