//! Parses token usage under the names of all vendors.

use super::fields::JsonObject;
use crate::Usage;
use serde_json::Value;
use std::cell::Cell;

/// Largest float that represents every smaller integer exactly. Unit: tokens.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// Parses the usage in a map; `None` if it has no token counts, or if any of them is unreadable.
pub(super) fn parse_usage(map: &JsonObject) -> Option<Usage> {
    let unreadable = Cell::new(false);
    let first = |paths: &[&str]| {
        let value = paths.iter().find_map(|path| value_at_path(map, path))?;
        let count = parse_token_count(value);
        unreadable.set(unreadable.get() || count.is_none());
        count
    };
    let all_input = first(&[
        "prompt_tokens",
        "promptTokenCount",
        "input_tokens",
        "input",
        "prompt_eval_count",
    ]);
    let output = first(&[
        "completion_tokens",
        "candidatesTokenCount",
        "output_tokens",
        "output",
        "eval_count",
    ]);
    if all_input.is_none() && output.is_none() {
        return None;
    }
    let all_input = all_input.unwrap_or(0);
    // Some vendors include cached tokens in the input, some count them separately.
    let included_cache_read = first(&[
        "prompt_tokens_details/cached_tokens",
        "input_tokens_details/cached_tokens",
        "cachedContentTokenCount",
    ]);
    let included_cache_read = included_cache_read.unwrap_or(0).min(all_input);
    let separate_cache_read = first(&["cache_read_input_tokens", "cache_read"]);
    // Gemini counts reasoning separately from the output; all others include it.
    let thoughts = first(&["thoughtsTokenCount"]).unwrap_or(0);
    let reasoning = first(&[
        "thoughtsTokenCount",
        "completion_tokens_details/reasoning_tokens",
        "output_tokens_details/reasoning_tokens",
        "reasoning_output_tokens",
        "reasoning",
    ]);
    let usage = Usage {
        input: all_input - included_cache_read,
        output: output.unwrap_or(0).saturating_add(thoughts),
        reasoning: reasoning.unwrap_or(0),
        cache_read: included_cache_read.saturating_add(separate_cache_read.unwrap_or(0)),
        cache_write: first(&[
            "cache_creation_input_tokens",
            "cache_write_input_tokens",
            "cache_write",
        ])
        .unwrap_or(0),
    };
    (!unreadable.get()).then(|| usage.normalized())
}

/// Returns the value at a path, unless it is null.
fn value_at_path<'a>(map: &'a JsonObject, path: &str) -> Option<&'a Value> {
    let value = match path.split_once('/') {
        Some((outer, inner)) => map.get(outer)?.get(inner)?,
        None => map.get(path)?,
    };
    (!value.is_null()).then_some(value)
}

/// Parses a non-negative integer, possibly written as a float or a string.
fn parse_token_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let is_whole = (0.0..=MAX_EXACT_FLOAT).contains(&float) && float.fract() == 0.0;
            is_whole.then(|| format!("{:.0}", float.abs()).parse().ok())?
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
