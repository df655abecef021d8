//! Rename: a session and its loops in a document get other ids.

use serde_json::Value;

/// The fields that name a session or a loop.
const NAMES: &[&str] = &[
    "all_loop_ids",
    "child_loop_id",
    "child_session_id",
    "loop_id",
    "loop_ids",
    "opened_by",
    "parent_loop_id",
    "selected_loop_id",
    "session_id",
    "tip_loop_id",
    "winner",
];

/// The fields that hold what somebody has said, whatever it looks like.
const SAID: &[&str] = &[
    "args",
    "details",
    "effects",
    "fail_with",
    "finish",
    "metadata",
    "submit",
    "submit_error",
    "value",
];

/// Change the ids of session `old` and of its loops to those of session `new`.
pub(super) fn rename(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, old, new)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if NAMES.contains(&name.as_str()) {
                    rename_ids(field, old, new);
                } else if !SAID.contains(&name.as_str()) {
                    rename(field, old, new);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn rename_ids(field: &mut Value, old: &str, new: &str) {
    match field {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_ids(item, old, new)),
        Value::String(id) => match id.strip_prefix(old) {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => *id = format!("{new}{rest}"),
            Some(_) | None => {}
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}
