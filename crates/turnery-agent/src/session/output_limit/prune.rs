//! Truncates a JSON value to a size, keeping its type.

use super::{
    json_size::{MAX_DEPTH, json_size},
    take_bytes,
};
use serde_json::Value;

/// Truncates a value to `most` bytes and the maximum depth: ends of strings, arrays and objects are removed,
/// and values that nest too deep become null.
pub(super) fn prune(value: &mut Value, most: usize) {
    let mut room = most;
    if !prune_within(value, &mut room, MAX_DEPTH) {
        *value = Value::Null;
    }
}

/// Returns false if nothing fits. After a cut no later part has room.
fn prune_within(value: &mut Value, room: &mut usize, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            json_size(value).is_some_and(|size| take_bytes(room, size))
        }
        Value::String(text) => truncate_string(text, room),
        Value::Array(_) | Value::Object(_) if levels == 0 => {
            *value = Value::Null;
            take_bytes(room, "null".len())
        }
        Value::Array(items) => {
            if !take_bytes(room, "[]".len()) {
                return false;
            }
            let dropped = items.iter_mut().position(|item| {
                !(take_bytes(room, ",".len()) && prune_within(item, room, levels - 1))
            });
            if let Some(dropped) = dropped {
                items.truncate(dropped);
                items.shrink_to_fit();
                *room = 0;
            }
            true
        }
        Value::Object(fields) => {
            if !take_bytes(room, "{}".len()) {
                return false;
            }
            let mut full = false;
            fields.retain(|name, field| {
                full = full
                    || !(json_size(name).is_some_and(|size| take_bytes(room, size + ":,".len()))
                        && prune_within(field, room, levels - 1));
                !full
            });
            if full {
                *room = 0;
            }
            true
        }
    }
}

/// Truncates a string until it fits with its quotes and escapes.
fn truncate_string(text: &mut String, room: &mut usize) -> bool {
    let fits = |text: &str| json_size(text).is_some_and(|size| size <= *room);
    if fits(text) {
        return json_size(text).is_some_and(|size| take_bytes(room, size));
    }
    if !fits("") {
        return false;
    }
    // The JSON form of a string is never shorter than the string.
    let (mut fitting, mut too_long) = (0, text.len().min(*room));
    while too_long - fitting > 1 {
        let middle = fitting.midpoint(too_long);
        match fits(&text[..text.floor_char_boundary(middle)]) {
            true => fitting = middle,
            false => too_long = middle,
        }
    }
    text.truncate(text.floor_char_boundary(fitting));
    text.shrink_to_fit();
    *room = 0;
    true
}
