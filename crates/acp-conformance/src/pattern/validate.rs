//! Validates patterns before a case runs, and collects the names that they capture.

use super::{as_list, as_operator, as_variable_name};
use crate::suggestions::unknown_name_message;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const OPERATORS: [&str; 11] = [
    "$any", "$absent", "$type", "$match", "$in", "$all", "$not", "$has", "$each", "$unique",
    "$length",
];
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Checks that a value is a valid pattern.
///
/// # Errors
/// If the pattern is invalid; the error describes the invalid part.
pub(crate) fn validate_pattern(pattern: &Value) -> Result<(), String> {
    if let Some((word, argument)) = as_operator(pattern) {
        return validate_operator(word, argument);
    }
    match pattern {
        Value::Object(members) => {
            let is_operator = |key: &&String| OPERATORS.contains(&key.as_str());
            if let Some(key) = members.keys().find(is_operator) {
                return Err(format!(
                    "{key} is alone in its object; for several say {{\"$all\": [P, …]}}"
                ));
            }
            members.values().try_for_each(validate_pattern)
        }
        Value::Array(items) => items.iter().try_for_each(validate_pattern),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn validate_operator(word: &str, argument: &Value) -> Result<(), String> {
    let text = argument.as_str();
    match (word, text) {
        ("any" | "absent", _) | ("unique", Some(_)) => Ok(()),
        ("type", Some(name)) if TYPES.contains(&name) => Ok(()),
        ("type", Some(name)) => Err(unknown_name_message(name, "type", TYPES)),
        ("match", Some(text)) => Regex::new(text).map(drop).map_err(|error| {
            // The lines above the last one mark the position, for a terminal.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default();
            let why = why.trim_start_matches("error: ");
            format!("{argument} is no regular expression: {why}")
        }),
        ("type" | "match" | "unique", None) => Err(format!("${word} takes a text, not {argument}")),
        ("in" | "all" | "has", _) => as_list(argument).iter().try_for_each(validate_pattern),
        ("not" | "each", _) => validate_pattern(argument),
        ("length", _) if argument.is_u64() => Ok(()),
        ("length", _) => Err(format!("$length takes a whole number, not {argument}")),
        (other, _) => Err(unknown_name_message(
            &format!("${other}"),
            "pattern",
            OPERATORS,
        )),
    }
}

/// Adds the names that a match of this pattern captures.
pub(crate) fn collect_captured_names(pattern: &Value, names: &mut BTreeSet<String>) {
    match (as_operator(pattern), pattern) {
        (Some(("in" | "all" | "has", argument)), _) => {
            for pattern in as_list(argument) {
                collect_captured_names(pattern, names);
            }
        }
        // Captures of `$not` and `$each` are discarded; other operators contain no patterns.
        (Some(_), _) => {}
        (None, Value::Object(members)) => {
            for pattern in members.values() {
                collect_captured_names(pattern, names);
            }
        }
        (None, Value::Array(items)) => {
            for pattern in items {
                collect_captured_names(pattern, names);
            }
        }
        (None, Value::String(text)) => names.extend(as_variable_name(text).map(str::to_owned)),
        (None, Value::Null | Value::Bool(_) | Value::Number(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_pattern_is_reported() {
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
            assert_eq!(validate_pattern(&pattern), Err(why.to_owned()), "{pattern}");
        }
        let right = json!({"$schema": "x", "a": [{"$in": ["$b", {"$any": 1}, {"$length": 0}]}]});
        assert_eq!(validate_pattern(&right), Ok(()));
    }

    #[test]
    fn captured_names_are_collected() {
        let pattern = json!({
            "a": ["$one", {"$in": [{"b": "$two"}, "$three/x", "$"]}],
            "$no": {"$not": "$never"},
            "c": {"$each": {"id": "$each"}},
            "d": {"$match": "$match"},
        });
        let mut names = BTreeSet::new();
        collect_captured_names(&pattern, &mut names);
        assert_eq!(names, BTreeSet::from(["one", "two"].map(str::to_owned)));
    }
}
