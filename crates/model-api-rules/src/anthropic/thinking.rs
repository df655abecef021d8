//! Thinking: its parameters, and the blocks that are sent back.

use super::{
    blocks::{all_blocks, blocks, is_thinking, result_ids},
    model::Claude,
};
use crate::{
    check::{Check, require},
    json::{has, list, text},
    request::ApiRequest,
};
use serde_json::Value;

/// Smallest budget. Unit: tokens.
const MIN_BUDGET: u64 = 1024;

fn parameter<'a>(request: &ApiRequest<'a>) -> &'a Value {
    request.body.get("thinking").unwrap_or(&Value::Null)
}

/// Returns true if the model may think.
fn is_on(request: &ApiRequest<'_>) -> bool {
    match text(parameter(request), "type") {
        "disabled" => false,
        "" => Claude::of(request.model()).is_some_and(Claude::thinks_by_default),
        _ => true,
    }
}

/// Each generation has its own ways to think.
pub(super) fn kind_of_model(request: &ApiRequest<'_>) -> Check {
    let Some(claude) = Claude::of(request.model()) else {
        return Ok(());
    };
    let kind = text(parameter(request), "type");
    let is_accepted = match kind {
        "enabled" => !claude.is_since(4, 7),
        "adaptive" => claude.is_since(4, 6),
        "disabled" => !claude.always_thinks(),
        "between_tools" => claude.thinks_between_tools(),
        _ => true,
    };
    require(is_accepted, || {
        format!("thinking.type: {kind:?} is not supported by this model")
    })
}

/// The budget is at least 1024 tokens and below the limit of the response.
pub(super) fn budget_fits(request: &ApiRequest<'_>) -> Check {
    let thinking = parameter(request);
    if text(thinking, "type") != "enabled" {
        return Ok(());
    }
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let budget = number(thinking, "budget_tokens");
    let limit = number(request.body, "max_tokens");
    require((MIN_BUDGET..limit).contains(&budget), || {
        format!(
            "thinking.enabled.budget_tokens: {budget} is not between {MIN_BUDGET} and `max_tokens`"
        )
    })
}

/// A temperature is refused with thinking, and by models since 4.7 at all.
pub(super) fn no_temperature(request: &ApiRequest<'_>) -> Check {
    let refuses = Claude::of(request.model()).is_some_and(|it| it.is_since(4, 7));
    let is_refused = has(request.body, "temperature") && (refuses || is_on(request));
    require(!is_refused, || {
        "`temperature` may not be set for this model or with thinking".to_owned()
    })
}

/// A call cannot be forced from a model that thinks.
pub(super) fn no_forced_call(request: &ApiRequest<'_>) -> Check {
    let choice = request.body.get("tool_choice").unwrap_or(&Value::Null);
    let is_forced = matches!(text(choice, "type"), "any" | "tool");
    require(!is_forced || !is_on(request), || {
        "Thinking may not be enabled when tool_choice forces tool use.".to_owned()
    })
}

/// Thinking of Claude comes back with its signature.
pub(super) fn is_signed(request: &ApiRequest<'_>) -> Check {
    let is_claude = request.model().contains("claude");
    for (at, kind, block) in all_blocks(request.body) {
        let is_unsigned = kind == "thinking" && text(block, "signature").is_empty();
        require(!is_claude || !is_unsigned, || {
            format!("{at}.thinking.signature: Field required")
        })?;
    }
    Ok(())
}

/// A message of the model does not end in thinking.
pub(super) fn is_not_last(request: &ApiRequest<'_>) -> Check {
    for (i, message) in list(request.body, "messages").iter().enumerate() {
        require(!blocks(message).last().is_some_and(is_thinking), || {
            format!("messages.{i}: The final block in an assistant message cannot be `thinking`.")
        })?;
    }
    Ok(())
}

/// A request with a thinking budget that brings results continues a round that began with thinking.
pub(super) fn round_begins_with_thinking(request: &ApiRequest<'_>) -> Check {
    let has_budget = text(parameter(request), "type") == "enabled";
    if !has_budget || !request.model().contains("claude") {
        return Ok(());
    }
    let messages = list(request.body, "messages");
    if messages
        .last()
        .is_none_or(|last| result_ids(last).is_empty())
    {
        return Ok(());
    }
    let of_round = messages.iter().rev().take_while(|message| {
        text(message, "role") == "assistant" || !result_ids(message).is_empty()
    });
    let first = of_round
        .filter(|message| text(message, "role") == "assistant")
        .last();
    let begins = first
        .and_then(|first| blocks(first).first())
        .is_none_or(is_thinking);
    require(begins, || {
        "messages: When `thinking` is enabled, a final `assistant` message must start with a thinking block".to_owned()
    })
}

/// Without thinking, the last message of the model has no thinking if results follow it. Adaptive models accept it.
pub(super) fn not_in_last_when_off(request: &ApiRequest<'_>) -> Check {
    let is_strict = Claude::of(request.model()).is_some_and(|it| !it.is_since(4, 6));
    if !is_strict || is_on(request) {
        return Ok(());
    }
    let messages = list(request.body, "messages");
    let brings_results = messages
        .last()
        .is_some_and(|last| !result_ids(last).is_empty());
    let last = messages
        .iter()
        .rev()
        .find(|message| text(message, "role") == "assistant");
    let has_thinking = last.is_some_and(|last| blocks(last).iter().any(is_thinking));
    require(!brings_results || !has_thinking, || {
        "messages: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.".to_owned()
    })
}

/// Signed thinking was issued by this model.
pub(super) fn was_issued(request: &ApiRequest<'_>) -> Check {
    let Some(issued) = request.issued else {
        return Ok(());
    };
    for (at, kind, block) in all_blocks(request.body) {
        let signature = text(block, "signature");
        let is_foreign = kind == "thinking" && !issued.is_of(signature, request.model());
        require(!is_foreign, || {
            format!("{at}: Invalid `signature` in `thinking` block")
        })?;
    }
    Ok(())
}

/// Signed thinking comes back after the same system prompt, tools and messages.
pub(super) fn is_bound_to_conversation(request: &ApiRequest<'_>) -> Check {
    let Some(issued) = request.issued else {
        return Ok(());
    };
    for (i, message) in list(request.body, "messages").iter().enumerate() {
        for block in blocks(message)
            .iter()
            .filter(|block| text(block, "type") == "thinking")
        {
            let signature = text(block, "signature");
            let is_moved = issued.is_of(signature, request.model())
                && !issued.is_bound_to(signature, request.body, i);
            require(!is_moved, || {
                format!(
                    "messages.{i}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
                )
            })?;
        }
    }
    Ok(())
}
