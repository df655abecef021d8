//! Parses the table of requirements.

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};

/// Groups of ids, in the order of the table.
pub(super) const GROUPS: &[&str] = &[
    "TURN",
    "LOOP",
    "JIDO",
    "ACP",
    "LASH",
    "I",
    "R",
    "S",
    "D",
    "C",
    "UP",
    "TR",
    "RPC",
    "INIT",
    "AUTH",
    "SESS",
    "DIR",
    "LOAD",
    "RES",
    "LIST",
    "CLOSE",
    "DEL",
    "MCP",
    "PROMPT",
    "MSG",
    "UPD",
    "USAGE",
    "INFO",
    "NOTE",
    "COMP",
    "TOOL",
    "PERM",
    "FS",
    "TERM",
    "CANCEL",
    "REQC",
    "PLAN",
    "MODE",
    "CFG",
    "CMD",
    "ELIC",
    "EXT",
    "V2",
    "G",
    "THEME",
    "ANTHROPIC",
    "CHAT",
    "RESPONSES",
    "GEMINI",
];

/// Groups whose number follows without a hyphen.
const JOINED: &[&str] = &["I", "R", "S"];

/// Requirement levels: the protocol's keywords, plain statements, and rules that only implementers insist on.
const LEVELS: &[&str] = &[
    "MUST",
    "MUST NOT",
    "SHOULD",
    "SHOULD NOT",
    "MAY",
    "fact",
    "interop",
];

/// The id of a requirement, such as `TURN-8` or `I3`. Ordered as in the table.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
pub(super) struct RequirementId {
    /// Index into [`GROUPS`].
    group: usize,
    number: u32,
}

/// A requirement in the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requirement {
    /// Text of the requirement, in one sentence.
    pub(super) says: String,
    /// Requirement level of the protocol.
    pub(super) level: Option<String>,
    /// Reason why no test can or should prove the requirement.
    pub(super) waived: Option<String>,
    /// What the documents say instead, and why turnery differs.
    pub(super) differs: Option<String>,
    /// Work item that will implement the requirement.
    pub(super) later: Option<String>,
}

pub(super) type Table = BTreeMap<RequirementId, Requirement>;

impl RequirementId {
    /// Parses an id; returns `None` if the text is not in the canonical form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (group, digits) = GROUPS.iter().enumerate().find_map(|(group, name)| {
            let rest = text.strip_prefix(name)?;
            let digits = if JOINED.contains(name) {
                rest
            } else {
                rest.strip_prefix('-')?
            };
            digits
                .starts_with(|letter: char| letter.is_ascii_digit())
                .then_some((group, digits))
        })?;
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

impl TryFrom<String> for RequirementId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is no id"))
    }
}

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hyphen = if JOINED.contains(&self.group()) {
            ""
        } else {
            "-"
        };
        write!(f, "{}{hyphen}{}", self.group(), self.number)
    }
}

/// Table of turnery's own requirements, and the protocol's rules that it does not prove.
#[derive(Deserialize)]
struct OwnFile {
    /// Reasons, by id of the rule.
    #[serde(default)]
    waived: BTreeMap<RequirementId, String>,
    #[serde(flatten)]
    requirements: Table,
}

/// Table of the protocol's rules, as far as it is needed here; the suite checks the rest of it.
#[derive(Deserialize)]
struct ProtocolFile {
    rules: BTreeMap<RequirementId, ProtocolRule>,
}

#[derive(Deserialize)]
struct ProtocolRule {
    says: String,
    level: String,
}

/// Parses turnery's table together with the protocol's.
pub(super) fn parse(own: &str, protocol: &str) -> Result<Table> {
    let OwnFile {
        waived,
        requirements: mut table,
    } = toml::from_str(own)?;
    check_entries(&table)?;
    let ProtocolFile { rules } = toml::from_str(protocol)?;
    let rules = rules.into_iter().map(|(id, rule)| {
        let requirement = Requirement {
            says: rule.says,
            level: Some(rule.level),
            waived: waived.get(&id).cloned(),
            differs: None,
            later: None,
        };
        (id, requirement)
    });
    let rules = rules.collect();
    check_entries(&rules)?;
    for id in waived.keys() {
        let known = rules.contains_key(id);
        ensure!(known, "{id} is waived, but is no rule of the protocol");
    }
    for (id, requirement) in rules {
        ensure!(!table.contains_key(&id), "{id} is in both tables");
        table.insert(id, requirement);
    }
    Ok(table)
}

/// Checks a table's entries. The numbers of each group must start at 1 and have no gaps, so that no entry is
/// lost unnoticed.
pub(super) fn check_entries(table: &Table) -> Result<()> {
    for (id, requirement) in table {
        let Requirement {
            says,
            level,
            waived,
            differs,
            later,
        } = requirement;
        for text in [
            Some(says),
            waived.as_ref(),
            differs.as_ref(),
            later.as_ref(),
        ] {
            ensure!(
                text.is_none_or(|text| !text.trim().is_empty()),
                "{id} has an empty text"
            );
        }
        if let Some(level) = level {
            ensure!(LEVELS.contains(&&**level), "{id} has no level {level:?}");
        }
        if waived.is_some() && later.is_some() {
            bail!("{id} is both waived and for later");
        }
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
    Ok(())
}
