//! Converts values of the interpreter to JSON and back.
//!
//! Like Python's `json`, except that paths become strings and that `nan` and infinities have no JSON form.
//! Integers that fit neither `i64` nor `u64` become strings of decimal digits.

use crate::protocol::MAX_DEPTH;
use monty_types::{DictPairs, MontyObject};
use serde_json::{Map, Number, Value};

/// Converts a value of the interpreter to JSON.
///
/// # Errors
///
/// Returns the reason, without a subject, if the value has no JSON form.
pub(super) fn to_json(object: &MontyObject) -> Result<Value, String> {
    to_json_within(object, MAX_DEPTH)
}

/// Converts JSON to a value of the interpreter.
pub(super) fn from_json(value: Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(flag) => MontyObject::Bool(flag),
        Value::Number(number) => from_number(&number),
        Value::String(text) => MontyObject::String(text),
        Value::Array(items) => MontyObject::List(items.into_iter().map(from_json).collect()),
        Value::Object(fields) => {
            let pairs: Vec<_> = fields
                .into_iter()
                .map(|(key, value)| (MontyObject::String(key), from_json(value)))
                .collect();
            MontyObject::dict(pairs)
        }
    }
}

/// Returns the text that stands for a value without a JSON form.
pub(super) fn repr(object: &MontyObject) -> String {
    match object {
        MontyObject::Repr(text) => text.clone(),
        other => other.py_repr(),
    }
}

fn from_number(number: &Number) -> MontyObject {
    if let Some(integer) = number.as_i64() {
        return MontyObject::Int(integer);
    }
    if number.is_u64()
        && let Ok(integer) = number.to_string().parse()
    {
        return MontyObject::BigInt(integer);
    }
    // Only numbers of arbitrary precision are no `f64`.
    MontyObject::Float(number.as_f64().unwrap_or(f64::NAN))
}

fn to_json_within(object: &MontyObject, depth: usize) -> Result<Value, String> {
    let array = |items: &[MontyObject]| -> Result<Value, String> {
        let depth = inner_depth(depth)?;
        let items = items.iter().map(|item| to_json_within(item, depth));
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    };
    match object {
        MontyObject::None => Ok(Value::Null),
        MontyObject::Bool(flag) => Ok(Value::Bool(*flag)),
        MontyObject::Int(integer) => Ok(Value::from(*integer)),
        MontyObject::BigInt(integer) => {
            let digits = integer.to_string();
            Ok(match digits.parse::<u64>() {
                Ok(integer) => Value::from(integer),
                Err(_) => Value::String(digits),
            })
        }
        MontyObject::Float(float) => match Number::from_f64(*float) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(format!("{} has no JSON form", object.py_repr())),
        },
        MontyObject::String(text) | MontyObject::Path(text) => Ok(Value::String(text.clone())),
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::NamedTuple { values: items, .. } => array(items),
        MontyObject::Dict(pairs) => to_object(pairs, inner_depth(depth)?),
        MontyObject::Set(_) | MontyObject::FrozenSet(_) => Err(format!(
            "a {} has no JSON form; make a list of it",
            object.type_name()
        )),
        MontyObject::Bytes(_) => {
            Err("bytes have no JSON form; make a string of them, e.g. with decode()".to_owned())
        }
        MontyObject::Cycle(..) => Err("a value that contains itself has no JSON form".to_owned()),
        MontyObject::Function { .. } | MontyObject::BuiltinFunction(_) => {
            Err("a function has no JSON form".to_owned())
        }
        MontyObject::Repr(text) => Err(format!("{} has no JSON form", shorten(text))),
        MontyObject::Ellipsis
        | MontyObject::NotImplemented
        | MontyObject::Date(_)
        | MontyObject::DateTime(_)
        | MontyObject::Time(_)
        | MontyObject::TimeDelta(_)
        | MontyObject::TimeZone(_)
        | MontyObject::Exception { .. }
        | MontyObject::Type(_)
        | MontyObject::FileHandle(_)
        | MontyObject::ClassInstance(_) => {
            Err(format!("{} has no JSON form", shorten(&object.py_repr())))
        }
    }
}

fn to_object(pairs: &DictPairs, depth: usize) -> Result<Value, String> {
    let mut fields = Map::new();
    for (key, value) in pairs.iter() {
        fields.insert(to_key(key)?, to_json_within(value, depth)?);
    }
    Ok(Value::Object(fields))
}

/// Converts a key of a `dict` as Python's `json` does.
fn to_key(key: &MontyObject) -> Result<String, String> {
    match key {
        MontyObject::String(text) | MontyObject::Path(text) => Ok(text.clone()),
        MontyObject::None => Ok("null".to_owned()),
        MontyObject::Bool(flag) => Ok(flag.to_string()),
        MontyObject::Int(_) | MontyObject::BigInt(_) | MontyObject::Float(_) => Ok(key.py_repr()),
        other => Err(format!(
            "a dict with the key {} has no JSON form; keys must be strings",
            shorten(&other.py_repr())
        )),
    }
}

fn inner_depth(depth: usize) -> Result<usize, String> {
    depth
        .checked_sub(1)
        .ok_or_else(|| format!("a value nested more than {MAX_DEPTH} deep has no JSON form"))
}

/// Cuts a `repr` for an error message.
fn shorten(repr: &str) -> String {
    const MAX_BYTES: usize = 80;
    match repr.len() <= MAX_BYTES {
        true => repr.to_owned(),
        false => format!("{}...", &repr[..repr.floor_char_boundary(MAX_BYTES)]),
    }
}
