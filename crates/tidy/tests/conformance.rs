//! Checks that the table of the protocol's rules is complete and agrees with the requirements of the official kit.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use toml::{Table, Value};

fn read_table(path: &str) -> Table {
    let text = fs::read_to_string(tidy::root().join(path)).expect("the table is there");
    text.parse().expect("the table is TOML")
}

/// Returns the suite's rules.
fn rules() -> Table {
    match read_table("conformance/requirements.toml").remove("rules") {
        Some(Value::Table(rules)) => rules,
        other => panic!("conformance/requirements.toml has no rules but {other:?}"),
    }
}

fn text<'a>(entry: &'a Value, key: &str) -> Option<&'a str> {
    entry.get(key)?.as_str()
}

#[test]
fn every_rule_of_both_versions_is_in_the_table() {
    let rules = rules();
    let second = rules.keys().filter(|id| id.starts_with("V2-")).count();
    assert_eq!((rules.len() - second, second), (202, 22));
    for (id, rule) in &rules {
        for key in ["says", "source"] {
            assert!(
                text(rule, key).is_some_and(|text| !text.is_empty()),
                "{id} has no `{key}`"
            );
        }
    }
    let revision = read_table("conformance/requirements.toml").remove("revision");
    assert!(revision.is_some_and(|name| name.is_str()));
}

#[test]
fn kit_requirements_map_to_same_rules() {
    let mut ours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, rule) in &rules() {
        for kit in rule
            .get("kit")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let kit = kit.as_str().expect("a requirement of the kit is a text");
            ours.entry(kit.to_owned()).or_default().insert(id.clone());
        }
    }
    assert_eq!(ours.len(), 56);
    let theirs = read_table("docs/acp-kit.toml")
        .into_iter()
        .map(|(kit, entry)| {
            let rules = entry
                .get("rules")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let rules = rules.filter_map(Value::as_str).map(str::to_owned).collect();
            (kit, rules)
        });
    assert_eq!(ours, theirs.collect());
}
