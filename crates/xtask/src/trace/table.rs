//! The table of requirements: its ids and what may stand beside them.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};

/// What an id may begin with, in the order of the table.
pub(super) const GROUPS: &[&str] = &[
    "TURN", "LOOP", "JIDO", "ACP", "LASH", "I", "R", "S", "D", "C", "UP",
];

/// Groups whose numbers follow the letters without a hyphen.
const JOINED: &[&str] = &["I", "R", "S"];

/// The id of a requirement, such as `TURN-8` or `I3`. Ordered as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    /// Index into [`GROUPS`].
    group: usize,
    number: u32,
}

/// A line of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requirement {
    /// What must hold, in one sentence.
    pub(super) says: String,
    /// Why no test can or shall prove it.
    pub(super) waived: Option<String>,
    /// The piece of work that will bring it.
    pub(super) later: Option<String>,
}

pub(super) type Table = BTreeMap<Id, Requirement>;

impl Id {
    /// Read an id; `None` when the text is written in any other way.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let letters = text.bytes().take_while(u8::is_ascii_uppercase).count();
        let group = GROUPS.iter().position(|name| *name == &text[..letters])?;
        let rest = &text[letters..];
        let digits = if JOINED.contains(&GROUPS[group]) {
            rest
        } else {
            rest.strip_prefix('-')?
        };
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.starts_with('0') {
            return None;
        }
        let number = digits.parse().ok()?;
        Some(Self { group, number })
    }

    pub(super) fn group(&self) -> &'static str {
        GROUPS[self.group]
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hyphen = if JOINED.contains(&self.group()) {
            ""
        } else {
            "-"
        };
        write!(f, "{}{hyphen}{}", self.group(), self.number)
    }
}

/// Read the table. Each group counts from 1 without holes, so that no line is lost unseen.
pub(super) fn parse(text: &str) -> Result<Table> {
    let lines: BTreeMap<String, Requirement> = toml::from_str(text)?;
    let mut table = Table::new();
    for (key, requirement) in lines {
        let id = Id::parse(&key).with_context(|| format!("{key:?} is no id"))?;
        let Requirement {
            says,
            waived,
            later,
        } = &requirement;
        for text in [Some(says), waived.as_ref(), later.as_ref()] {
            ensure!(
                text.is_none_or(|text| !text.trim().is_empty()),
                "{id} has an empty text"
            );
        }
        if waived.is_some() && later.is_some() {
            bail!("{id} is both waived and for later");
        }
        table.insert(id, requirement);
    }
    for (index, group) in GROUPS.iter().enumerate() {
        let numbers = table.keys().filter(|id| id.group == index);
        for (expected, id) in (1..).zip(numbers) {
            ensure!(
                id.number == expected,
                "{group} has a hole: {id} follows number {}",
                expected - 1
            );
        }
    }
    Ok(table)
}
