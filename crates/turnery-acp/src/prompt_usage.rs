//! Prompt usage (unstable): the tokens of a prompt, in its answer. There is no capability for it, so it is
//! for clients that say in `clientCapabilities._meta.turnery.promptUsage` that they know it; the others find
//! the same in `_meta.turnery.totalUsage`, or in `usage` beside it where nothing else worked for the prompt.

use agent_client_protocol_schema::v1::{Meta, PromptResponse, Usage};
use serde_json::Value;
use turnery_agent::PromptResult;

/// Whether a client says that it knows it.
pub(crate) fn is_known(meta: Option<&Meta>) -> bool {
    let ours = meta.and_then(|meta| meta.get("turnery"));
    ours.and_then(|ours| ours.get("promptUsage")) == Some(&Value::Bool(true))
}

/// The answer with its usage: everything that was spent on this prompt, not on the session (G-23). What nobody has counted is
/// left out, and is not zero.
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
