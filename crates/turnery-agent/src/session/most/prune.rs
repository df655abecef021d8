//! Prune: a JSON value cut to a size. It stays what it is, with less in it.

use super::{
    size::{DEEPEST, size},
    take,
};
use serde_json::Value;

/// Cut a value until it is no larger than `most` bytes and nests no deeper than it may: ends of
/// strings, arrays and objects go, and what is too deep becomes null.
pub(super) fn prune(value: &mut Value, most: usize) {
    let mut room = most;
    if !within(value, &mut room, DEEPEST) {
        *value = Value::Null;
    }
}

/// False if nothing of it fits. Once something is cut, nothing that comes after it has room.
fn within(value: &mut Value, room: &mut usize, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            size(value).is_some_and(|size| take(room, size))
        }
        Value::String(text) => cut(text, room),
        Value::Array(_) | Value::Object(_) if levels == 0 => {
            *value = Value::Null;
            take(room, "null".len())
        }
        Value::Array(items) => {
            if !take(room, "[]".len()) {
                return false;
            }
            let dropped = items
                .iter_mut()
                .position(|item| !(take(room, ",".len()) && within(item, room, levels - 1)));
            if let Some(dropped) = dropped {
                items.truncate(dropped);
                items.shrink_to_fit();
                *room = 0;
            }
            true
        }
        Value::Object(fields) => {
            if !take(room, "{}".len()) {
                return false;
            }
            let mut full = false;
            fields.retain(|name, field| {
                full = full
                    || !(size(name).is_some_and(|size| take(room, size + ":,".len()))
                        && within(field, room, levels - 1));
                !full
            });
            if full {
                *room = 0;
            }
            true
        }
    }
}

/// Cut a string's end until it fits with its quotes and escapes.
fn cut(text: &mut String, room: &mut usize) -> bool {
    let fits = |text: &str| size(text).is_some_and(|size| size <= *room);
    if fits(text) {
        return size(text).is_some_and(|size| take(room, size));
    }
    if !fits("") {
        return false;
    }
    // As JSON no string is shorter than it is.
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
