//! Renames a session and its loops in a document, with all ids derived from theirs: turns, messages, frames.
//! Works on JSON values, so new fields are covered. Ids of calls come from the model and ids of prompts from
//! the host: both stay.

use serde_json::Value;

/// Fields with content of users, models and tools, which is never changed even where it looks like an id.
const CONTENT_FIELDS: &[&str] = &[
    "args",
    "details",
    "effects",
    "fail_with",
    "finish",
    "metadata",
    "reason",
    "rejection",
    "submit",
    "submit_error",
    "task",
    "text",
    "title",
    "value",
];

/// Replaces every id that equals `old` or starts with it by one of `new`, except in references to copied
/// loops.
pub(super) fn rename_ids(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_ids(item, old, new)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if name != "copied_from" && !CONTENT_FIELDS.contains(&name.as_str()) {
                    rename_ids(field, old, new);
                }
            }
        }
        Value::String(id) => match id.strip_prefix(old) {
            Some(rest) if is_id_suffix(rest) => *id = format!("{new}{rest}"),
            Some(_) | None => {}
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true for an empty suffix or dot-separated parts, false for prose.
fn is_id_suffix(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with('.') && !rest.contains(char::is_whitespace))
}
