//! Access to the fields of a JSON object.

use serde_json::{Map, Value};

pub(super) type JsonObject = Map<String, Value>;

/// Returns the first of these values that is a string.
pub(super) fn first_text<'a>(map: &'a JsonObject, keys: &[&str]) -> Option<&'a str> {
    keys.iter()
        .find_map(|key| map.get(*key).and_then(Value::as_str))
}

/// Returns the value of a field, or null.
pub(super) fn get_or_null<'a>(map: &'a JsonObject, key: &str) -> &'a Value {
    map.get(key).unwrap_or(&Value::Null)
}
