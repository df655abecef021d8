//! Reads JSON values that may have any shape.

use crate::check::{Check, require};
use serde_json::Value;

/// Returns the elements of a member; none if it is no array.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    elements(value.get(name).unwrap_or(&Value::Null))
}

/// Returns the elements of an array; none for other values.
pub(crate) fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text of a member; empty if it is no text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns true if the member is there and not null.
pub(crate) fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|value| !value.is_null())
}

/// Requires an object without members other than `known`.
pub(crate) fn only_fields(at: &str, value: &Value, known: &[&str]) -> Check {
    let members = value
        .as_object()
        .ok_or_else(|| format!("{at}: an object is expected"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("{at}.{unknown}: extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// Requires a text of `range` characters, each of which `fits`.
pub(crate) fn require_form(
    at: &str,
    value: &str,
    range: std::ops::RangeInclusive<usize>,
    fits: fn(char) -> bool,
) -> Check {
    let has_form = range.contains(&value.chars().count()) && value.chars().all(fits);
    require(has_form, || {
        format!("{at}: {value:?} has not the form that is expected")
    })
}

/// Returns true for letters, digits, `_` and `-`.
pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Requires base64 of at least one byte.
pub(crate) fn require_base64(at: &str, data: &str) -> Check {
    let body = data.trim_end_matches('=');
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let has_form = !body.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - body.len() <= 2
        && body.chars().all(fits);
    require(has_form, || format!("{at}: invalid base64"))
}

/// Requires a data URL with one of these media types.
pub(crate) fn require_data_url(at: &str, url: &str, media_types: &[&str]) -> Check {
    let parts = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    let (media_type, data) = parts.ok_or_else(|| format!("{at}: a data URL is expected"))?;
    require(media_types.contains(&media_type), || {
        format!("{at}: the media type {media_type} is not supported")
    })?;
    require_base64(at, data)
}
