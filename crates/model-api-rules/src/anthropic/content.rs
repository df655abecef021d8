//! Order and content of messages.

use super::{
    blocks::{all_blocks, blocks, call_ids, result_ids},
    model::Claude,
};
use crate::{
    check::{Check, require},
    json::{has, is_word, list, require_base64, require_form, text},
    request::ApiRequest,
};
use serde_json::Value;
use std::collections::HashSet;

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Most characters of a call id, by Bedrock:
/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html>.
const MAX_ID_CHARS: usize = 64;

/// The first message is one of the user.
pub(super) fn begins_with_user(request: &ApiRequest<'_>) -> Check {
    let first = list(request.body, "messages").first();
    require(
        first.is_none_or(|first| text(first, "role") == "user"),
        || "messages: first message must use the \"user\" role".to_owned(),
    )
}

/// Roles are `user` and `assistant` in turn. The API merges adjacent messages of one role today, gateways and older
/// models refuse them.
pub(super) fn roles_alternate(request: &ApiRequest<'_>) -> Check {
    let mut before = "";
    for (i, message) in list(request.body, "messages").iter().enumerate() {
        let role = text(message, "role");
        require(["user", "assistant"].contains(&role), || {
            format!("messages.{i}.role: Input should be 'user' or 'assistant'")
        })?;
        require(role != before, || {
            format!("messages.{i}: roles must alternate between \"user\" and \"assistant\"")
        })?;
        before = role;
    }
    Ok(())
}

/// Models since 4.6 refuse an answer that the client has begun. A paused response goes on where it stopped.
pub(super) fn ends_with_user(request: &ApiRequest<'_>) -> Check {
    let Some(last) = list(request.body, "messages").last() else {
        return Ok(());
    };
    let is_paused = || {
        blocks(last)
            .iter()
            .any(|block| text(block, "type") == "server_tool_use")
    };
    let refuses = Claude::of(request.model()).is_some_and(|it| it.is_since(4, 6));
    require(
        !refuses || text(last, "role") == "user" || is_paused(),
        || {
            "This model does not support assistant message prefill. The conversation must end with a user message.".to_owned()
        },
    )
}

/// Texts have at least one character that is no white space.
pub(super) fn no_empty_text(request: &ApiRequest<'_>) -> Check {
    let system = list(request.body, "system").iter().enumerate();
    let system = system.map(|(i, block)| (format!("system.{i}"), text(block, "type"), block));
    for (at, kind, block) in system.chain(all_blocks(request.body)) {
        let is_blank = kind == "text" && text(block, "text").trim().is_empty();
        require(!is_blank, || {
            format!("{at}: text content blocks must contain non-whitespace text")
        })?;
    }
    Ok(())
}

/// Images are JPEG, PNG, GIF or WebP, documents are PDF; both are valid base64.
pub(super) fn media_types(request: &ApiRequest<'_>) -> Check {
    for (at, kind, block) in all_blocks(request.body) {
        let accepted: &[&str] = match kind {
            "image" => &IMAGE_TYPES,
            "document" => &["application/pdf"],
            _ => continue,
        };
        let source = block.get("source").unwrap_or(&Value::Null);
        let media_type = text(source, "media_type");
        require(
            text(source, "type") == "base64" && accepted.contains(&media_type),
            || format!("{at}.{kind}.source.base64.media_type: {media_type:?} is not supported"),
        )?;
        require_base64(
            &format!("{at}.{kind}.source.base64.data"),
            text(source, "data"),
        )?;
    }
    Ok(())
}

/// Each call has its result in the next message.
pub(super) fn results_follow_calls(request: &ApiRequest<'_>) -> Check {
    let messages = list(request.body, "messages");
    for (i, message) in messages.iter().enumerate() {
        let answered = messages.get(i + 1).map_or_else(Vec::new, result_ids);
        for id in call_ids(message) {
            require(answered.contains(&id), || {
                format!(
                    "messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
                )
            })?;
        }
    }
    Ok(())
}

/// Each result answers a call of the message before, once.
pub(super) fn results_answer_calls(request: &ApiRequest<'_>) -> Check {
    let mut calls = Vec::new();
    for (i, message) in list(request.body, "messages").iter().enumerate() {
        let mut seen = HashSet::new();
        for id in result_ids(message) {
            require(calls.contains(&id), || {
                format!(
                    "messages.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
                )
            })?;
            require(seen.insert(id), || {
                format!("messages.{i}: each tool_use must have a single result: {id}")
            })?;
        }
        calls = call_ids(message);
    }
    Ok(())
}

/// Results come before other content of their message.
pub(super) fn results_come_first(request: &ApiRequest<'_>) -> Check {
    for (i, message) in list(request.body, "messages").iter().enumerate() {
        let is_result = |block: &Value| text(block, "type") == "tool_result";
        let mut rest = blocks(message).iter().skip_while(|block| is_result(block));
        require(!rest.any(is_result), || {
            format!("messages.{i}: tool_result blocks must be at the beginning of the message")
        })?;
    }
    Ok(())
}

/// Call ids are up to 64 letters, digits, `_` and `-`.
pub(super) fn call_id_form(request: &ApiRequest<'_>) -> Check {
    for (at, kind, block) in all_blocks(request.body) {
        let name = match kind {
            "tool_use" => "id",
            "tool_result" => "tool_use_id",
            _ => continue,
        };
        require_form(
            &format!("{at}.{kind}.{name}"),
            text(block, name),
            1..=MAX_ID_CHARS,
            is_word,
        )?;
    }
    Ok(())
}

/// No two calls of a request share an id.
pub(super) fn unique_call_ids(request: &ApiRequest<'_>) -> Check {
    let mut seen = HashSet::new();
    for message in list(request.body, "messages") {
        for id in call_ids(message) {
            require(seen.insert(id), || {
                format!("messages: `tool_use` ids must be unique: {id}")
            })?;
        }
    }
    Ok(())
}

/// At most four blocks end a cached prefix.
pub(super) fn four_cache_marks(request: &ApiRequest<'_>) -> Check {
    let in_messages = all_blocks(request.body)
        .into_iter()
        .map(|(_, _, block)| block);
    let others = ["system", "tools"].map(|name| list(request.body, name));
    let marked = in_messages
        .chain(others.into_iter().flatten())
        .filter(|block| has(block, "cache_control"))
        .count();
    require(marked <= 4, || {
        format!("A maximum of 4 blocks with cache_control may be provided. Found {marked}.")
    })
}
