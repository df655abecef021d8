//! expected: `conformance/faults.toml`, the table of what each fault does and breaks.

use crate::faults;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The table that comes along.
const TEXT: &str = include_str!("../../../../conformance/faults.toml");

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Each fault, by name.
    pub faults: BTreeMap<String, ExpectedFault>,
    /// Rules that no fault breaks, each with the reason.
    pub without: BTreeMap<String, String>,
    /// What real agents do wrong, by a name of its own.
    pub traps: BTreeMap<String, Trap>,
}

/// Whether a fault does what real agents do wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Trap {
    /// These do.
    Faults(Vec<String>),
    /// None does, for this reason.
    Reason(String),
}

/// What is expected of one fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFault {
    /// What it does, in a sentence.
    pub does: String,
    /// These rules it breaks: they fail.
    pub breaks: BTreeSet<String>,
    /// These fail along with them, in cases that need what it breaks for something else.
    #[serde(default)]
    pub also: BTreeSet<String>,
}

impl Expected {
    /// Read the table that comes along.
    ///
    /// # Errors
    /// It is no TOML of this shape, or it does not name just the faults that there are.
    pub fn read() -> Result<Self, String> {
        let table: Self = toml::from_str(TEXT).map_err(|error| format!("faults.toml: {error}"))?;
        let there: BTreeSet<_> = faults::all().map(|fault| fault.name).collect();
        let named: BTreeSet<_> = table.faults.keys().map(String::as_str).collect();
        if let Some(name) = there.difference(&named).next() {
            return Err(format!("faults.toml does not say what {name} breaks"));
        }
        if let Some(name) = named.difference(&there).next() {
            return Err(format!(
                "faults.toml has {name}, but there is no such fault"
            ));
        }
        Ok(table)
    }

    /// The rules that some fault breaks.
    #[must_use]
    pub fn broken(&self) -> BTreeSet<&str> {
        let rules = self.faults.values().flat_map(|fault| &fault.breaks);
        rules.map(String::as_str).collect()
    }
}
