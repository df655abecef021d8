//! Continues a response that the server paused within its own tools.

use super::{
    model_rules::ModelRules,
    request::{MessageParam, assistant_blocks},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnery_engine::Response;

/// Stop reason of a paused response (quirk 50): <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
const PAUSE: &str = "pause_turn";

#[derive(Deserialize)]
struct RequestMessages<'a> {
    #[serde(borrow)]
    messages: &'a RawValue,
}

/// Returns the request `body` with the paused `response` as its last message; `None` if the response is complete, or has
/// nothing to send back. The bytes before that message stay as they are.
pub(super) fn continue_request(
    rules: ModelRules,
    body: &[u8],
    response: &Response,
) -> Option<Vec<u8>> {
    if response.raw_stop.as_deref() != Some(PAUSE) || response.calls().next().is_some() {
        return None;
    }
    let content = assistant_blocks(&response.content, rules);
    if content.is_empty() {
        return None;
    }
    let message = MessageParam {
        role: "assistant",
        content,
    };
    let message = serde_json::to_vec(&message).ok()?;
    let request: RequestMessages<'_> = serde_json::from_slice(body).ok()?;
    // The array is borrowed from the body, so that its last bracket has a position there.
    let end = request.messages.get().as_bytes().as_ptr_range().end as usize;
    let bracket = end.checked_sub(body.as_ptr() as usize)?.checked_sub(1)?;
    let (before, after) = body.split_at_checked(bracket)?;
    Some([before, b",", &message, after].concat())
}
