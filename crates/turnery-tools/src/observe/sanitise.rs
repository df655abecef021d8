//! Sanitise: a value without its secrets, and no larger than a log wants it.

use serde_json::{Map, Value};

/// What stands in place of a secret.
const REDACTED: &str = "[REDACTED]";
/// What stands in place of what is too deep.
const DEEPER: &str = "[DEEPER]";

/// Lists and maps inside each other.
const DEPTH: usize = 4;
/// Items of a list.
const ITEMS: usize = 10;
/// Keys of a map.
const KEYS: usize = 32;
/// Characters of a text.
const CHARACTERS: usize = 512;

/// Names of secrets, as one word.
const NAMES: &[&str] = &[
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
const ENDINGS: &[&str] = &["_secret", "_key", "_token", "_password"];

/// A value without its secrets: what stands under a name like that of a key, a token or a password
/// is replaced, at whatever depth. And bounded: 4 levels, 10 items of a list, 32 keys of a map, 512
/// characters of a text; what is left out is counted (UP-25).
#[must_use]
pub fn sanitise(value: &Value) -> Value {
    bounded(value, DEPTH)
}

fn bounded(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(shortened(text)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::from(DEEPER),
        Value::Array(items) => {
            let kept = items
                .iter()
                .take(ITEMS)
                .map(|item| bounded(item, depth - 1));
            Value::Array(kept.chain(more(items.len(), ITEMS)).collect())
        }
        Value::Object(map) => {
            let mut kept: Map<String, Value> = map
                .iter()
                .take(KEYS)
                .map(|(key, value)| match is_secret(key) {
                    true => (shortened(key), Value::from(REDACTED)),
                    false => (shortened(key), bounded(value, depth - 1)),
                })
                .collect();
            kept.extend(more(map.len(), KEYS).map(|rest| ("...".to_owned(), rest)));
            Value::Object(kept)
        }
    }
}

/// How many were left out.
fn more(all: usize, kept: usize) -> Option<Value> {
    let rest = all.checked_sub(kept).filter(|rest| *rest > 0)?;
    Some(Value::String(format!("... {rest} more")))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether what stands under this name is a secret. `apiKey`, `api-key` and `API_KEY` are one name.
fn is_secret(name: &str) -> bool {
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
    NAMES.contains(&word.as_str())
        || snake.contains("secret_")
        || ENDINGS.iter().any(|ending| snake.ends_with(ending))
}
