//! Reads `conformance/faults.toml`, which lists the effect of each fault and the rules it breaks.

use crate::faults;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Embedded text of the table.
const FAULTS_TOML: &str = include_str!("../../../../conformance/faults.toml");

/// Contents of `faults.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultExpectations {
    /// Faults by name.
    pub faults: BTreeMap<String, FaultExpectation>,
    /// Rules that no fault breaks, each with the reason.
    #[serde(rename = "without")]
    pub unbroken_rules: BTreeMap<String, String>,
    /// Mistakes of real agents, by name.
    #[serde(rename = "traps")]
    pub agent_mistakes: BTreeMap<String, AgentMistake>,
}

/// Mistake of real agents, and the faults that reproduce it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AgentMistake {
    /// Names of the faults that reproduce the mistake.
    Faults(Vec<String>),
    /// Reason why no fault reproduces the mistake.
    Reason(String),
}

/// Expected result of one fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultExpectation {
    /// Effect of the fault, in a sentence.
    pub does: String,
    /// Rules that must fail.
    pub breaks: BTreeSet<String>,
    /// Rules that may fail along with them, in cases that depend on the broken behaviour.
    #[serde(default, rename = "also")]
    pub may_fail: BTreeSet<String>,
}

impl FaultExpectations {
    /// Reads the embedded table.
    ///
    /// # Errors
    /// If the TOML is malformed, or does not list exactly the existing faults.
    pub fn read() -> Result<Self, String> {
        let table: Self =
            toml::from_str(FAULTS_TOML).map_err(|error| format!("faults.toml: {error}"))?;
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

    /// Returns the rules that some fault breaks.
    #[must_use]
    pub fn broken_rules(&self) -> BTreeSet<&str> {
        let rules = self.faults.values().flat_map(|fault| &fault.breaks);
        rules.map(String::as_str).collect()
    }
}
