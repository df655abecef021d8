//! Tests of pattern matching and substitution.

use super::*;
use serde_json::json;

fn match_once(pattern: Value, found: Value) -> Result<(), String> {
    match_pattern(&pattern, &found, &mut Captures::new())
}

fn captures_of(pairs: &[(&str, Value)]) -> Captures {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    pairs.collect()
}

#[test]
fn extra_members_are_allowed() {
    let pattern = json!({"a": {"b": 1}});
    let found = json!({"a": {"b": 1, "c": 2}, "d": 3});
    assert_eq!(match_once(pattern.clone(), found), Ok(()));
    let wrong = match_once(pattern.clone(), json!({"a": {"b": 2}}));
    assert_eq!(wrong, Err("/a/b: expected 1, found 2".to_owned()));
    let missing = match_once(pattern, json!({"a": {}}));
    assert_eq!(missing, Err("/a/b is missing".to_owned()));
    assert!(match_once(json!([1]), json!([1, 2])).is_err());
}

#[test]
fn repeated_capture_must_be_equal() {
    let mut captures = Captures::new();
    let pattern = json!({"id": "$id"});
    match_pattern(&pattern, &json!({"id": "x\"y"}), &mut captures).unwrap();
    assert_eq!(
        match_pattern(&pattern, &json!({"id": "x\"y"}), &mut captures),
        Ok(())
    );
    let wrong = match_pattern(&pattern, &json!({"id": "z"}), &mut captures);
    assert_eq!(wrong, Err("/id: $id was \"x\\\"y\", now \"z\"".to_owned()));
}

#[test]
fn mismatch_captures_nothing() {
    let mut captures = Captures::new();
    let pattern = json!({"a": "$a", "b": 1});
    assert!(match_pattern(&pattern, &json!({"a": 5, "b": 2}), &mut captures).is_err());
    assert!(captures.is_empty());
}

#[test]
fn each_operator_matches_and_rejects() {
    for (pattern, right, wrong) in [
        (json!({"a": {"$any": 1}}), json!({"a": null}), json!({})),
        (
            json!({"a": {"$absent": 1}}),
            json!({"b": 1}),
            json!({"a": null}),
        ),
        (json!({"$type": "integer"}), json!(-5), json!(1.5)),
        (json!({"$type": "number"}), json!(1.5), json!("1")),
        (json!({"$type": "null"}), json!(null), json!({})),
        (json!({"$type": "array"}), json!([]), json!({})),
        (json!({"$match": "^a+$"}), json!("aa"), json!("ab")),
        (json!({"$match": "1"}), json!("1"), json!(1)),
        (
            json!({"$in": ["a", {"$type": "null"}]}),
            json!(null),
            json!("b"),
        ),
        (
            json!({"$all": [{"$type": "string"}, {"$not": ""}]}),
            json!("x"),
            json!(""),
        ),
        (
            json!({"a": {"$not": {"b": 1}}}),
            json!({}),
            json!({"a": {"b": 1}}),
        ),
        (
            json!({"$has": [{"a": 1}, 2]}),
            json!([2, {"a": 1}]),
            json!([{"a": 1}]),
        ),
        (json!({"$each": {"a": 1}}), json!([]), json!([{"a": 1}, {}])),
        (json!({"$length": 2}), json!("äö"), json!([1])),
        (json!({"$length": 0}), json!({}), json!(0)),
    ] {
        assert_eq!(
            match_once(pattern.clone(), right.clone()),
            Ok(()),
            "{pattern} {right}"
        );
        assert!(
            match_once(pattern.clone(), wrong.clone()).is_err(),
            "{pattern} {wrong}"
        );
    }
    assert!(match_once(json!({"$nonsense": 1}), json!(1)).is_err());
}

#[test]
fn document_describes_each_operator() {
    let document = include_str!("../../../../conformance/GRAMMAR.md");
    let rows = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `{\""));
    let operators: Vec<&str> = rows.filter_map(|row| row.split('"').next()).collect();
    assert_eq!(operators, validate::OPERATORS);
}

#[test]
fn has_operator_captures() {
    let mut captures = Captures::new();
    let pattern = json!({"$has": [{"kind": "b", "id": "$b"}]});
    let found = json!([{"kind": "a", "id": 1}, {"kind": "b", "id": 2}]);
    match_pattern(&pattern, &found, &mut captures).unwrap();
    assert_eq!(captures, captures_of(&[("b", json!(2))]));
}

#[test]
fn names_in_longer_strings_are_filled() {
    let mut captures = captures_of(&[("CWD", json!("/x"))]);
    let pattern = json!({"path": "$CWD/a"});
    assert_eq!(
        match_pattern(&pattern, &json!({"path": "/x/a"}), &mut captures),
        Ok(())
    );
    assert!(match_pattern(&pattern, &json!({"path": "/y/a"}), &mut captures).is_err());
    assert_eq!(captures.len(), 1);
}

#[test]
fn filled_values_keep_their_type() {
    let captures = captures_of(&[("id", json!(7)), ("i", json!("no")), ("s", json!("x\"y"))]);
    let line = r#"{"id":"$id","a":$id,"b":"<$id> $s $5 $unknown","c":"\"$s\"","d":"$s"}"#;
    assert_eq!(
        fill_line(line, &captures),
        r#"{"id":7,"a":7,"b":"<7> x\"y $5 $unknown","c":"\"x\"y\"","d":"x\"y"}"#
    );
    assert_eq!(
        fill_value(&json!({"a": ["$id", "$id!"]}), &captures),
        json!({"a": [7, "7!"]})
    );
    assert_eq!(fill_text("$s $id $", &captures), "x\"y 7 $");
    assert_eq!(
        variable_names("$a \"$b_1/$\" $5").collect::<Vec<_>>(),
        ["a", "b_1"]
    );
}

#[test]
fn unique_operator_compares_items() {
    let unique = json!({"$unique": "id"});
    let mut captures = Captures::new();
    let differ = json!([{"id": 1}, {"id": "1"}, {}, {}]);
    assert_eq!(match_pattern(&unique, &differ, &mut captures), Ok(()));
    let same = json!([{"id": 1}, {"id": 2}, {"id": 1}]);
    let twice = match_pattern(&unique, &same, &mut captures).unwrap_err();
    assert_eq!(twice, ": id 1 is there twice");
}

#[test]
fn long_value_is_cut_after_400_characters() {
    let of = |count: usize| short_json(&Value::from("ä".repeat(count)));
    assert_eq!(of(398), format!("\"{}\"", "ä".repeat(398)));
    assert_eq!(of(399), format!("\"{}…", "ä".repeat(399)));
    assert_eq!(of(5000), format!("\"{}…", "ä".repeat(399)));
}
