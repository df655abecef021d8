//! Pattern: JSON that a value must hold, with captures; and the filling in of what was captured.

pub(crate) mod slips;

use regex::Regex;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

/// Values captured so far, by name without the `$`.
pub type Captures = BTreeMap<String, Value>;

/// Does `found` hold all that `pattern` says? On success the captures of the pattern are added.
///
/// # Errors
/// The path to the first difference, and what is there.
pub fn fits(pattern: &Value, found: &Value, captures: &mut Captures) -> Result<(), String> {
    let mut scope = Scope::new(captures);
    compare(pattern, Some(found), &mut scope, "")?;
    let new = scope.new;
    captures.extend(new);
    Ok(())
}

/// Tells whether `found` holds all that `pattern` says, and captures nothing.
pub(crate) fn would_fit(pattern: &Value, found: &Value, captures: &Captures) -> bool {
    compare(pattern, Some(found), &mut Scope::new(captures), "").is_ok()
}

/// Captures during a comparison. Those from before it are borrowed, because they may hold whole results.
#[derive(Clone)]
struct Scope<'a> {
    before: &'a Captures,
    new: Captures,
}

impl<'a> Scope<'a> {
    fn new(before: &'a Captures) -> Self {
        let new = Captures::new();
        Self { before, new }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.new.get(name).or_else(|| self.before.get(name))
    }
}

fn compare(
    pattern: &Value,
    found: Option<&Value>,
    captures: &mut Scope<'_>,
    path: &str,
) -> Result<(), String> {
    if let Some((word, argument)) = operator(pattern) {
        return operate(word, argument, found, captures, path);
    }
    let Some(found) = found else {
        return Err(format!("{path} is missing"));
    };
    match (pattern, found) {
        (Value::String(text), _) => match name(text) {
            Some(name) => match captures.get(name) {
                Some(before) if before != found => Err(format!(
                    "{path}: ${name} was {before}, now {}",
                    short(found)
                )),
                Some(_) => Ok(()),
                None => {
                    captures.new.insert(name.to_owned(), found.clone());
                    Ok(())
                }
            },
            None => {
                let text = Value::from(fill(text, |name| captures.get(name)));
                same(&text, found, path)
            }
        },
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, value) in wanted {
                compare(value, there.get(key), captures, &format!("{path}/{key}"))?;
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            for (index, (value, there)) in wanted.iter().zip(there).enumerate() {
                compare(value, Some(there), captures, &format!("{path}/{index}"))?;
            }
            Ok(())
        }
        _ => same(pattern, found, path),
    }
}

fn same(pattern: &Value, found: &Value, path: &str) -> Result<(), String> {
    if pattern == found {
        return Ok(());
    }
    Err(format!(
        "{path}: expected {pattern}, found {}",
        short(found)
    ))
}

/// Renders a value as JSON, cut after as much as a person would read. A long value is not rendered to its
/// end: this is done for every variant of a schema that does not fit.
pub(crate) fn short(value: &Value) -> String {
    const LONGEST: usize = 400;
    let mut start = Start {
        text: String::new(),
        left: LONGEST,
    };
    if write!(start, "{value}").is_err() {
        start.text.push('…');
    }
    start.text
}

/// Takes the first `left` characters that are written; any more are an error.
struct Start {
    text: String,
    left: usize,
}

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.char_indices().nth(self.left);
        let (fits, _) = text.split_at(end.map_or(text.len(), |(end, _)| end));
        self.text.push_str(fits);
        if end.is_some() {
            return Err(fmt::Error);
        }
        self.left -= fits.chars().count();
        Ok(())
    }
}

/// `{"$any": 1}` is the operator `any` with the argument 1.
fn operator(pattern: &Value) -> Option<(&str, &Value)> {
    let object = pattern.as_object().filter(|object| object.len() == 1)?;
    let (key, argument) = object.iter().next()?;
    key.strip_prefix('$').map(|word| (word, argument))
}

fn operate(
    word: &str,
    argument: &Value,
    found: Option<&Value>,
    captures: &mut Scope<'_>,
    path: &str,
) -> Result<(), String> {
    match word {
        "absent" => {
            return match found {
                None => Ok(()),
                Some(found) => Err(format!("{path} is there: {}", short(found))),
            };
        }
        "not" => {
            let mut unused = captures.clone();
            return match compare(argument, found, &mut unused, path) {
                Err(_) => Ok(()),
                Ok(()) => Err(format!("{path} fits {argument}")),
            };
        }
        "in" => {
            let one = list(argument)
                .iter()
                .any(|pattern| try_one(pattern, found, captures, path));
            let found = found.map_or("nothing".to_owned(), short);
            return if one {
                Ok(())
            } else {
                Err(format!("{path}: {found} is none of {argument}"))
            };
        }
        "all" => {
            for pattern in list(argument) {
                compare(pattern, found, captures, path)?;
            }
            return Ok(());
        }
        _ => {}
    }
    let Some(found) = found else {
        return Err(format!("{path} is missing"));
    };
    let wrong = |what: &str| Err(format!("{path}: {} {what} {argument}", short(found)));
    match word {
        "any" => Ok(()),
        "type" if argument.as_str().is_some_and(|name| is_type(name, found)) => Ok(()),
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
            for pattern in list(argument) {
                let one = items
                    .iter()
                    .any(|item| try_one(pattern, Some(item), captures, path));
                if !one {
                    return Err(format!("{path}: {} lacks {pattern}", short(found)));
                }
            }
            Ok(())
        }
        "each" => match found.as_array() {
            None => wrong("is no list of"),
            Some(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                // What differs from item to item can be named once for each.
                let mut each = captures.clone();
                compare(argument, Some(item), &mut each, &format!("{path}/{index}"))
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

fn try_one(pattern: &Value, found: Option<&Value>, captures: &mut Scope<'_>, path: &str) -> bool {
    let mut taken = captures.clone();
    let one = compare(pattern, found, &mut taken, path).is_ok();
    if one {
        *captures = taken;
    }
    one
}

fn list(argument: &Value) -> &[Value] {
    match argument {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// The name in `$name`, if the text is just that.
fn name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    (leading_name(name) == name.len() && !name.is_empty()).then_some(name)
}

/// How much of this text is a name.
fn leading_name(text: &str) -> usize {
    let is_name = |(index, letter): (usize, char)| {
        letter == '_' || letter.is_ascii_alphabetic() || (index > 0 && letter.is_ascii_digit())
    };
    let end = text.char_indices().find(|letter| !is_name(*letter));
    end.map_or(text.len(), |(index, _)| index)
}

/// A value of which text is made: a string as it is, another as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Fill what was captured into a text. What was not stays as it is.
#[must_use]
pub fn fill_text(text: &str, captures: &Captures) -> String {
    fill(text, |name| captures.get(name))
}

fn fill<'a>(text: &str, captured: impl Fn(&str) -> Option<&'a Value>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let end = leading_name(after);
        match captured(&after[..end]) {
            Some(value) => filled.push_str(&plain(value)),
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

/// Fill what was captured into a value: `"$name"` becomes the value, `$name` in a longer string its text.
#[must_use]
pub fn fill_value(value: &Value, captures: &Captures) -> Value {
    match value {
        Value::String(text) => match name(text).and_then(|name| captures.get(name)) {
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

/// Fill what was captured into the text of a line: `"$name"` becomes the value as JSON, whatever its type;
/// `$name` inside of a string its text, escaped; and elsewhere the value as JSON.
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
                    let value = captures.get(name(&after[1..=end])?)?;
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
                let end = 1 + leading_name(&after[1..]);
                match captures.get(&after[1..end]) {
                    Some(value) if inside => {
                        let quoted = Value::from(plain(value)).to_string();
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

/// The names that this text mentions.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|after| {
        let end = leading_name(after);
        (end > 0).then(|| &after[..end])
    })
}

#[cfg(test)]
mod tests;
