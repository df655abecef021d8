//! Reads the requirements of the official test kit and the rules that each maps to.

use super::table::{RequirementId, Table};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Importance of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tier {
    Mandatory,
    Capability,
    Advisory,
    Informational,
}

/// A requirement of the kit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KitRequirement {
    pub(super) tier: Tier,
    /// Text of the requirement.
    pub(super) asks: String,
    /// Rules that the requirement maps to.
    pub(super) rules: Vec<RequirementId>,
}

pub(super) type TestKit = BTreeMap<String, KitRequirement>;

/// Parses the kit's table. The numbers of each group must start at 001 and have no gaps.
pub(super) fn parse(text: &str, table: &Table) -> Result<TestKit> {
    let kit: TestKit = toml::from_str(text)?;
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    for (id, line) in &kit {
        let (group, number) =
            split_id(id).with_context(|| format!("{id:?} is no id of the kit"))?;
        let expected = last.get(group).map_or(1, |last| last + 1);
        ensure!(number == expected, "{group} has a hole ahead of {id}");
        last.insert(group, number);
        ensure!(!line.asks.trim().is_empty(), "{id} asks nothing");
        ensure!(!line.rules.is_empty(), "{id} comes down to no rule");
        for (index, rule) in line.rules.iter().enumerate() {
            let is_known = table.contains_key(rule);
            ensure!(is_known, "{id}: there is no requirement \"{rule}\"");
            let is_repeated = line.rules[..index].contains(rule);
            ensure!(!is_repeated, "{id} names {rule} twice");
        }
    }
    Ok(kit)
}

/// Splits an id: `ACP-LOAD-002` into `ACP-LOAD` and 2.
fn split_id(id: &str) -> Option<(&str, u32)> {
    let (group, number) = id.rsplit_once('-')?;
    let mut words = group.strip_prefix("ACP-")?.split('-');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase());
    let digits = number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && words.all(is_word)).then_some((group, number.parse().ok()?))
}
