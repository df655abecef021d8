//! Parses marks: comments that name the requirements that a test proves.
//!
//! In Rust, `// proves: TURN-8, D-4` directly above a test's attributes. Several such lines may follow each
//! other, and other comments may stand between them and the test. In a case file, `# proves: ACP-2` anywhere,
//! since the whole file is one test, and the rules after the `@` of each check: `cargo xtask ci` plays the cases
//! against turnery, where none of them may fail.

use super::table::RequirementId;
use std::{collections::BTreeSet, fmt, path::Path};

/// A requirement id proved by a test.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) id: RequirementId,
    pub(super) file: String,
    /// Line of the mark, from 1.
    line: usize,
    /// Name of the test function; `None` for a case file.
    test: Option<String>,
}

/// Error in a mark.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkError {
    file: String,
    line: usize,
    message: String,
}

type Marks = (Vec<Proof>, Vec<MarkError>);

/// Returns the parser for the marks of a file, or `None` if the file cannot have any.
pub(super) fn mark_reader(path: &str) -> Option<fn(&str, &str) -> Marks> {
    match Path::new(path).extension()?.to_str()? {
        "rs" => Some(rust_marks),
        "case" => Some(case_marks),
        _ => None,
    }
}

/// Parses the marks of a Rust file.
pub(super) fn rust_marks(path: &str, text: &str) -> Marks {
    let (mut proofs, mut faults) = (Vec::new(), Vec::new());
    let generated = battery_tests(text);
    let mut waiting: Vec<(usize, RequirementId)> = Vec::new();
    let mut attributes = Attributes::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if attributes.is_open() || line.starts_with("#[") {
            attributes.add_line(line);
        } else if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!']);
            match parse_mark(comment) {
                Mark::None => {}
                Mark::Ids(ids) if line == format!("//{comment}") => {
                    let taken: Vec<RequirementId> = waiting.iter().map(|(_, id)| *id).collect();
                    for id in parse_ids(path, number, &ids, &taken, &mut faults) {
                        waiting.push((number, id));
                    }
                }
                Mark::Ids(_) | Mark::Malformed => {
                    faults.push(malformed_mark(path, number, "// proves: TURN-8, D-4"))
                }
            }
        } else {
            let name = function_name(line);
            let test = name.filter(|name| attributes.is_test || generated.contains(name));
            for (line, id) in waiting.drain(..) {
                let proof = Proof::new(id, path, line, test);
                if test.is_some() {
                    proofs.push(proof);
                } else {
                    let message = format!("{id} stands above something that is no test");
                    faults.push(proof.error(message));
                }
            }
            attributes = Attributes::default();
        }
    }
    for (line, id) in waiting {
        let proof = Proof::new(id, path, line, None);
        faults.push(proof.error(format!("{id} stands above nothing")));
    }
    (proofs, faults)
}

/// Parses the marks of a case file.
pub(super) fn case_marks(path: &str, text: &str) -> Marks {
    let (mut proofs, mut faults) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let Some(comment) = text.trim().strip_prefix('#') else {
            for id in checked_rules(text) {
                if !proofs.iter().any(|proof: &Proof| proof.id == id) {
                    proofs.push(Proof::new(id, path, line, None));
                }
            }
            continue;
        };
        match parse_mark(comment) {
            Mark::None => {}
            Mark::Malformed => faults.push(malformed_mark(path, line, "# proves: ACP-2, ACP-3")),
            Mark::Ids(ids) => {
                let taken: Vec<RequirementId> =
                    proofs.iter().map(|proof: &Proof| proof.id).collect();
                let ids = parse_ids(path, line, &ids, &taken, &mut faults);
                proofs.extend(ids.into_iter().map(|id| Proof::new(id, path, line, None)));
            }
        }
    }
    (proofs, faults)
}

/// Returns the rules that a step of a case checks: those after its last ` @ `.
fn checked_rules(step: &str) -> Vec<RequirementId> {
    let rules = step.rsplit_once(" @ ").map(|(_, rules)| rules);
    let rules: Option<Vec<RequirementId>> = rules
        .unwrap_or_default()
        .split_whitespace()
        .map(RequirementId::parse)
        .collect();
    rules.unwrap_or_default()
}

/// Mark parsed from a comment.
enum Mark<'a> {
    None,
    /// The words between the commas.
    Ids(Vec<&'a str>),
    /// A malformed mark.
    Malformed,
}

fn parse_mark(comment: &str) -> Mark<'_> {
    if let Some(ids) = comment.strip_prefix(" proves: ") {
        return Mark::Ids(ids.split(',').map(str::trim).collect());
    }
    let words = comment.trim().to_ascii_uppercase();
    let mut words = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let begins = words.next() == Some("PROVES") || comment.trim().starts_with("proves:");
    if begins && words.any(|word| RequirementId::parse(word).is_some()) {
        return Mark::Malformed;
    }
    Mark::None
}

/// Parses the ids of one mark. Adds an error to `errors` for each invalid or repeated id.
fn parse_ids(
    file: &str,
    line: usize,
    words: &[&str],
    taken: &[RequirementId],
    errors: &mut Vec<MarkError>,
) -> Vec<RequirementId> {
    let mut ids = Vec::new();
    for word in words {
        let message = match RequirementId::parse(word) {
            None => format!("{word:?} is no id"),
            Some(id) if taken.contains(&id) || ids.contains(&id) => format!("{id} is named twice"),
            Some(id) => {
                ids.push(id);
                continue;
            }
        };
        let file = file.to_owned();
        errors.push(MarkError {
            file,
            line,
            message,
        });
    }
    ids
}

fn malformed_mark(file: &str, line: usize, right: &str) -> MarkError {
    MarkError {
        file: file.to_owned(),
        line,
        message: format!("write a mark like this: `{right}`"),
    }
}

/// Attributes above an item.
#[derive(Default)]
struct Attributes {
    /// True if one of the attributes makes the item a test.
    is_test: bool,
    /// Number of open brackets.
    depth: usize,
}

impl Attributes {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn add_line(&mut self, line: &str) {
        let path = line.trim_start_matches("#[");
        let path = path.split(['(', ']']).next().unwrap_or_default();
        if !self.is_open() && path.split("::").last() == Some("test") {
            self.is_test = true;
        }
        // Every second piece between quotes is a string, where brackets do not count.
        for code in line.split('"').step_by(2) {
            self.depth += code.matches('[').count();
            self.depth = self.depth.saturating_sub(code.matches(']').count());
        }
    }
}

/// Returns the name of the function that starts on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
}

/// Returns the functions that `battery!(...)` in this file turns into tests.
fn battery_tests(text: &str) -> BTreeSet<&str> {
    let calls = text.split("battery!(").skip(1);
    let inside = calls.filter_map(|rest| Some(rest.split_once(')')?.0));
    inside
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .collect()
}

impl Proof {
    fn new(id: RequirementId, file: &str, line: usize, test: Option<&str>) -> Self {
        Self {
            id,
            file: file.to_owned(),
            line,
            test: test.map(str::to_owned),
        }
    }

    /// Returns an error for this mark.
    pub(super) fn error(&self, message: String) -> MarkError {
        MarkError {
            file: self.file.clone(),
            line: self.line,
            message,
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match &self.test {
            Some(test) => write!(f, " {test}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}
