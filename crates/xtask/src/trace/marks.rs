//! Marks: comment lines that say what a test proves.
//!
//! In Rust, `// proves: TURN-8, D-4` directly above a test's attributes; several such lines may follow
//! each other, and other comments may stand between them and the test. In a case file,
//! `# proves: ACP-2` anywhere: the whole file is one test.

use super::table::Id;
use std::{collections::BTreeSet, fmt, path::Path};

/// A test that proves an id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) id: Id,
    pub(super) file: String,
    /// Where the mark is; 1-based.
    line: usize,
    /// The test's function; nothing for a case file.
    test: Option<String>,
}

/// A mark that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    file: String,
    line: usize,
    what: String,
}

type Marks = (Vec<Proof>, Vec<Fault>);

/// How to read the marks of this file, if it may have some.
pub(super) fn reader(path: &str) -> Option<fn(&str, &str) -> Marks> {
    match Path::new(path).extension()?.to_str()? {
        "rs" => Some(rust),
        "case" => Some(case),
        _ => None,
    }
}

/// The marks of a Rust file.
pub(super) fn rust(path: &str, text: &str) -> Marks {
    let (mut proofs, mut faults) = (Vec::new(), Vec::new());
    let generated = battery(text);
    let mut waiting: Vec<(usize, Id)> = Vec::new();
    let mut attributes = Attributes::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if attributes.open() || line.starts_with("#[") {
            attributes.take(line);
        } else if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!']);
            match mark(comment) {
                Mark::None => {}
                Mark::Ids(ids) if line == format!("//{comment}") => {
                    let taken: Vec<Id> = waiting.iter().map(|(_, id)| *id).collect();
                    for id in each(path, number, &ids, &taken, &mut faults) {
                        waiting.push((number, id));
                    }
                }
                Mark::Ids(_) | Mark::Odd => {
                    faults.push(odd(path, number, "// proves: TURN-8, D-4"))
                }
            }
        } else {
            let name = function(line);
            let test = name.filter(|name| attributes.test || generated.contains(name));
            for (line, id) in waiting.drain(..) {
                let (file, test) = (path.to_owned(), test.map(str::to_owned));
                if test.is_some() {
                    proofs.push(Proof {
                        id,
                        file,
                        line,
                        test,
                    });
                } else {
                    let what = format!("{id} stands above something that is no test");
                    faults.push(Fault { file, line, what });
                }
            }
            attributes = Attributes::default();
        }
    }
    for (line, id) in waiting {
        let what = format!("{id} stands above nothing");
        let file = path.to_owned();
        faults.push(Fault { file, line, what });
    }
    (proofs, faults)
}

/// The marks of a case file.
pub(super) fn case(path: &str, text: &str) -> Marks {
    let (mut proofs, mut faults) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let Some(comment) = text.trim().strip_prefix('#') else {
            continue;
        };
        match mark(comment) {
            Mark::None => {}
            Mark::Odd => faults.push(odd(path, line, "# proves: ACP-2, ACP-3")),
            Mark::Ids(ids) => {
                let taken: Vec<Id> = proofs.iter().map(|proof: &Proof| proof.id).collect();
                for id in each(path, line, &ids, &taken, &mut faults) {
                    let file = path.to_owned();
                    proofs.push(Proof {
                        id,
                        file,
                        line,
                        test: None,
                    });
                }
            }
        }
    }
    (proofs, faults)
}

/// What a comment is.
enum Mark<'a> {
    None,
    /// The words between the commas.
    Ids(Vec<&'a str>),
    /// It wants to be a mark and is written differently.
    Odd,
}

fn mark(comment: &str) -> Mark<'_> {
    if let Some(ids) = comment.strip_prefix(" proves: ") {
        return Mark::Ids(ids.split(',').map(str::trim).collect());
    }
    let words = comment.trim().to_ascii_uppercase();
    let mut words = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let begins = words.next() == Some("PROVES") || comment.trim().starts_with("proves:");
    if begins && words.any(|word| Id::parse(word).is_some()) {
        return Mark::Odd;
    }
    Mark::None
}

/// The ids of one mark; those that are none, or were named before, become faults.
fn each(file: &str, line: usize, words: &[&str], taken: &[Id], faults: &mut Vec<Fault>) -> Vec<Id> {
    let mut ids = Vec::new();
    for word in words {
        let what = match Id::parse(word) {
            None => format!("{word:?} is no id"),
            Some(id) if taken.contains(&id) || ids.contains(&id) => format!("{id} is named twice"),
            Some(id) => {
                ids.push(id);
                continue;
            }
        };
        let file = file.to_owned();
        faults.push(Fault { file, line, what });
    }
    ids
}

fn odd(file: &str, line: usize, right: &str) -> Fault {
    Fault {
        file: file.to_owned(),
        line,
        what: format!("write a mark like this: `{right}`"),
    }
}

/// The attributes above an item.
#[derive(Default)]
struct Attributes {
    /// One of them makes the item a test.
    test: bool,
    /// Brackets that are still open.
    depth: usize,
}

impl Attributes {
    fn open(&self) -> bool {
        self.depth > 0
    }

    fn take(&mut self, line: &str) {
        let path = line.trim_start_matches("#[");
        let path = path.split(['(', ']']).next().unwrap_or_default();
        if !self.open() && path.split("::").last() == Some("test") {
            self.test = true;
        }
        // Every second piece between quotes is inside of a text, where brackets mean nothing.
        for code in line.split('"').step_by(2) {
            self.depth += code.matches('[').count();
            self.depth = self.depth.saturating_sub(code.matches(']').count());
        }
    }
}

/// The name of the function that this line begins.
fn function(line: &str) -> Option<&str> {
    let mut rest = line;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
}

/// The functions that `battery!(...)` of this file makes tests of.
fn battery(text: &str) -> BTreeSet<&str> {
    let calls = text.split("battery!(").skip(1);
    let inside = calls.filter_map(|rest| Some(rest.split_once(')')?.0));
    inside
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .collect()
}

impl Proof {
    /// Say what is wrong with this mark.
    pub(super) fn fault(&self, what: String) -> Fault {
        Fault {
            file: self.file.clone(),
            line: self.line,
            what,
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}
