//! Failures in the output of cargo, pytest, Go, Node and compilers.

use super::conversation::pattern;

/// Lines that begin a failure.
const HEAD: &str = r"(?x) ^----\ \S+\ stdout\ ----$ | ^error(?:\[\w+\])?:\  | ^(?:FAILED|ERROR)\ \S+\.py
    | ^\s*---\ FAIL:\  | ^\s*(?:not\ ok\ \d+|✖|●|✕|×)\ | ^[^\s:]+\.\w+(?::\d+|\(\d+,\d+\)):";
/// Lines below that say where or why.
const DETAIL: &str = r"^\s*-->|^\s+\S+\.go:\d+: |^\s*(?:location|error): ";
/// Lines that are no failure, or sum failures up.
const OTHER: &str = r"^(?:warning|note)\b|^\S+: (?:warning|note)\b|^error: (?:could not compile|aborting|(?:doc)?test failed|\d+ target)|failing tests:$";
/// Lines in which runners count.
const COUNT: &str = r"^test result: |^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)\b.* in [\d.]+|^Tests:\s+\d|^(?:#|ℹ) (?:pass|fail|skipped) \d";
/// Lines below the first one that are looked at.
const MAX_LINES: usize = 10;

/// The failures, and the lines in which the runners count.
pub(super) fn parse(output: &str) -> (Vec<String>, String) {
    let (mut failures, mut counts, mut left) = (Vec::<String>::new(), String::new(), 0);
    for line in output.lines() {
        let (is_count, is_other) = (
            pattern!(COUNT).is_match(line),
            pattern!(OTHER).is_match(line),
        );
        if is_count || is_other {
            left = 0;
            counts += &if is_count {
                format!("{line}\n")
            } else {
                String::new()
            };
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
