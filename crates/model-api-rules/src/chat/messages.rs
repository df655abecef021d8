//! Order and content of messages.

use super::calls::{calls, function, messages, of_role};
use crate::{
    check::{Check, require},
    json::{has, is_word, list, require_base64, require_data_url, require_form, text},
    request::ApiRequest,
};
use serde_json::Value;
use std::collections::HashSet;

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Messages are of the system, the user, the model or a tool.
pub(super) fn roles(request: &ApiRequest<'_>) -> Check {
    let known = ["system", "developer", "user", "assistant", "tool"];
    for (i, message) in messages(request).iter().enumerate() {
        let role = text(message, "role");
        require(known.contains(&role), || {
            format!("messages[{i}].role: invalid value {role:?}")
        })?;
    }
    require(!messages(request).is_empty(), || {
        "messages: empty array".to_owned()
    })
}

/// At most one system message, at the beginning: the templates of many models know no other.
pub(super) fn one_system_message(request: &ApiRequest<'_>) -> Check {
    let is_system = |message: &Value| matches!(text(message, "role"), "system" | "developer");
    let mut others = messages(request).iter().skip(1);
    require(!others.any(is_system), || {
        "System message must be at the beginning.".to_owned()
    })
}

/// Content is text or parts that are not empty. Only the model's message with calls may have none.
pub(super) fn has_content(request: &ApiRequest<'_>) -> Check {
    for (i, message) in messages(request).iter().enumerate() {
        let may_lack = !list(message, "tool_calls").is_empty();
        let is_filled = |text: &str| !text.trim().is_empty();
        let is_there = match message.get("content") {
            Some(Value::String(text)) => is_filled(text),
            Some(Value::Array(parts)) => {
                let is_empty =
                    |part: &Value| text(part, "type") == "text" && !is_filled(text(part, "text"));
                !parts.is_empty() && !parts.iter().any(is_empty)
            }
            Some(Value::Null) | None => may_lack,
            _ => false,
        };
        require(is_there, || {
            format!(
                "Invalid value for 'content' of messages[{i}]: expected a string that is not empty"
            )
        })?;
    }
    Ok(())
}

/// Lists of calls and tools are left out rather than empty.
pub(super) fn no_empty_list(request: &ApiRequest<'_>) -> Check {
    let is_empty = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
    };
    for (i, message) in messages(request).iter().enumerate() {
        require(!is_empty(message, "tool_calls"), || {
            format!("Invalid 'messages[{i}].tool_calls': empty array.")
        })?;
    }
    require(!is_empty(request.body, "tools"), || {
        "Invalid 'tools': empty array.".to_owned()
    })
}

/// Calls are directly followed by one message with the result of each, and there are no other results.
pub(super) fn results_follow_calls(request: &ApiRequest<'_>) -> Check {
    let mut open: Vec<&str> = Vec::new();
    for (i, message) in messages(request).iter().enumerate() {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            let place = open.iter().position(|open| *open == id);
            let place = place.ok_or_else(|| {
                format!("messages[{i}]: a message with role 'tool' must be a response to a preceding message with 'tool_calls': {id}")
            })?;
            open.remove(place);
            continue;
        }
        require(open.is_empty(), || unanswered(&open))?;
        open = list(message, "tool_calls")
            .iter()
            .map(|call| text(call, "id"))
            .collect();
    }
    require(open.is_empty(), || unanswered(&open))
}

fn unanswered(ids: &[&str]) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        ids.join(", ")
    )
}

/// Call ids are not empty, and differ from each other.
pub(super) fn unique_call_ids(request: &ApiRequest<'_>) -> Check {
    let mut seen = HashSet::new();
    for (at, call) in calls(request) {
        let id = text(call, "id");
        require(!id.is_empty() && seen.insert(id), || {
            format!("{at}.id: empty or used twice: {id}")
        })?;
    }
    Ok(())
}

/// Arguments are the text of a JSON object.
pub(super) fn arguments_are_json(request: &ApiRequest<'_>) -> Check {
    for (at, call) in calls(request) {
        let arguments = text(function(call), "arguments");
        let parsed = serde_json::from_str::<Value>(arguments);
        require(parsed.is_ok_and(|it| it.is_object()), || {
            format!("{at}.function.arguments: no JSON object")
        })?;
    }
    Ok(())
}

/// Names in calls of the history have the form of tool names.
pub(super) fn called_names(request: &ApiRequest<'_>) -> Check {
    for (at, call) in calls(request) {
        let at = format!("{at}.function.name");
        require_form(&at, text(function(call), "name"), 1..=64, is_word)?;
    }
    Ok(())
}

/// Pictures, recordings and files stand in messages of the user.
pub(super) fn media_of_user_only(request: &ApiRequest<'_>) -> Check {
    for (i, message) in messages(request).iter().enumerate() {
        let role = text(message, "role");
        let is_text = |part: &Value| matches!(text(part, "type"), "text" | "thinking");
        let is_plain = list(message, "content").iter().all(is_text);
        require(role == "user" || is_plain, || {
            format!(
                "Invalid 'messages[{i}]'. Image URLs are only allowed for messages with role 'user', but this message has role '{role}'."
            )
        })?;
    }
    Ok(())
}

/// Media have a type that the API documents, and valid base64.
pub(super) fn media_types(request: &ApiRequest<'_>) -> Check {
    for (i, message) in of_role(request, "user") {
        for (j, part) in list(message, "content").iter().enumerate() {
            let at = format!("messages[{i}].content[{j}]");
            let inner = |name: &str| part.get(name).unwrap_or(&Value::Null);
            match text(part, "type") {
                "text" => {}
                "image_url" => {
                    require_data_url(&at, text(inner("image_url"), "url"), &IMAGE_TYPES)?
                }
                "file" => {
                    require_data_url(&at, text(inner("file"), "file_data"), &["application/pdf"])?
                }
                "input_audio" => {
                    let audio = inner("input_audio");
                    require_base64(&at, text(audio, "data"))?;
                    require(["wav", "mp3"].contains(&text(audio, "format")), || {
                        format!("{at}.input_audio.format: invalid value")
                    })?;
                }
                other => return Err(format!("{at}.type: invalid value {other:?}")),
            }
        }
    }
    Ok(())
}

/// At most four parts end a cached prefix.
pub(super) fn four_cache_marks(request: &ApiRequest<'_>) -> Check {
    let parts = messages(request)
        .iter()
        .flat_map(|message| list(message, "content"));
    let marked = parts.filter(|part| has(part, "cache_control")).count();
    require(marked <= 4, || {
        format!("A maximum of 4 blocks with cache_control may be provided. Found {marked}.")
    })
}
