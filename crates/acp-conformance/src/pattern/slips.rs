//! Slips: what is wrong with a pattern before anything has come, and what it captures.

use super::{list, name, operator};
use crate::near::unknown;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

const OPERATORS: [&str; 11] = [
    "$any", "$absent", "$type", "$match", "$in", "$all", "$not", "$has", "$each", "$unique",
    "$length",
];
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Whether this is a pattern.
///
/// # Errors
/// Says which part of it is none.
pub(crate) fn check(pattern: &Value) -> Result<(), String> {
    if let Some((word, argument)) = operator(pattern) {
        return check_operator(word, argument);
    }
    match pattern {
        Value::Object(members) => {
            let is_operator = |key: &&String| OPERATORS.contains(&key.as_str());
            if let Some(key) = members.keys().find(is_operator) {
                return Err(format!(
                    "{key} is alone in its object; for several say {{\"$all\": [P, …]}}"
                ));
            }
            members.values().try_for_each(check)
        }
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_operator(word: &str, argument: &Value) -> Result<(), String> {
    let text = argument.as_str();
    match (word, text) {
        ("any" | "absent", _) | ("unique", Some(_)) => Ok(()),
        ("type", Some(name)) if TYPES.contains(&name) => Ok(()),
        ("type", Some(name)) => Err(unknown(name, "type", TYPES)),
        ("match", Some(text)) => Regex::new(text).map(drop).map_err(|error| {
            // What is above the last line shows the place, for a terminal.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default();
            let why = why.trim_start_matches("error: ");
            format!("{argument} is no regular expression: {why}")
        }),
        ("type" | "match" | "unique", None) => Err(format!("${word} takes a text, not {argument}")),
        ("in" | "all" | "has", _) => list(argument).iter().try_for_each(check),
        ("not" | "each", _) => check(argument),
        ("length", _) if argument.is_u64() => Ok(()),
        ("length", _) => Err(format!("$length takes a whole number, not {argument}")),
        (other, _) => Err(unknown(&format!("${other}"), "pattern", OPERATORS)),
    }
}

/// Add the names that are captured where this pattern fits.
pub(crate) fn captured(pattern: &Value, names: &mut BTreeSet<String>) {
    match (operator(pattern), pattern) {
        (Some(("in" | "all" | "has", argument)), _) => {
            for pattern in list(argument) {
                captured(pattern, names);
            }
        }
        // What `$not` and `$each` capture is forgotten; in the others there are no patterns.
        (Some(_), _) => {}
        (None, Value::Object(members)) => {
            for pattern in members.values() {
                captured(pattern, names);
            }
        }
        (None, Value::Array(items)) => {
            for pattern in items {
                captured(pattern, names);
            }
        }
        (None, Value::String(text)) => names.extend(name(text).map(str::to_owned)),
        (None, Value::Null | Value::Bool(_) | Value::Number(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_that_is_none_is_told() {
        for (pattern, why) in [
            (
                json!({"id": {"$mtach": "x"}}),
                "\"$mtach\" is no pattern; there is $match, $each",
            ),
            (
                json!([{"a": {"$match": "("}}]),
                "\"(\" is no regular expression: unclosed group",
            ),
            (json!({"$match": 1}), "$match takes a text, not 1"),
            (
                json!({"$not": {"$type": "sting"}}),
                "\"sting\" is no type; there is string",
            ),
            (
                json!({"$length": -1}),
                "$length takes a whole number, not -1",
            ),
            (
                json!({"$unique": ["id"]}),
                "$unique takes a text, not [\"id\"]",
            ),
            (
                json!({"$has": [1, {"$each": {"$xyz": 1}}]}),
                "\"$xyz\" is no pattern",
            ),
            (
                json!({"a": {"$type": "string", "b": 1}}),
                "$type is alone in its object; for several say {\"$all\": [P, …]}",
            ),
        ] {
            assert_eq!(check(&pattern), Err(why.to_owned()), "{pattern}");
        }
        let right = json!({"$schema": "x", "a": [{"$in": ["$b", {"$any": 1}, {"$length": 0}]}]});
        assert_eq!(check(&right), Ok(()));
    }

    #[test]
    fn what_a_pattern_captures_is_known() {
        let pattern = json!({
            "a": ["$one", {"$in": [{"b": "$two"}, "$three/x", "$"]}],
            "$no": {"$not": "$never"},
            "c": {"$each": {"id": "$each"}},
            "d": {"$match": "$match"},
        });
        let mut names = BTreeSet::new();
        captured(&pattern, &mut names);
        assert_eq!(names, BTreeSet::from(["one", "two"].map(str::to_owned)));
    }
}
