//! Normalises arguments written by a model to a tool's schema where their meaning is clear, and describes
//! what is wrong where it is not.

use crate::call_errors::validation_error;
use serde_json::{Map, Value};
use std::cell::Cell;
use turnery_engine::{ToolError, ToolSpec};

/// Schemas of external tools may be infinitely recursive; after this many steps, or at this depth, the
/// remaining arguments are passed on unchanged.
const MAX_STEPS: u32 = 100_000;
const MAX_DEPTH: u32 = 128;

/// Returns the arguments in the form that the schema requires (JIDO-39, JIDO-40).
pub(crate) fn normalise_args(spec: &ToolSpec, args: &Value) -> Result<Value, ToolError> {
    let parsed = match args {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => serde_json::from_str(text).map_err(|error| {
            validation_error(format!(
                "the arguments of {} are not valid JSON: {error}",
                spec.name
            ))
        })?,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => args.clone(),
    };
    if !parsed.is_object() {
        return Err(validation_error(format!(
            "the arguments of {} must be an object, not {}",
            spec.name,
            type_name(&parsed)
        )));
    }
    let fit = SchemaNormaliser {
        root_schema: &spec.schema,
        remaining_steps: Cell::new(MAX_STEPS),
        depth: Cell::new(0),
    };
    fit.normalise_value(&spec.schema, parsed, "", Leniency::Lenient)
        .map_err(|misfit| validation_error(format!("{}: {misfit}", spec.name)))
}

/// Controls whether a value may be converted to another of the same meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leniency {
    Strict,
    Lenient,
}

struct SchemaNormaliser<'a> {
    root_schema: &'a Value,
    remaining_steps: Cell<u32>,
    depth: Cell<u32>,
}

impl<'a> SchemaNormaliser<'a> {
    fn normalise_value(
        &self,
        schema: &'a Value,
        value: Value,
        at: &str,
        leniency: Leniency,
    ) -> Result<Value, String> {
        let Value::Object(rules) = schema else {
            return Ok(value);
        };
        let (remaining_steps, depth) = (self.remaining_steps.get(), self.depth.get());
        if remaining_steps == 0 || depth == MAX_DEPTH {
            return Ok(value);
        }
        self.remaining_steps.set(remaining_steps - 1);
        self.depth.set(depth + 1);
        let fitted = self.normalise_by_schema(rules, value, at, leniency);
        self.depth.set(depth);
        fitted
    }

    fn normalise_by_schema(
        &self,
        rules: &'a Map<String, Value>,
        value: Value,
        at: &str,
        leniency: Leniency,
    ) -> Result<Value, String> {
        if let Some(Value::String(reference)) = rules.get("$ref") {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root_schema.pointer(pointer));
            return match target {
                Some(target) => self.normalise_value(target, value, at, leniency),
                None => Ok(value),
            };
        }
        let value = match schema_types(rules).as_slice() {
            [] => value,
            wanted => coerce_to_types(wanted, value, at, leniency)?,
        };
        if let Some(Value::Array(allowed)) = rules.get("enum")
            && !allowed.contains(&value)
        {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            return Err(format!(
                "{} must be one of {}, not {value}",
                describe_location(at),
                allowed.join(", ")
            ));
        }
        let value = match ["anyOf", "oneOf", "allOf"].map(|word| rules.get(word)) {
            [Some(Value::Array(forms)), _, _] | [_, Some(Value::Array(forms)), _] => {
                self.normalise_any_of(forms, value, at, leniency)?
            }
            [_, _, Some(Value::Array(forms))] => forms.iter().try_fold(value, |value, form| {
                self.normalise_value(form, value, at, leniency)
            })?,
            _ => value,
        };
        match value {
            Value::Object(object) => self
                .normalise_object(rules, object, at, leniency)
                .map(Value::Object),
            Value::Array(items) => match rules.get("items") {
                Some(schema) => items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| {
                        self.normalise_value(schema, item, &format!("{at}/{index}"), leniency)
                    })
                    .collect::<Result<_, _>>()
                    .map(Value::Array),
                None => Ok(Value::Array(items)),
            },
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Ok(plain)
            }
        }
    }

    /// Returns the value in the first form that it matches strictly, or else the first that it can be
    /// converted to.
    fn normalise_any_of(
        &self,
        forms: &'a [Value],
        value: Value,
        at: &str,
        leniency: Leniency,
    ) -> Result<Value, String> {
        let fits = |form, leniency| self.normalise_value(form, value.clone(), at, leniency);
        if let Some(fitted) = forms
            .iter()
            .find_map(|form| fits(form, Leniency::Strict).ok())
        {
            return Ok(fitted);
        }
        let mut misfit = format!(
            "{} matches none of the allowed forms",
            describe_location(at)
        );
        if leniency == Leniency::Lenient {
            for (index, form) in forms.iter().enumerate() {
                match fits(form, Leniency::Lenient) {
                    Ok(fitted) => return Ok(fitted),
                    Err(first) if index == 0 => misfit = first,
                    Err(_) => {}
                }
            }
        }
        Err(misfit)
    }

    fn normalise_object(
        &self,
        rules: &'a Map<String, Value>,
        object: Map<String, Value>,
        at: &str,
        leniency: Leniency,
    ) -> Result<Map<String, Value>, String> {
        let empty = Map::new();
        let known = rules
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let required: Vec<&str> = rules
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut fitted = Map::new();
        for (key, value) in object {
            let inner = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            let value = match (known.get(&key), rules.get("additionalProperties")) {
                // Many models write null for arguments that they omit.
                (Some(_), _) if value.is_null() && !required.contains(&key.as_str()) => continue,
                (Some(schema), _) => self.normalise_value(schema, value, &inner, leniency)?,
                (None, Some(Value::Bool(false))) => {
                    return Err(unknown_argument_message(&key, at, known, &required));
                }
                (None, Some(schema)) => self.normalise_value(schema, value, &inner, leniency)?,
                (None, None) => value,
            };
            fitted.insert(key, value);
        }
        match required.iter().find(|key| !fitted.contains_key(**key)) {
            Some(missing) => Err(format!(
                "{} is missing",
                describe_location(&format!("{at}/{missing}"))
            )),
            None => Ok(fitted),
        }
    }
}

fn schema_types(rules: &Map<String, Value>) -> Vec<&str> {
    match rules.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn coerce_to_types(
    wanted: &[&str],
    value: Value,
    at: &str,
    leniency: Leniency,
) -> Result<Value, String> {
    if wanted.iter().any(|wanted| is_of_type(wanted, &value)) {
        return Ok(value);
    }
    let turned = match leniency {
        Leniency::Strict => None,
        Leniency::Lenient => wanted
            .iter()
            .find_map(|wanted| coerce_value(wanted, &value)),
    };
    turned.ok_or_else(|| {
        format!(
            "{} must be of type {}, not {}",
            describe_location(at),
            wanted.join(" or "),
            type_name(&value)
        )
    })
}

fn is_of_type(wanted: &str, value: &Value) -> bool {
    match wanted {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Converts a value to the wanted type if its meaning is clear.
fn coerce_value(wanted: &str, value: &Value) -> Option<Value> {
    match (wanted, value) {
        ("integer", Value::Number(number)) => integral_number(number.as_f64()?),
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("integer" | "number" | "array" | "object", Value::String(text)) => {
            let parsed: Value = serde_json::from_str(text).ok()?;
            if is_of_type(wanted, &parsed) {
                Some(parsed)
            } else if wanted == "integer" {
                integral_number(parsed.as_f64()?)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// Converts `6.0` to 6. Beyond 2^53 a float no longer determines an integer.
fn integral_number(number: f64) -> Option<Value> {
    if number.fract() != 0.0 || number.abs() > 9_007_199_254_740_992.0 {
        return None;
    }
    serde_json::from_str(&format!("{number:.0}")).ok()
}

fn unknown_argument_message(
    key: &str,
    at: &str,
    known: &Map<String, Value>,
    required: &[&str],
) -> String {
    let nearest = known
        .keys()
        .filter_map(|name| Some((name_distance(key, name)?, name)))
        .min();
    let names: Vec<String> = known
        .keys()
        .map(|name| match required.contains(&name.as_str()) {
            true => format!("{name} (required)"),
            false => name.clone(),
        })
        .collect();
    let place = match at {
        "" => String::new(),
        at => format!(" in {at}"),
    };
    let takes = match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    match nearest {
        Some((_, nearest)) => format!(
            "there is no argument {key:?}{place}; did you mean {nearest:?}? It takes {takes}"
        ),
        None => format!("there is no argument {key:?}{place}; it takes {takes}"),
    }
}

/// Argument names used by other agents' tools, and the corresponding names here.
const ALIASES: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("script", "command"),
    ("dir", "cwd"),
    ("directory", "cwd"),
    ("workdir", "cwd"),
    ("file", "path"),
    ("filename", "path"),
    ("query", "pattern"),
    ("regex", "pattern"),
    ("oldstring", "oldtext"),
    ("newstring", "newtext"),
];

/// Returns the distance between a key and a name that it may be a typo of; `None` if they are unrelated.
fn name_distance(key: &str, name: &str) -> Option<usize> {
    let (key, name) = (split_words(key), split_words(name));
    if key.is_empty() || name.is_empty() {
        return None;
    }
    if key == name || ALIASES.contains(&(key.concat().as_str(), name.concat().as_str())) {
        return Some(0);
    }
    // `file_path` means `path`.
    let holds = |all: &[String], some: &[String]| some.iter().all(|word| all.contains(word));
    if holds(&key, &name) || holds(&name, &key) {
        return Some(1);
    }
    let (key, name) = (key.concat(), name.concat());
    let slips = strsim::damerau_levenshtein(&key, &name);
    // One typo per four letters, since `cmd` is as far from `cwd` as from any other word.
    let most = key.chars().count().max(name.chars().count()) / 4;
    (slips <= most).then_some(1 + slips)
}

/// Splits `filePath` and `file-path` like `file_path`.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_alphanumeric()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the name of a place in the arguments: a top-level argument by its name, anything deeper by its
/// JSON pointer.
fn describe_location(at: &str) -> String {
    match at.strip_prefix('/') {
        None => "the arguments".to_owned(),
        Some(name) if !name.contains('/') => format!("{name:?}"),
        Some(_) => at.to_owned(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_typos_and_aliases_are_suggested() {
        let known = [
            "command",
            "cwd",
            "timeout_ms",
            "outside_sandbox",
            "read_only",
            "old_text",
        ];
        let known = known.map(|name| (name.to_owned(), json!({})));
        let known = Map::from_iter(known);
        for (key, expected) in [
            ("cmd", Some("command")),
            ("CMD", Some("command")),
            ("comand", Some("command")),
            ("commnad", Some("command")),
            ("command_line", Some("command")),
            ("workdir", Some("cwd")),
            ("timeoutMs", Some("timeout_ms")),
            ("timeout", Some("timeout_ms")),
            ("old_string", Some("old_text")),
            ("readonly", Some("read_only")),
            ("description", None),
            ("run_in_background", None),
            ("cwx", None),
            ("env", None),
            ("", None),
            ("_", None),
        ] {
            let told = unknown_argument_message(key, "", &known, &[]);
            let hint = told.split_once("did you mean \"").map(|(_, rest)| rest);
            let hint = hint.and_then(|rest| rest.split_once('"'));
            assert_eq!(hint.map(|(name, _)| name), expected, "{told}");
        }
    }
}
