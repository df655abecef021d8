//! Rename: a session and its loops in a document get other ids, and all that is named after them: turns,
//! messages, frames. By value, so that a field which is new is renamed too. A call's id is the model's, and
//! a prompt's is the host's: both stay.

use serde_json::Value;

/// The fields that hold what somebody has said, whatever it looks like.
const SAID: &[&str] = &[
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

/// Change every id that is `old` or begins with it to one of `new`, save where something was copied from.
pub(super) fn rename(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, old, new)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if name != "copied_from" && !SAID.contains(&name.as_str()) {
                    rename(field, old, new);
                }
            }
        }
        Value::String(id) => match id.strip_prefix(old) {
            Some(rest) if is_rest_of_id(rest) => *id = format!("{new}{rest}"),
            Some(_) | None => {}
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Nothing more, or further parts after dots; no sentence.
fn is_rest_of_id(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with('.') && !rest.contains(char::is_whitespace))
}
