//! Encodes the response to a prompt.

use crate::{
    server::rpc_error::RpcError,
    view::stop_reason::{outcome_meta, remove_detail, stop_reason_or_error},
};
use agent_client_protocol_schema::v1::{PromptResponse, Usage};
use turnery_agent::PromptResult;

/// Returns the response to a prompt. The protocol has five stop reasons; the exact outcome is in
/// `_meta.turnery`, or in `data` of an error. `usage` is true if the client supports usage in the response.
pub(crate) fn to_prompt_response(
    result: &PromptResult,
    usage: bool,
) -> Result<PromptResponse, RpcError> {
    let meta = outcome_meta(result);
    match stop_reason_or_error(&result.outcome) {
        Ok(reason) => {
            let answer = PromptResponse::new(reason).meta(meta);
            Ok(match usage {
                true => with_usage(answer, result),
                false => answer,
            })
        }
        Err(fault) => Err(fault.with_data("_meta", remove_detail(meta))),
    }
}

/// Adds the usage of this prompt, not of the session, to the response (G-23). Unknown counts are omitted
/// rather than zero.
fn with_usage(answer: PromptResponse, result: &PromptResult) -> PromptResponse {
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
