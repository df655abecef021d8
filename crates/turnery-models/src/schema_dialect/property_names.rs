//! Renames properties whose names the Messages API refuses, and restores their names in the arguments of calls.

use super::well_formed::{change_schemas, visit_schemas};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use turnery_engine::{Content, Response, ToolSpec};

/// Longest name. Unit: bytes.
const MAX_NAME_BYTES: usize = 64;

/// Bytes of the hash that ends a changed name.
const HASH_BYTES: usize = 4;

fn is_valid(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_valid_byte)
}

fn is_valid_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Returns the name in a form that the API accepts. A changed name ends with a hash of the original, so that it does not
/// coincide with another one.
fn valid_name(name: &str) -> Cow<'_, str> {
    if is_valid(name) {
        return Cow::Borrowed(name);
    }
    let longest = MAX_NAME_BYTES - 2 * HASH_BYTES - 1;
    let valid = |c: char| match u8::try_from(c) {
        Ok(byte) if is_valid_byte(byte) => c,
        Ok(_) | Err(_) => '_',
    };
    let mut changed: String = name.chars().take(longest).map(valid).collect();
    changed.push('-');
    for byte in Sha256::digest(name).iter().take(HASH_BYTES) {
        changed.push_str(&format!("{byte:02x}"));
    }
    Cow::Owned(changed)
}

/// Returns true if all properties have names that the API accepts.
pub(super) fn are_valid(schema: &Value) -> bool {
    let mut valid = true;
    visit_names(schema, &mut |name| valid &= is_valid(name));
    valid
}

/// Calls `visit` with the names of all properties within a schema.
fn visit_names<'a>(schema: &'a Value, visit: &mut dyn FnMut(&'a str)) {
    visit_schemas(schema, &mut |members| {
        let properties = members.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(Map::keys);
        names.for_each(|name| visit(name));
    });
}

/// Renames the properties of a schema whose names the API refuses.
pub(super) fn rename(schema: &mut Value) {
    change_schemas(schema, &mut |members| {
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            *properties = std::mem::take(properties)
                .into_iter()
                .map(|(name, schema)| (valid_name(&name).into_owned(), schema))
                .collect();
        }
        if let Some(Value::Array(names)) = members.get_mut("required") {
            for name in names {
                if let Value::String(name) = name {
                    *name = valid_name(name).into_owned();
                }
            }
        }
    });
}

/// Gives the arguments of calls the names that their tools declare.
pub(crate) fn restore_property_names(tools: &[ToolSpec], response: &mut Response) {
    for item in &mut response.content {
        let Content::ToolCall(call) = item else {
            continue;
        };
        let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
            continue;
        };
        let mut changed = HashMap::new();
        visit_names(&tool.schema, &mut |name| {
            if let Cow::Owned(changed_name) = valid_name(name) {
                changed.insert(changed_name, name);
            }
        });
        if !changed.is_empty() {
            restore(Arc::make_mut(&mut call.args), &changed);
        }
    }
}

fn restore(args: &mut Value, original_names: &HashMap<String, &str>) {
    match args {
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(name, mut value)| {
                    restore(&mut value, original_names);
                    match original_names.get(&name) {
                        Some(original) => ((*original).to_owned(), value),
                        None => (name, value),
                    }
                })
                .collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|it| restore(it, original_names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
