//! Patterns that fit and that do not, and what is filled in.

use super::*;
use serde_json::json;

fn check(pattern: Value, found: Value) -> Result<(), String> {
    fits(&pattern, &found, &mut Captures::new())
}

fn captured(pairs: &[(&str, Value)]) -> Captures {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    pairs.collect()
}

#[test]
fn a_line_may_hold_more_than_the_pattern() {
    let pattern = json!({"a": {"b": 1}});
    let found = json!({"a": {"b": 1, "c": 2}, "d": 3});
    assert_eq!(check(pattern.clone(), found), Ok(()));
    let wrong = check(pattern.clone(), json!({"a": {"b": 2}}));
    assert_eq!(wrong, Err("/a/b: expected 1, found 2".to_owned()));
    let missing = check(pattern, json!({"a": {}}));
    assert_eq!(missing, Err("/a/b is missing".to_owned()));
    assert!(check(json!([1]), json!([1, 2])).is_err());
}

#[test]
fn a_capture_is_the_same_each_time() {
    let mut captures = Captures::new();
    let pattern = json!({"id": "$id"});
    fits(&pattern, &json!({"id": "x\"y"}), &mut captures).unwrap();
    assert_eq!(
        fits(&pattern, &json!({"id": "x\"y"}), &mut captures),
        Ok(())
    );
    let wrong = fits(&pattern, &json!({"id": "z"}), &mut captures);
    assert_eq!(wrong, Err("/id: $id was \"x\\\"y\", now \"z\"".to_owned()));
}

#[test]
fn a_pattern_that_does_not_fit_captures_nothing() {
    let mut captures = Captures::new();
    let pattern = json!({"a": "$a", "b": 1});
    assert!(fits(&pattern, &json!({"a": 5, "b": 2}), &mut captures).is_err());
    assert!(captures.is_empty());
}

#[test]
fn every_operator_fits_and_does_not() {
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
            check(pattern.clone(), right.clone()),
            Ok(()),
            "{pattern} {right}"
        );
        assert!(
            check(pattern.clone(), wrong.clone()).is_err(),
            "{pattern} {wrong}"
        );
    }
    assert!(check(json!({"$nonsense": 1}), json!(1)).is_err());
}

#[test]
fn what_a_list_has_is_captured() {
    let mut captures = Captures::new();
    let pattern = json!({"$has": [{"kind": "b", "id": "$b"}]});
    let found = json!([{"kind": "a", "id": 1}, {"kind": "b", "id": 2}]);
    fits(&pattern, &found, &mut captures).unwrap();
    assert_eq!(captures, captured(&[("b", json!(2))]));
}

#[test]
fn names_inside_of_a_longer_string_are_filled_in() {
    let mut captures = captured(&[("CWD", json!("/x"))]);
    let pattern = json!({"path": "$CWD/a"});
    assert_eq!(
        fits(&pattern, &json!({"path": "/x/a"}), &mut captures),
        Ok(())
    );
    assert!(fits(&pattern, &json!({"path": "/y/a"}), &mut captures).is_err());
    assert_eq!(captures.len(), 1);
}

#[test]
fn values_keep_their_type_when_they_are_filled_in() {
    let captures = captured(&[("id", json!(7)), ("i", json!("no")), ("s", json!("x\"y"))]);
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
    assert_eq!(names("$a \"$b_1/$\" $5").collect::<Vec<_>>(), ["a", "b_1"]);
}

#[test]
fn what_must_differ_is_compared_item_by_item() {
    let unique = json!({"$unique": "id"});
    let mut captures = Captures::new();
    let differ = json!([{"id": 1}, {"id": "1"}, {}, {}]);
    assert_eq!(fits(&unique, &differ, &mut captures), Ok(()));
    let same = json!([{"id": 1}, {"id": 2}, {"id": 1}]);
    let twice = fits(&unique, &same, &mut captures).unwrap_err();
    assert_eq!(twice, ": id 1 is there twice");
}

#[test]
fn long_value_is_cut_after_400_characters() {
    let of = |count: usize| short(&Value::from("ä".repeat(count)));
    assert_eq!(of(398), format!("\"{}\"", "ä".repeat(398)));
    assert_eq!(of(399), format!("\"{}…", "ä".repeat(399)));
    assert_eq!(of(5000), format!("\"{}…", "ä".repeat(399)));
}
