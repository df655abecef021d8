//! Removes secrets from a value and bounds its size for logging.

use serde_json::{Map, Value};

/// Replaces a secret.
const REDACTED: &str = "[REDACTED]";
/// Replaces values below the maximum depth.
const TOO_DEEP: &str = "[DEEPER]";

/// Maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 4;
/// Maximum number of items of a list.
const MAX_ITEMS: usize = 10;
/// Maximum number of keys of a map.
const MAX_KEYS: usize = 32;
/// Maximum length of a text. Unit: characters.
const MAX_CHARACTERS: usize = 512;

/// Names of secrets, in lower case without separators.
const SECRET_NAMES: &[&str] = &[
    "apikey",
    "password",
    "secret",
    "token",
    "authtoken",
    "privatekey",
    "accesskey",
    "bearer",
    "apisecret",
    "clientsecret",
    "authorization",
];
const SECRET_SUFFIXES: &[&str] = &["_secret", "_key", "_token", "_password"];

/// Returns a value without secrets: values under names like those of keys, tokens and passwords are replaced
/// at any depth. The value is bounded to 4 levels, 10 items of a list, 32 keys of a map and 512 characters of
/// a text; omissions are counted (UP-25).
#[must_use]
pub fn sanitise(value: &Value) -> Value {
    sanitise_to_depth(value, MAX_DEPTH)
}

fn sanitise_to_depth(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(truncate_text(text)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::from(TOO_DEEP),
        Value::Array(items) => {
            let kept = items
                .iter()
                .take(MAX_ITEMS)
                .map(|item| sanitise_to_depth(item, depth - 1));
            Value::Array(kept.chain(omitted_marker(items.len(), MAX_ITEMS)).collect())
        }
        Value::Object(map) => {
            let mut kept: Map<String, Value> = map
                .iter()
                .take(MAX_KEYS)
                .map(|(key, value)| match is_secret_name(key) {
                    true => (truncate_text(key), Value::from(REDACTED)),
                    false => (truncate_text(key), sanitise_to_depth(value, depth - 1)),
                })
                .collect();
            kept.extend(omitted_marker(map.len(), MAX_KEYS).map(|rest| ("...".to_owned(), rest)));
            Value::Object(kept)
        }
    }
}

/// Returns a marker with the number of omitted items.
fn omitted_marker(all: usize, kept: usize) -> Option<Value> {
    let rest = all.checked_sub(kept).filter(|rest| *rest > 0)?;
    Some(Value::String(format!("... {rest} more")))
}

fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns true if a value under this name is a secret. `apiKey`, `api-key` and `API_KEY` are the same name.
fn is_secret_name(name: &str) -> bool {
    let mut snake = String::with_capacity(name.len());
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_small {
            snake.push('_');
        }
        was_small = letter.is_lowercase() || letter.is_numeric();
        match letter {
            '-' | ' ' | '.' => snake.push('_'),
            letter => snake.extend(letter.to_lowercase()),
        }
    }
    let word = snake.replace('_', "");
    SECRET_NAMES.contains(&word.as_str())
        || snake.contains("secret_")
        || SECRET_SUFFIXES.iter().any(|ending| snake.ends_with(ending))
}
