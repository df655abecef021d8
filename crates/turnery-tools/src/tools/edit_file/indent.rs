//! Maps a model's indentation to a file's, learnt from lines that both share.

use std::collections::BTreeMap;

/// Converts the model's indentation to the file's.
#[derive(Debug)]
pub(super) struct Reindenter {
    known_indents: BTreeMap<String, String>,
    change: IndentChange,
}

#[derive(Debug)]
enum IndentChange {
    /// The file has this prefix before the model's indentation.
    Deeper(String),
    /// The model has this prefix before the file's indentation.
    Shallower(String),
    /// One level of the model's indentation is one level of the file's.
    UnitConversion(String, String),
}

impl Reindenter {
    /// Learns from pairs of the model's line and the file's. Returns `None` if they contradict each other.
    pub(super) fn from_line_pairs<'a>(
        lines: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Self> {
        let mut known_indents = BTreeMap::new();
        for (old, line) in lines {
            if old.trim().is_empty() {
                continue;
            }
            let (old, line) = (leading_whitespace(old), leading_whitespace(line));
            if *known_indents
                .entry(old.to_owned())
                .or_insert_with(|| line.to_owned())
                != line
            {
                return None;
            }
        }
        let (old, line) = known_indents.first_key_value()?;
        let deeper = line.strip_suffix(old.as_str()).map(str::to_owned);
        let shallower = old.strip_suffix(line.as_str()).map(str::to_owned);
        let change = match (deeper, shallower) {
            (Some(more), _)
                if known_indents
                    .iter()
                    .all(|(old, line)| line.strip_prefix(more.as_str()) == Some(old)) =>
            {
                IndentChange::Deeper(more)
            }
            (_, Some(less))
                if known_indents
                    .iter()
                    .all(|(old, line)| old.strip_prefix(less.as_str()) == Some(line)) =>
            {
                IndentChange::Shallower(less)
            }
            _ => {
                let (old, line) = known_indents.iter().find(|(old, _)| !old.is_empty())?;
                IndentChange::UnitConversion(old.clone(), line.clone())
            }
        };
        Some(Self {
            known_indents,
            change,
        })
    }

    /// Returns the text with the file's indentation. Lines of only white space stay unchanged.
    pub(super) fn apply(&self, text: &str) -> String {
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| self.reindent_line(line))
            .collect();
        lines.join("\n")
    }

    fn reindent_line(&self, line: &str) -> String {
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let old = leading_whitespace(line);
        let rest = &line[old.len()..];
        match &self.change {
            IndentChange::Deeper(more) => format!("{more}{line}"),
            IndentChange::Shallower(less) => {
                line.strip_prefix(less.as_str()).unwrap_or(rest).to_owned()
            }
            IndentChange::UnitConversion(from, to) => {
                format!("{}{rest}", self.convert_indent(old, from, to))
            }
        }
    }

    /// Converts the longest known part of an indentation, and the levels beyond it one by one.
    fn convert_indent(&self, old: &str, from: &str, to: &str) -> String {
        let known = self
            .known_indents
            .iter()
            .filter(|(known, _)| old.starts_with(known.as_str()))
            .max_by_key(|(known, _)| known.len());
        let (mut converted, mut beyond) = match known {
            Some((known, line)) => (line.clone(), &old[known.len()..]),
            None => (String::new(), old),
        };
        while let Some(rest) = beyond.strip_prefix(from) {
            converted.push_str(to);
            beyond = rest;
        }
        converted + beyond
    }
}

fn leading_whitespace(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
