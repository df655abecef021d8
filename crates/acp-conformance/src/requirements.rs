//! Reads the table of rules, `conformance/requirements.toml`.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Built-in table.
const BUILT_IN_TABLE: &str = include_str!("../../../conformance/requirements.toml");

/// All rules, in the order of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// Revision of the rules.
    pub revision: String,
    /// Rules, in the order of the table.
    pub rules: Vec<Rule>,
}

/// Rule that an agent must, should or may keep.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Id of the rule: the key of the table.
    #[serde(skip)]
    pub id: String,
    /// Requirement level.
    pub level: Level,
    /// Text of the rule, in a sentence.
    pub says: String,
    /// Source of the rule.
    pub source: String,
    /// Requirements of the official test kit that correspond to the rule.
    #[serde(default)]
    pub kit: Vec<String>,
    /// True if breaking the rule may cost the user files or trust, which fails a run at any level.
    #[serde(default)]
    pub danger: bool,
    /// True if the oracle looks for violations in every case.
    #[serde(default)]
    pub watched: bool,
    /// Reason why the rule cannot be observed from outside.
    pub untestable: Option<String>,
}

/// Requirement level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Level {
    /// Required by MUST in the specification.
    #[serde(rename = "MUST")]
    Must,
    /// Forbidden by MUST NOT in the specification.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// Stated in the specification without a keyword.
    #[serde(rename = "fact")]
    Fact,
    /// Recommended by SHOULD in the specification.
    #[serde(rename = "SHOULD")]
    Should,
    /// Discouraged by SHOULD NOT in the specification.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Not stated, but clients and the official SDKs insist on it.
    #[serde(rename = "interop")]
    Interop,
    /// Permitted by MAY in the specification.
    #[serde(rename = "MAY")]
    May,
}

impl Level {
    /// All levels, the strongest first.
    pub const ALL: [Self; 7] = [
        Self::Must,
        Self::MustNot,
        Self::Fact,
        Self::Should,
        Self::ShouldNot,
        Self::Interop,
        Self::May,
    ];

    /// Returns the name that the table uses.
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

    /// Parses a name, ignoring case, with `-` or `_` for a space.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
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
struct RequirementsFile {
    revision: String,
    rules: BTreeMap<String, Rule>,
}

impl Requirements {
    /// Returns the built-in table.
    ///
    /// # Errors
    /// If the table is invalid, which a test rules out.
    pub fn built_in() -> Result<Self, String> {
        Self::parse(BUILT_IN_TABLE)
    }

    /// Parses a table.
    ///
    /// # Errors
    /// If the text is not a valid table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table: RequirementsFile =
            toml::from_str(text).map_err(|error| error.to_string())?;
        // Keep the written order, for readers of the report.
        let ids = text.lines().filter_map(|line| {
            let id = line.trim().strip_prefix("[rules.")?.strip_suffix(']')?;
            Some(id.to_owned())
        });
        let rules = ids.filter_map(|id| {
            let rule = table.rules.remove(&id)?;
            Some(Rule { id, ..rule })
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

    /// Returns the rule with this id, ignoring case.
    #[must_use]
    pub fn find_rule(&self, name: &str) -> Option<&Rule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.id.eq_ignore_ascii_case(name))
    }

    /// Returns the rule with exactly this id.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_table_keeps_its_order() {
        let known = Requirements::built_in().unwrap();
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
        assert_eq!(known.find_rule("tr-3"), known.rule("TR-3"));
    }

    #[test]
    fn dangerous_rules_are_marked() {
        let known = Requirements::built_in().unwrap();
        let dangerous = known.rules.iter().filter(|rule| rule.danger);
        let dangerous: Vec<&str> = dangerous.map(|rule| rule.id.as_str()).collect();
        assert_eq!(dangerous, ["CLOSE-3", "PERM-1", "PERM-3"]);
        // A second response to one request counts by its level.
        assert_eq!(known.rule("RPC-12").unwrap().level, Level::Must);
    }

    /// A rule that the specification does not state is interop, and so does not fail an agent. What it does
    /// state, beside it, keeps its level.
    #[test]
    fn levels_do_not_exceed_specification() {
        use Level::{Fact, Interop, Must, MustNot};
        let known = Requirements::built_in().unwrap();
        for (id, level, says) in [
            ("SESS-2", Interop, "not absolute is refused"),
            ("SESS-4", Fact, "without mcpServers is refused"),
            ("SESS-10", Interop, "null is an empty list of MCP servers"),
            ("PERM-4", Fact, "rejected is not reported as completed"),
            ("PERM-7", Interop, "the prompt ends with end_turn"),
            ("PERM-2", Fact, "options with unique ids"),
            ("PERM-5", Interop, "allow_once and reject_once are offered"),
            ("RPC-2", Must, "repeats its request's id"),
            ("RPC-23", Interop, "ids beyond 2^53"),
            ("EXT-1", MustNot, "nothing is added to the protocol's types"),
            ("EXT-7", Interop, "no member of a former draft is sent"),
        ] {
            let rule = known.rule(id).unwrap();
            assert_eq!(rule.level, level, "{id}");
            assert!(rule.says.contains(says), "{id}: {}", rule.says);
        }
    }

    #[test]
    fn unknown_level_is_rejected() {
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
    fn level_names_ignore_case_and_separators() {
        assert_eq!(Level::from_name("must"), Some(Level::Must));
        assert_eq!(Level::from_name("Should-Not"), Some(Level::ShouldNot));
        assert_eq!(Level::from_name("must_not"), Some(Level::MustNot));
        assert_eq!(Level::from_name("ought"), None);
    }
}
