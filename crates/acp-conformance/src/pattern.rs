//! Pattern: JSON that a line must contain, with captures.

use serde_json::Value;
use std::collections::BTreeMap;

/// Values captured so far, by name.
pub type Captures = BTreeMap<String, Value>;

/// Does `found` hold all that `pattern` says? On success the captures of the pattern are added.
///
/// # Errors
/// The path to the first difference, and what is there.
pub fn fits(pattern: &Value, found: &Value, captures: &mut Captures) -> Result<(), String> {
    let mut taken = captures.clone();
    compare(pattern, found, &mut taken, "")?;
    *captures = taken;
    Ok(())
}

fn compare(
    pattern: &Value,
    found: &Value,
    captures: &mut Captures,
    path: &str,
) -> Result<(), String> {
    match (pattern, found) {
        (Value::String(text), _) if text.starts_with('$') => match captures.get(text) {
            Some(before) if before != found => {
                Err(format!("{path}: {text} was {before}, now {found}"))
            }
            Some(_) => Ok(()),
            None => {
                captures.insert(text.clone(), found.clone());
                Ok(())
            }
        },
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, value) in wanted {
                let path = format!("{path}/{key}");
                let Some(there) = there.get(key) else {
                    return Err(format!("{path} is missing"));
                };
                compare(value, there, captures, &path)?;
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            for (index, (value, there)) in wanted.iter().zip(there).enumerate() {
                compare(value, there, captures, &format!("{path}/{index}"))?;
            }
            Ok(())
        }
        _ if pattern == found => Ok(()),
        _ => Err(format!("{path}: expected {pattern}, found {found}")),
    }
}

/// Fill captured strings into a line that is to be sent.
#[must_use]
pub fn fill(line: &str, captures: &Captures) -> String {
    let mut filled = line.to_owned();
    // Long names first, so that `$session` is not taken for `$s` and some text.
    let mut names: Vec<_> = captures.iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in names {
        let text = match value {
            Value::String(text) => {
                let quoted = Value::from(text.as_str()).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            other => other.to_string(),
        };
        filled = filled.replace(name.as_str(), &text);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_may_hold_more_than_the_pattern() {
        let mut captures = Captures::new();
        let pattern = json!({"a": {"b": 1}});
        assert_eq!(
            fits(
                &pattern,
                &json!({"a": {"b": 1, "c": 2}, "d": 3}),
                &mut captures
            ),
            Ok(())
        );
        let wrong = fits(&pattern, &json!({"a": {"b": 2}}), &mut captures);
        assert_eq!(wrong, Err("/a/b: expected 1, found 2".to_owned()));
        let missing = fits(&pattern, &json!({"a": {}}), &mut captures);
        assert_eq!(missing, Err("/a/b is missing".to_owned()));
        assert!(fits(&json!([1]), &json!([1, 2]), &mut captures).is_err());
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
        assert!(fits(&pattern, &json!({"id": "z"}), &mut captures).is_err());
        assert_eq!(fill(r#"{"id": "$id"}"#, &captures), r#"{"id": "x\"y"}"#);
    }

    #[test]
    fn a_pattern_that_does_not_fit_captures_nothing() {
        let mut captures = Captures::new();
        let pattern = json!({"a": "$a", "b": 1});
        assert!(fits(&pattern, &json!({"a": 5, "b": 2}), &mut captures).is_err());
        assert!(captures.is_empty());
    }
}
