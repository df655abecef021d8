//! Prompt usage (unstable): reports the tokens of a prompt in its response. No capability exists for it, so
//! only clients that declare `clientCapabilities._meta.turnery.promptUsage` get it; others find the same
//! numbers in `_meta.turnery.totalUsage`, or in `usage` beside it if no child session worked for the prompt.

use agent_client_protocol_schema::v1::{Meta, PromptResponse, Usage};
use serde_json::Value;
use turnery_agent::PromptResult;

/// Returns true if the client declares support.
pub(crate) fn is_supported(meta: Option<&Meta>) -> bool {
    let ours = meta.and_then(|meta| meta.get("turnery"));
    ours.and_then(|ours| ours.get("promptUsage")) == Some(&Value::Bool(true))
}

/// Adds the usage of this prompt, not of the session, to the response (G-23). Unknown counts are omitted
/// rather than zero.
pub(crate) fn with_usage(answer: PromptResponse, result: &PromptResult) -> PromptResponse {
    let spent = result.usage_report().total();
    if spent.total() == 0 {
        return answer;
    }
    let some = |tokens: u64| (tokens > 0).then_some(tokens);
    let usage = Usage::new(spent.total(), spent.input, spent.output)
        .thought_tokens(some(spent.reasoning))
        .cached_read_tokens(some(spent.cache_read))
        .cached_write_tokens(some(spent.cache_write));
    answer.usage(usage)
}
