//! Matches JSON values against patterns with captures, and substitutes captured values.

pub(crate) mod validate;

use regex::Regex;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

/// Captured values, by name without the `$`.
pub type Captures = BTreeMap<String, Value>;

/// Checks that `found` contains everything in `pattern`, and adds the captures on success.
///
/// # Errors
/// If a value differs; the error has the path of the first difference and the value there.
pub fn match_pattern(
    pattern: &Value,
    found: &Value,
    captures: &mut Captures,
) -> Result<(), String> {
    let mut scope = CaptureScope::new(captures);
    compare_value(pattern, Some(found), &mut scope, "")?;
    let new = scope.added;
    captures.extend(new);
    Ok(())
}

/// Returns true if `found` matches `pattern`; captures nothing.
pub(crate) fn is_match(pattern: &Value, found: &Value, captures: &Captures) -> bool {
    compare_value(pattern, Some(found), &mut CaptureScope::new(captures), "").is_ok()
}

/// Captures during a comparison. Earlier captures are borrowed, because they may hold whole results.
#[derive(Clone)]
struct CaptureScope<'a> {
    existing: &'a Captures,
    added: Captures,
}

impl<'a> CaptureScope<'a> {
    fn new(before: &'a Captures) -> Self {
        let new = Captures::new();
        Self {
            existing: before,
            added: new,
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.added.get(name).or_else(|| self.existing.get(name))
    }
}

fn compare_value(
    pattern: &Value,
    found: Option<&Value>,
    captures: &mut CaptureScope<'_>,
    path: &str,
) -> Result<(), String> {
    if let Some((word, argument)) = as_operator(pattern) {
        return apply_operator(word, argument, found, captures, path);
    }
    let Some(found) = found else {
        return Err(format!("{path} is missing"));
    };
    match (pattern, found) {
        (Value::String(text), _) => match as_variable_name(text) {
            Some(name) => match captures.get(name) {
                Some(before) if before != found => Err(format!(
                    "{path}: ${name} was {before}, now {}",
                    short_json(found)
                )),
                Some(_) => Ok(()),
                None => {
                    captures.added.insert(name.to_owned(), found.clone());
                    Ok(())
                }
            },
            None => {
                let text = Value::from(fill_with(text, |name| captures.get(name)));
                expect_equal(&text, found, path)
            }
        },
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, value) in wanted {
                compare_value(value, there.get(key), captures, &format!("{path}/{key}"))?;
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            for (index, (value, there)) in wanted.iter().zip(there).enumerate() {
                compare_value(value, Some(there), captures, &format!("{path}/{index}"))?;
            }
            Ok(())
        }
        _ => expect_equal(pattern, found, path),
    }
}

fn expect_equal(pattern: &Value, found: &Value, path: &str) -> Result<(), String> {
    if pattern == found {
        return Ok(());
    }
    Err(format!(
        "{path}: expected {pattern}, found {}",
        short_json(found)
    ))
}

/// Renders a value as JSON, cut to a readable length. Rendering stops there, because this function runs for
/// every schema variant that does not match.
pub(crate) fn short_json(value: &Value) -> String {
    const LONGEST: usize = 400;
    let mut start = TruncatingWriter {
        text: String::new(),
        remaining: LONGEST,
    };
    if write!(start, "{value}").is_err() {
        start.text.push('…');
    }
    start.text
}

/// Keeps the first `remaining` characters written and fails on any more.
struct TruncatingWriter {
    text: String,
    remaining: usize,
}

impl fmt::Write for TruncatingWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.char_indices().nth(self.remaining);
        let (fits, _) = text.split_at(end.map_or(text.len(), |(end, _)| end));
        self.text.push_str(fits);
        if end.is_some() {
            return Err(fmt::Error);
        }
        self.remaining -= fits.chars().count();
        Ok(())
    }
}

/// Splits an operator object: `{"$any": 1}` is the operator `any` with the argument 1.
fn as_operator(pattern: &Value) -> Option<(&str, &Value)> {
    let object = pattern.as_object().filter(|object| object.len() == 1)?;
    let (key, argument) = object.iter().next()?;
    key.strip_prefix('$').map(|word| (word, argument))
}

fn apply_operator(
    word: &str,
    argument: &Value,
    found: Option<&Value>,
    captures: &mut CaptureScope<'_>,
    path: &str,
) -> Result<(), String> {
    match word {
        "absent" => {
            return match found {
                None => Ok(()),
                Some(found) => Err(format!("{path} is there: {}", short_json(found))),
            };
        }
        "not" => {
            let mut unused = captures.clone();
            return match compare_value(argument, found, &mut unused, path) {
                Err(_) => Ok(()),
                Ok(()) => Err(format!("{path} fits {argument}")),
            };
        }
        "in" => {
            let one = as_list(argument)
                .iter()
                .any(|pattern| try_match(pattern, found, captures, path));
            let found = found.map_or("nothing".to_owned(), short_json);
            return if one {
                Ok(())
            } else {
                Err(format!("{path}: {found} is none of {argument}"))
            };
        }
        "all" => {
            for pattern in as_list(argument) {
                compare_value(pattern, found, captures, path)?;
            }
            return Ok(());
        }
        _ => {}
    }
    let Some(found) = found else {
        return Err(format!("{path} is missing"));
    };
    let wrong = |what: &str| Err(format!("{path}: {} {what} {argument}", short_json(found)));
    match word {
        "any" => Ok(()),
        "type" if argument.as_str().is_some_and(|name| has_type(name, found)) => Ok(()),
        "type" => wrong("is no"),
        "match" => {
            let pattern = argument.as_str().unwrap_or_default();
            let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
            match found.as_str() {
                Some(text) if regex.is_match(text) => Ok(()),
                _ => wrong("does not match"),
            }
        }
        "has" => {
            let items = found.as_array().map_or(&[][..], Vec::as_slice);
            for pattern in as_list(argument) {
                let one = items
                    .iter()
                    .any(|item| try_match(pattern, Some(item), captures, path));
                if !one {
                    return Err(format!("{path}: {} lacks {pattern}", short_json(found)));
                }
            }
            Ok(())
        }
        "each" => match found.as_array() {
            None => wrong("is no list of"),
            Some(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                // Captures are discarded after each item, so that a name may capture another value in the next
                // one.
                let mut each = captures.clone();
                compare_value(argument, Some(item), &mut each, &format!("{path}/{index}"))
            }),
        },
        "unique" => {
            let field = argument.as_str().unwrap_or_default();
            let items = found.as_array().map_or(&[][..], Vec::as_slice);
            let mut seen = Vec::new();
            for value in items.iter().filter_map(|item| item.get(field)) {
                if seen.contains(&value) {
                    return Err(format!("{path}: {field} {value} is there twice"));
                }
                seen.push(value);
            }
            Ok(())
        }
        "length" => {
            let length = match found {
                Value::Array(items) => items.len(),
                Value::String(text) => text.chars().count(),
                Value::Object(members) => members.len(),
                Value::Null | Value::Bool(_) | Value::Number(_) => return wrong("has no length"),
            };
            if argument.as_u64() == u64::try_from(length).ok() {
                Ok(())
            } else {
                wrong(&format!("is {length} long, not"))
            }
        }
        other => Err(format!("${other} is no pattern")),
    }
}

fn try_match(
    pattern: &Value,
    found: Option<&Value>,
    captures: &mut CaptureScope<'_>,
    path: &str,
) -> bool {
    let mut taken = captures.clone();
    let one = compare_value(pattern, found, &mut taken, path).is_ok();
    if one {
        *captures = taken;
    }
    one
}

fn as_list(argument: &Value) -> &[Value] {
    match argument {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

fn has_type(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Returns the name if the text is exactly `$name`.
fn as_variable_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    (leading_name_len(name) == name.len() && !name.is_empty()).then_some(name)
}

/// Returns the length of the name at the start of a text. Unit: bytes.
fn leading_name_len(text: &str) -> usize {
    let is_name = |(index, letter): (usize, char)| {
        letter == '_' || letter.is_ascii_alphabetic() || (index > 0 && letter.is_ascii_digit())
    };
    let end = text.char_indices().find(|letter| !is_name(*letter));
    end.map_or(text.len(), |(index, _)| index)
}

/// Converts a value for use in a text: a string verbatim, other values as JSON.
fn to_plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Substitutes captures in a text; unknown names stay unchanged.
#[must_use]
pub fn fill_text(text: &str, captures: &Captures) -> String {
    fill_with(text, |name| captures.get(name))
}

fn fill_with<'a>(text: &str, captured: impl Fn(&str) -> Option<&'a Value>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let end = leading_name_len(after);
        match captured(&after[..end]) {
            Some(value) => filled.push_str(&to_plain_text(value)),
            None => {
                filled.push('$');
                filled.push_str(&after[..end]);
            }
        }
        rest = &after[end..];
    }
    filled.push_str(rest);
    filled
}

/// Substitutes captures in a value: `"$name"` becomes the value, `$name` in a longer string its text.
#[must_use]
pub fn fill_value(value: &Value, captures: &Captures) -> Value {
    match value {
        Value::String(text) => match as_variable_name(text).and_then(|name| captures.get(name)) {
            Some(value) => value.clone(),
            None => Value::from(fill_text(text, captures)),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| fill_value(item, captures))
            .collect(),
        Value::Object(members) => {
            let filled = members
                .iter()
                .map(|(key, value)| (key.clone(), fill_value(value, captures)));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Substitutes captures in the text of a line: `"$name"` becomes the value as JSON of any type, `$name` inside
/// a string its escaped text, and elsewhere the value as JSON.
#[must_use]
pub fn fill_line(line: &str, captures: &Captures) -> String {
    let mut filled = String::with_capacity(line.len());
    let mut rest = line;
    let mut inside = false;
    while let Some(index) = rest.find(['"', '\\', '$']) {
        let (before, after) = rest.split_at(index);
        filled.push_str(before);
        rest = match after.as_bytes()[0] {
            b'"' => {
                let named = after[1..].find('"').and_then(|end| {
                    let value = captures.get(as_variable_name(&after[1..=end])?)?;
                    Some((value, end + 2))
                });
                match named {
                    Some((value, end)) if !inside => {
                        filled.push_str(&value.to_string());
                        &after[end..]
                    }
                    _ => {
                        inside = !inside;
                        filled.push('"');
                        &after[1..]
                    }
                }
            }
            b'\\' => {
                let end = after
                    .char_indices()
                    .nth(2)
                    .map_or(after.len(), |(end, _)| end);
                filled.push_str(&after[..end]);
                &after[end..]
            }
            _ => {
                let end = 1 + leading_name_len(&after[1..]);
                match captures.get(&after[1..end]) {
                    Some(value) if inside => {
                        let quoted = Value::from(to_plain_text(value)).to_string();
                        filled.push_str(&quoted[1..quoted.len() - 1]);
                    }
                    Some(value) => filled.push_str(&value.to_string()),
                    None => filled.push_str(&after[..end]),
                }
                &after[end..]
            }
        };
    }
    filled.push_str(rest);
    filled
}

/// Iterates over the names that a text mentions.
pub fn variable_names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|after| {
        let end = leading_name_len(after);
        (end > 0).then(|| &after[..end])
    })
}

#[cfg(test)]
mod tests;
