//! Indent: how a model's indentation corresponds to a file's, learnt from lines that they share.

use std::collections::BTreeMap;

/// From the model's indentation to the file's.
#[derive(Debug)]
pub(super) struct Reindent {
    pairs: BTreeMap<String, String>,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// The file has this before what the model wrote.
    Deeper(String),
    /// The model wrote this before what the file has.
    Shallower(String),
    /// One level of the model's is one level of the file's.
    Unit(String, String),
}

impl Reindent {
    /// From pairs of the model's line and the file's. `None` when they contradict each other.
    pub(super) fn learn<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut pairs = BTreeMap::new();
        for (old, line) in lines {
            if old.trim().is_empty() {
                continue;
            }
            let (old, line) = (indent(old), indent(line));
            if *pairs
                .entry(old.to_owned())
                .or_insert_with(|| line.to_owned())
                != line
            {
                return None;
            }
        }
        let (old, line) = pairs.first_key_value()?;
        let deeper = line.strip_suffix(old.as_str()).map(str::to_owned);
        let shallower = old.strip_suffix(line.as_str()).map(str::to_owned);
        let change = match (deeper, shallower) {
            (Some(more), _)
                if pairs
                    .iter()
                    .all(|(old, line)| line.strip_prefix(more.as_str()) == Some(old)) =>
            {
                Change::Deeper(more)
            }
            (_, Some(less))
                if pairs
                    .iter()
                    .all(|(old, line)| old.strip_prefix(less.as_str()) == Some(line)) =>
            {
                Change::Shallower(less)
            }
            _ => {
                let (old, line) = pairs.iter().find(|(old, _)| !old.is_empty())?;
                Change::Unit(old.clone(), line.clone())
            }
        };
        Some(Self { pairs, change })
    }

    /// The text indented as the file is. Lines of white space only stay as they are.
    pub(super) fn apply(&self, text: &str) -> String {
        let lines: Vec<String> = text.split('\n').map(|line| self.line(line)).collect();
        lines.join("\n")
    }

    fn line(&self, line: &str) -> String {
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let old = indent(line);
        let rest = &line[old.len()..];
        match &self.change {
            Change::Deeper(more) => format!("{more}{line}"),
            Change::Shallower(less) => line.strip_prefix(less.as_str()).unwrap_or(rest).to_owned(),
            Change::Unit(from, to) => format!("{}{rest}", self.convert(old, from, to)),
        }
    }

    /// The nearest indentation that is known, and the levels beyond it one by one.
    fn convert(&self, old: &str, from: &str, to: &str) -> String {
        let known = self
            .pairs
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

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
