//! Usage: what an answer cost, by whatever names its vendor counts.

use crate::Usage;
use serde_json::{Map, Value};
use std::cell::Cell;

/// Larger floats are not exact. Unit: tokens.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The usage that a map reports; `None` if it says nothing of tokens, or not all of it can be read.
pub(super) fn read(map: &Map<String, Value>) -> Option<Usage> {
    let unreadable = Cell::new(false);
    let first = |paths: &[&str]| {
        let value = paths.iter().find_map(|path| find(map, path))?;
        let count = count(value);
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
    let said = first(&[
        "completion_tokens",
        "candidatesTokenCount",
        "output_tokens",
        "output",
        "eval_count",
    ]);
    if all_input.is_none() && said.is_none() {
        return None;
    }
    let all_input = all_input.unwrap_or(0);
    // Some count what came from the cache within the input, some beside it.
    let within = first(&[
        "prompt_tokens_details/cached_tokens",
        "input_tokens_details/cached_tokens",
        "cachedContentTokenCount",
    ]);
    let within = within.unwrap_or(0).min(all_input);
    let beside = first(&["cache_read_input_tokens", "cache_read"]);
    // Gemini counts reasoning beside what was said, all others within.
    let thoughts = first(&["thoughtsTokenCount"]).unwrap_or(0);
    let reasoning = first(&[
        "thoughtsTokenCount",
        "completion_tokens_details/reasoning_tokens",
        "output_tokens_details/reasoning_tokens",
        "reasoning_output_tokens",
        "reasoning",
    ]);
    let usage = Usage {
        input: all_input - within,
        output: said.unwrap_or(0).saturating_add(thoughts),
        reasoning: reasoning.unwrap_or(0),
        cache_read: within.saturating_add(beside.unwrap_or(0)),
        cache_write: first(&[
            "cache_creation_input_tokens",
            "cache_write_input_tokens",
            "cache_write",
        ])
        .unwrap_or(0),
    };
    (!unreadable.get()).then(|| usage.consistent())
}

/// The value at a path, unless it is null.
fn find<'a>(map: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let value = match path.split_once('/') {
        Some((outer, inner)) => map.get(outer)?.get(inner)?,
        None => map.get(path)?,
    };
    (!value.is_null()).then_some(value)
}

/// A count of tokens: whole and not negative, be it written as a float or a string.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let is_whole = (0.0..=LARGEST).contains(&float) && float.fract() == 0.0;
            is_whole.then(|| format!("{:.0}", float.abs()).parse().ok())?
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
