//! Reads a TOML file into a serde type and collects all errors in it, with their lines.
//!
//! Serde stops at the first error. To collect them all, a value that is wrong is noted and the file is read once
//! more without it, until nothing is wrong. Messages never contain a text that may be a secret.

use super::{
    problem::{ConfigError, Problem},
    toml_deserializer::{Node, ReadError},
};
use serde::de::DeserializeOwned;
use std::{collections::HashSet, path::Path};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

/// Number of errors after which a file is not read further.
const MAX_PROBLEMS: usize = 100;

/// Parses `text`, the contents of `file`. `check` completes the value and reports what serde cannot see. Returns
/// the value only if there are no errors.
pub(crate) fn read_toml<T: DeserializeOwned>(
    file: &Path,
    text: &str,
    check: impl FnOnce(&mut T, &mut Document<'_>),
) -> Result<T, ConfigError> {
    let root = DeTable::parse(text).map_err(|error| ConfigError {
        problems: vec![Problem {
            file: file.to_owned(),
            line: error.span().map(|span| line_at(text, span.start)),
            text: error.message().to_owned(),
        }],
    })?;
    let mut document = Document {
        file,
        text,
        root: &DeValue::Table(root.into_inner()),
        wrong: HashSet::new(),
        problems: Vec::new(),
        unknown_keys: Vec::new(),
    };
    let value = loop {
        match T::deserialize(Node::root(document.root, &document.wrong)) {
            Ok(mut value) => {
                check(&mut value, &mut document);
                break Some(value);
            }
            Err(_) if document.wrong.len() == MAX_PROBLEMS => break None,
            Err(error) => document.note(error),
        }
    };
    let mut problems = document.problems;
    problems.append(&mut document.unknown_keys);
    problems.sort_by_key(|problem| problem.line);
    match value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(ConfigError { problems }),
    }
}

fn line_at(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// A TOML file that is being read. Paths are keys and, inside lists, indexes.
pub(crate) struct Document<'t> {
    file: &'t Path,
    text: &'t str,
    root: &'t DeValue<'t>,
    /// Paths with errors; they are read as if they were not in the file.
    wrong: HashSet<Vec<String>>,
    problems: Vec<Problem>,
    /// Keys without meaning; reported after the other errors of their line.
    unknown_keys: Vec<Problem>,
}

/// Place of a value in the file.
struct ValuePlace {
    /// Keys on the path to the value, separated by dots.
    name: String,
    /// Line of the key; of the value if that is in a list.
    key_line: usize,
    /// Line of the value.
    line: usize,
}

impl Document<'_> {
    fn value(&self, path: &[&str]) -> Option<&DeValue<'_>> {
        path.iter().try_fold(self.root, |value, step| {
            Some(child(value, step)?.1.get_ref())
        })
    }

    /// Returns true if there is a value at `path`, valid or not.
    pub(crate) fn is_written(&self, path: &[&str]) -> bool {
        self.value(path).is_some()
    }

    /// Returns true if there is a value at `path` that serde could read.
    pub(crate) fn is_valid(&self, path: &[&str]) -> bool {
        self.is_written(path) && !self.wrong.iter().any(|wrong| wrong == path)
    }

    /// Returns the indexes of the items of a list that serde could read.
    pub(crate) fn valid_items(&self, list: &[&str]) -> Vec<String> {
        let items = self.value(list).and_then(DeValue::as_array);
        let indexes = (0..items.map_or(0, |items| items.len())).map(|index| index.to_string());
        indexes
            .filter(|index| self.is_valid(&[list, &[index]].concat()))
            .collect()
    }

    /// Records an error for each of the `items` of a list that does not pass `check`.
    pub(crate) fn check_items(
        &mut self,
        list: &[&str],
        items: &[String],
        check: impl Fn(&str) -> Result<(), String>,
    ) {
        for (index, item) in self.valid_items(list).iter().zip(items) {
            if let Err(text) = check(item) {
                self.report(&[list, &[index]].concat(), &text);
            }
        }
    }

    /// Returns the line of the value at `path`, from 1.
    pub(crate) fn line(&self, path: &[&str]) -> usize {
        self.locate(path).line
    }

    /// Records an error of the value at `path`.
    pub(crate) fn report(&mut self, path: &[&str], text: &str) {
        let place = self.locate(path);
        self.add(&place, text);
    }

    /// Records an error of serde, and leaves its value out from now on.
    fn note(&mut self, error: ReadError) {
        let place = self.locate(&error.path);
        match error.is_unknown_key {
            true => self.unknown_keys.push(Problem {
                file: self.file.to_owned(),
                line: Some(place.key_line),
                text: format!("unknown key `{}`; write {}", place.name, error.text),
            }),
            false => self.add(&place, &error.text),
        }
        self.wrong.insert(error.path);
    }

    fn add(&mut self, place: &ValuePlace, text: &str) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            line: Some(place.line),
            text: format!("{}: {text}", place.name),
        });
    }

    fn locate(&self, path: &[impl AsRef<str>]) -> ValuePlace {
        let (mut value, mut names, mut key_at, mut at) = (self.root, Vec::new(), 0, 0);
        for step in path {
            let Some((key, next)) = child(value, step.as_ref()) else {
                break;
            };
            at = next.span().start;
            key_at = key.map_or(at, |key| key.span().start);
            names.extend(key.map(|key| key.get_ref().as_ref()));
            value = next.get_ref();
        }
        ValuePlace {
            name: names.join("."),
            key_line: line_at(self.text, key_at),
            line: line_at(self.text, at),
        }
    }
}

/// Returns the value of a key or at an index, and the key.
fn child<'n>(
    value: &'n DeValue<'n>,
    step: &str,
) -> Option<(Option<&'n Spanned<DeString<'n>>>, &'n Spanned<DeValue<'n>>)> {
    match value {
        DeValue::Table(table) => {
            let (key, value) = table.get_key_value(step)?;
            Some((Some(key), value))
        }
        _ => Some((None, value.get(step.parse::<usize>().ok()?)?)),
    }
}
