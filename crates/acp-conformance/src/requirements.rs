//! Requirements: the table of the rules, as `conformance/requirements.toml` has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The table that comes along.
const TABLE: &str = include_str!("../../../conformance/requirements.toml");

/// All rules, in the order of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// Names this set of rules.
    pub revision: String,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// How strongly it is asked for.
    pub level: Level,
    /// What it says, in a sentence.
    pub says: String,
    /// Where it comes from.
    pub source: String,
    /// The requirements of the official test kit that come down to it.
    pub kit: Vec<String>,
    /// Breaking it may cost the user files or trust: it fails a run whatever its level.
    pub danger: bool,
    /// Why nobody can see from outside whether it is kept.
    pub untestable: Option<String>,
}

/// How strongly a rule is asked for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Level {
    /// The protocol's word.
    #[serde(rename = "MUST")]
    Must,
    /// The protocol's word.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// Stated as it is, without such a word.
    #[serde(rename = "fact")]
    Fact,
    /// The protocol's word.
    #[serde(rename = "SHOULD")]
    Should,
    /// The protocol's word.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Not stated, but clients and the official SDKs insist on it.
    #[serde(rename = "interop")]
    Interop,
    /// The protocol's word.
    #[serde(rename = "MAY")]
    May,
}

impl Level {
    /// All of them, the strongest first.
    pub const ALL: [Self; 7] = [
        Self::Must,
        Self::MustNot,
        Self::Fact,
        Self::Should,
        Self::ShouldNot,
        Self::Interop,
        Self::May,
    ];

    /// As the table writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustNot => "MUST NOT",
            Self::Fact => "fact",
            Self::Should => "SHOULD",
            Self::ShouldNot => "SHOULD NOT",
            Self::Interop => "interop",
            Self::May => "MAY",
        }
    }

    /// Read a name, in any case of letters, with `-` or `_` for a blank.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace(['-', '_'], " ");
        let mut levels = Self::ALL.into_iter();
        levels.find(|level| level.name().eq_ignore_ascii_case(&name))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Deserialize)]
struct Table {
    revision: String,
    rules: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    level: Level,
    says: String,
    source: String,
    #[serde(default)]
    kit: Vec<String>,
    #[serde(default)]
    danger: bool,
    untestable: Option<String>,
}

impl Requirements {
    /// The table that comes along.
    ///
    /// # Errors
    /// It is broken, which a test rules out.
    pub fn known() -> Result<Self, String> {
        Self::parse(TABLE)
    }

    /// Read a table.
    ///
    /// # Errors
    /// It is no such table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        // A reader of the report meets them in the order in which they were written.
        let ids = text.lines().filter_map(|line| {
            let id = line.trim().strip_prefix("[rules.")?.strip_suffix(']')?;
            Some(id.to_owned())
        });
        let rules = ids.filter_map(|id| {
            let entry = table.rules.remove(&id)?;
            Some(Rule {
                id,
                level: entry.level,
                says: entry.says,
                source: entry.source,
                kit: entry.kit,
                danger: entry.danger,
                untestable: entry.untestable,
            })
        });
        let rules = rules.collect();
        match table.rules.keys().next() {
            None => Ok(Self {
                revision: table.revision,
                rules,
            }),
            Some(id) => Err(format!("write the rule {id} as `[rules.{id}]`")),
        }
    }

    /// The rule that a person names, in any case of letters.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Rule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.id.eq_ignore_ascii_case(name))
    }

    /// The rule of this id.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_comes_along_is_read_in_its_order() {
        let known = Requirements::known().unwrap();
        assert_eq!(known.rules.len(), 224);
        assert!(include_str!("../README.md").contains("Each of 224 rules "));
        assert_eq!(known.rules[0].id, "TR-1");
        assert_eq!(known.rules[223].id, "V2-22");
        assert_eq!(
            known.rule("TR-3").map(|rule| rule.level),
            Some(Level::MustNot)
        );
        assert_eq!(known.rule("NO-1"), None);
        assert_eq!(known.rule("tr-3"), None);
        assert_eq!(known.named("tr-3"), known.rule("TR-3"));
    }

    #[test]
    fn what_is_dangerous_is_marked_in_the_table() {
        let known = Requirements::known().unwrap();
        let dangerous = known.rules.iter().filter(|rule| rule.danger);
        let dangerous: Vec<&str> = dangerous.map(|rule| rule.id.as_str()).collect();
        assert_eq!(dangerous, ["CLOSE-3", "PERM-1", "PERM-3"]);
        // Two answers to one request count by its level.
        assert_eq!(known.rule("RPC-12").unwrap().level, Level::Must);
    }

    #[test]
    fn a_table_has_rules_of_known_levels() {
        let rule = |level: &str| {
            format!(
                "revision = \"r\"\n[rules.B-1]\nlevel = \"{level}\"\nsays = \"s\"\nsource = \"o\"\n"
            )
        };
        let table = Requirements::parse(&rule("SHOULD NOT")).unwrap();
        assert_eq!(table.rules[0].level, Level::ShouldNot);
        assert!(Requirements::parse(&rule("OUGHT")).is_err());
        let inline =
            "revision = \"r\"\nrules = {A-1 = {level = \"MAY\", says = \"s\", source = \"o\"}}";
        let error = Requirements::parse(inline).unwrap_err();
        assert_eq!(error, "write the rule A-1 as `[rules.A-1]`");
    }

    #[test]
    fn levels_are_named_as_people_type_them() {
        assert_eq!(Level::named("must"), Some(Level::Must));
        assert_eq!(Level::named("Should-Not"), Some(Level::ShouldNot));
        assert_eq!(Level::named("must_not"), Some(Level::MustNot));
        assert_eq!(Level::named("ought"), None);
    }
}
