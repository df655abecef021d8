//! Usage: what an answer cost, by whatever names its vendor counts.

use crate::Usage;
use serde_json::{Map, Value};

/// The usage that a map reports; `None` if it says nothing of tokens.
pub(super) fn read(map: &Map<String, Value>) -> Option<Usage> {
    let first = |paths: &[&str]| paths.iter().find_map(|path| count(map, path));
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
    Some(usage.consistent())
}

fn count(map: &Map<String, Value>, path: &str) -> Option<u64> {
    match path.split_once('/') {
        Some((outer, inner)) => map.get(outer)?.get(inner)?.as_u64(),
        None => map.get(path)?.as_u64(),
    }
}
