//! Reads a TOML file and collects all errors in it, with their lines.
//!
//! The keys that are read are the only valid ones, so no second list has to be kept in step with them.

use std::{
    fmt,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// All errors of one file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub(crate) struct ConfigError {
    /// The errors; never empty.
    pub(crate) problems: Vec<Problem>,
}

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Path of the file.
    pub(crate) file: PathBuf,
    /// Line of the error, from 1; `None` if it concerns the whole file.
    pub(crate) line: Option<usize>,
    /// Message that says what is wrong and what to write instead.
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)
    }
}

impl ConfigError {
    /// Returns an error that concerns the whole file.
    pub(crate) fn of_file(file: &Path, text: String) -> Self {
        Self {
            problems: vec![Problem {
                file: file.to_owned(),
                line: None,
                text,
            }],
        }
    }
}

/// Returns a text that suggests the nearest valid word, or lists all of them if none is near.
pub(crate) fn alternatives(wrong: &str, all: &[&str]) -> String {
    match nearest(wrong, all) {
        Some(near) => {
            let others: Vec<&str> = all.iter().copied().filter(|name| *name != near).collect();
            match others.is_empty() {
                true => format!("{near:?}"),
                false => format!("{near:?} (or {})", others.join(", ")),
            }
        }
        None => match all {
            [] => "nothing".to_owned(),
            [only] => (*only).to_owned(),
            [most @ .., last] => format!("{} or {last}", most.join(", ")),
        },
    }
}

/// Returns the word that was most likely meant.
fn nearest<'a>(wrong: &str, all: &[&'a str]) -> Option<&'a str> {
    all.iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Parses `text`, the contents of `file`, with `read`; returns the result only if there are no errors.
pub(crate) fn read_toml<T>(
    file: &Path,
    text: &str,
    read: impl FnOnce(&mut Section<'_, '_>) -> T,
) -> Result<T, ConfigError> {
    let mut notes = Notes {
        file,
        text,
        problems: Vec::new(),
    };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            notes.add(
                error.span().map(|span| span.start),
                error.message().to_owned(),
            );
            return Err(ConfigError {
                problems: notes.problems,
            });
        }
    };
    let mut section = Section {
        notes: &mut notes,
        table: document.get_ref(),
        at: 0,
        path: String::new(),
        asked: Vec::new(),
    };
    let value = read(&mut section);
    section.finish();
    if notes.problems.is_empty() {
        return Ok(value);
    }
    notes.problems.sort_by_key(|problem| problem.line);
    Err(ConfigError {
        problems: notes.problems,
    })
}

struct Notes<'t> {
    file: &'t Path,
    text: &'t str,
    problems: Vec<Problem>,
}

impl Notes<'_> {
    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn add(&mut self, at: Option<usize>, text: String) {
        let line = at.map(|at| self.line(at));
        self.problems.push(Problem {
            file: self.file.to_owned(),
            line,
            text,
        });
    }
}

/// A table of the file.
pub(crate) struct Section<'r, 't> {
    notes: &'r mut Notes<'t>,
    table: &'r DeTable<'r>,
    at: usize,
    path: String,
    asked: Vec<&'static str>,
}

impl Section<'_, '_> {
    fn find(&mut self, key: &'static str) -> Option<&Spanned<DeValue<'_>>> {
        self.asked.push(key);
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    /// Returns the value of `key`, parsed by `read`.
    pub(crate) fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.find(key)?;
        let (at, read) = (value.span().start, read(value.get_ref()));
        read.map_err(|text| self.complain(Some(at), &format!("{key}: {text}")))
            .ok()
    }

    /// Returns the values of the list `key`, each parsed by `read`.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> Vec<T> {
        let Some(value) = self.find(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            let (at, wrong) = (value.span().start, expected("a list", value.get_ref()));
            self.complain(Some(at), &format!("{key}: {wrong}"));
            return Vec::new();
        };
        let items: Vec<_> = items
            .iter()
            .map(|item| (item.span().start, read(item.get_ref())))
            .collect();
        items
            .into_iter()
            .filter_map(|(at, item)| {
                item.map_err(|text| self.complain(Some(at), &format!("{key}: {text}")))
                    .ok()
            })
            .collect()
    }

    /// Reads the table `key`, if present, with `read`.
    pub(crate) fn table(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'_, '_>)) {
        self.asked.push(key);
        let table = self.table;
        if let Some((_, value)) = table.iter().find(|(name, _)| name.get_ref() == key) {
            self.inside(key, value, read);
        }
    }

    /// Reads each table in this one, with its name.
    pub(crate) fn each(&mut self, mut read: impl FnMut(&str, &mut Section<'_, '_>)) {
        let table = self.table;
        for (name, value) in table {
            let name = name.get_ref();
            self.inside(name, value, |section| read(name, section));
        }
    }

    fn inside(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        read: impl FnOnce(&mut Section<'_, '_>),
    ) {
        let Some(table) = value.get_ref().as_table() else {
            let wrong = expected("a table", value.get_ref());
            self.complain(Some(value.span().start), &format!("{name}: {wrong}"));
            return;
        };
        let mut section = Section {
            notes: self.notes,
            table,
            at: value.span().start,
            path: format!("{}{name}.", self.path),
            asked: Vec::new(),
        };
        read(&mut section);
        section.finish();
    }

    /// Returns the tables of the list `key` (`[[key]]`), each parsed by `read`.
    pub(crate) fn tables<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_, '_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.asked.push(key);
        let table = self.table;
        let (_, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
        let Some(items) = value.get_ref().as_array() else {
            let wrong = expected("a list of tables", value.get_ref());
            self.complain(Some(value.span().start), &format!("{key}: {wrong}"));
            return None;
        };
        let mut all = Vec::new();
        for item in items {
            self.inside(key, item, |section| all.extend(read(section)));
        }
        Some(all)
    }

    /// Returns true if `key` is present, valid or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    /// Returns the line at which this table begins, from 1.
    pub(crate) fn line(&self) -> usize {
        self.notes.line(self.at)
    }

    /// Records an error that concerns this table as a whole.
    pub(crate) fn wrong(&mut self, text: &str) {
        let text = format!("{}: {text}", self.path.trim_end_matches('.'));
        self.notes.add(Some(self.at), text);
    }

    fn complain(&mut self, at: Option<usize>, text: &str) {
        self.notes.add(at, format!("{}{text}", self.path));
    }

    /// Records an error for every key that was not read. Does nothing for a table read with [`Section::each`].
    fn finish(self) {
        if self.asked.is_empty() {
            return;
        }
        for (name, _) in self.table {
            let key = name.get_ref();
            if !self.asked.iter().any(|asked| *asked == key) {
                self.notes.add(
                    Some(name.span().start),
                    format!(
                        "unknown key `{}{key}`; write {}",
                        self.path,
                        alternatives(key, &self.asked)
                    ),
                );
            }
        }
    }
}

/// Parses a string.
pub(crate) fn text(value: &DeValue<'_>) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| expected("a text in quotes", value))
}

/// Parses an integer of at least 1.
pub(crate) fn number(value: &DeValue<'_>) -> Result<u64, String> {
    let number = value
        .as_integer()
        .ok_or_else(|| expected("a whole number", value))?;
    u64::from_str_radix(number.as_str(), number.radix())
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{} is no whole number from 1 on", number.as_str()))
}

/// Parses an integer of at least 0.
pub(crate) fn whole(value: &DeValue<'_>) -> Result<u64, String> {
    let number = value
        .as_integer()
        .ok_or_else(|| expected("a whole number", value))?;
    u64::from_str_radix(number.as_str(), number.radix())
        .map_err(|_| format!("{} is no whole number from 0 on", number.as_str()))
}

/// Parses a boolean.
pub(crate) fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| expected("true or false", value))
}

/// Parses an amount of money. Unit: millionths.
pub(crate) fn money(value: &DeValue<'_>) -> Result<u64, String> {
    let text = match value {
        DeValue::Float(float) => float.as_str(),
        DeValue::Integer(whole) => whole.as_str(),
        other => return Err(expected("a number", other)),
    };
    super::models::parse_millionths(text).ok_or_else(|| format!("{text} is no amount of money"))
}

/// Parses a percentage from 0 to 100.
pub(crate) fn percent(value: &DeValue<'_>) -> Result<u8, String> {
    let number = value
        .as_integer()
        .ok_or_else(|| expected("a whole number", value))?;
    u8::from_str_radix(number.as_str(), number.radix())
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| format!("{} is no whole number from 0 to 100", number.as_str()))
}

pub(super) fn expected(what: &str, found: &DeValue<'_>) -> String {
    format!("expected {what}, found {}", found.type_str())
}
