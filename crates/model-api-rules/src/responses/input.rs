//! Items of the input.

use super::items::{is_stored, items};
use crate::{
    check::{Check, require},
    json::{has, is_word, only_fields, require_data_url, require_form, text},
    request::ApiRequest,
};
use serde_json::Value;
use std::collections::HashSet;

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Items of the server's own tools, which go back as they came.
const SERVER_ITEMS: [&str; 6] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "compaction",
];

/// Items have the fields of their type.
pub(super) fn known_items(request: &ApiRequest<'_>) -> Check {
    let all = items(request);
    require(!all.is_empty(), || "input: empty array".to_owned())?;
    for (at, kind, item) in all {
        let known: &[&str] = match kind {
            "message" => &["type", "id", "role", "content", "phase", "status"],
            "function_call" => &["type", "id", "call_id", "name", "arguments", "status"],
            "function_call_output" => &["type", "id", "call_id", "output", "status"],
            "reasoning" => &[
                "type",
                "id",
                "summary",
                "content",
                "encrypted_content",
                "status",
            ],
            kind if SERVER_ITEMS.contains(&kind) => continue,
            other => return Err(format!("{at}.type: Invalid value: '{other}'")),
        };
        only_fields(&at, item, known)?;
        if kind == "reasoning" {
            let has_summary = item.get("summary").is_some_and(Value::is_array);
            require(has_summary, || {
                format!("{at}.summary: Missing required parameter")
            })?;
        }
    }
    Ok(())
}

/// Returns the content of messages and outputs: the place, whether the model wrote it, and the content.
fn contents<'a>(request: &ApiRequest<'a>) -> Vec<(String, bool, &'a Value)> {
    let content = |(at, kind, item): (String, &str, &'a Value)| match kind {
        "message" => {
            let is_of_model = text(item, "role") == "assistant";
            Some((format!("{at}.content"), is_of_model, item.get("content")?))
        }
        "function_call_output" => Some((format!("{at}.output"), false, item.get("output")?)),
        _ => None,
    };
    items(request).into_iter().filter_map(content).collect()
}

/// Content is text or parts: `input_…` of the user and of tools, `output_text` and refusals of the model.
pub(super) fn message_content(request: &ApiRequest<'_>) -> Check {
    let roles = ["user", "assistant", "system", "developer"];
    for (at, kind, item) in items(request) {
        let role = text(item, "role");
        require(kind != "message" || roles.contains(&role), || {
            format!("{at}.role: Invalid value: '{role}'")
        })?;
        let name = match kind {
            "message" => "content",
            "function_call_output" => "output",
            _ => continue,
        };
        require(has(item, name), || {
            format!("{at}.{name}: Missing required parameter")
        })?;
    }
    for (at, is_of_model, content) in contents(request) {
        let accepted: &[&str] = match is_of_model {
            true => &["output_text", "refusal"],
            false => &["input_text", "input_image", "input_file"],
        };
        let is_accepted = match content {
            Value::String(text) => !text.is_empty(),
            Value::Array(parts) => {
                let fits = |part: &Value| accepted.contains(&text(part, "type"));
                !parts.is_empty() && parts.iter().all(fits)
            }
            _ => false,
        };
        require(is_accepted, || {
            format!("{at}: Invalid value, supported are: {accepted:?}")
        })?;
    }
    Ok(())
}

/// Pictures and files are data URLs of a type that the API documents.
pub(super) fn media_types(request: &ApiRequest<'_>) -> Check {
    for (at, _, content) in contents(request) {
        for part in crate::json::elements(content) {
            match text(part, "type") {
                "input_text" => only_fields(&at, part, &["type", "text"])?,
                "input_image" => {
                    only_fields(&at, part, &["type", "image_url", "detail"])?;
                    require_data_url(&at, text(part, "image_url"), &IMAGE_TYPES)?;
                }
                "input_file" => {
                    only_fields(&at, part, &["type", "filename", "file_data"])?;
                    require_data_url(&at, text(part, "file_data"), &["application/pdf"])?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Each call has its output.
pub(super) fn outputs_follow_calls(request: &ApiRequest<'_>) -> Check {
    let all = items(request);
    for (i, (_, kind, item)) in all.iter().enumerate() {
        let id = text(item, "call_id");
        let is_output = |(_, kind, item): &(String, &str, &Value)| {
            *kind == "function_call_output" && text(item, "call_id") == id
        };
        let has_output = all.iter().skip(i).any(is_output);
        require(*kind != "function_call" || has_output, || {
            format!("No tool output found for function call {id}.")
        })?;
    }
    Ok(())
}

/// Each output answers a call before it, once.
pub(super) fn outputs_answer_calls(request: &ApiRequest<'_>) -> Check {
    let mut open = HashSet::new();
    for (_, kind, item) in items(request) {
        let id = text(item, "call_id");
        match kind {
            "function_call" => {
                open.insert(id);
            }
            "function_call_output" => require(open.remove(id), || {
                format!("No tool call found for function call output with call_id {id}.")
            })?,
            _ => {}
        }
    }
    Ok(())
}

/// Calls do not share an id.
pub(super) fn unique_call_ids(request: &ApiRequest<'_>) -> Check {
    let mut seen = HashSet::new();
    for (at, kind, item) in items(request) {
        let id = text(item, "call_id");
        require(kind != "function_call" || seen.insert(id), || {
            format!("{at}.call_id: Duplicate function call id {id}")
        })?;
    }
    Ok(())
}

/// Call ids have 1 to 64 characters.
pub(super) fn call_id_form(request: &ApiRequest<'_>) -> Check {
    for (at, kind, item) in items(request) {
        if matches!(kind, "function_call" | "function_call_output") {
            require_form(
                &format!("{at}.call_id"),
                text(item, "call_id"),
                1..=64,
                |c| c != '|',
            )?;
        }
    }
    Ok(())
}

fn calls<'a>(request: &ApiRequest<'a>) -> Vec<(String, &'a Value)> {
    let all = items(request).into_iter();
    let calls = all.filter(|(_, kind, _)| *kind == "function_call");
    calls.map(|(at, _, item)| (at, item)).collect()
}

/// Arguments are the text of a JSON object.
pub(super) fn arguments_are_json(request: &ApiRequest<'_>) -> Check {
    for (at, call) in calls(request) {
        let parsed = serde_json::from_str::<Value>(text(call, "arguments"));
        require(parsed.is_ok_and(|it| it.is_object()), || {
            format!("{at}.arguments: no JSON object")
        })?;
    }
    Ok(())
}

/// Names in calls of the history have the form of tool names.
pub(super) fn called_names(request: &ApiRequest<'_>) -> Check {
    for (at, call) in calls(request) {
        require_form(&format!("{at}.name"), text(call, "name"), 1..=64, is_word)?;
    }
    Ok(())
}

/// Without a store, the server knows no item of an earlier response.
pub(super) fn no_stored_ids(request: &ApiRequest<'_>) -> Check {
    if is_stored(request) {
        return Ok(());
    }
    require(!has(request.body, "previous_response_id"), || {
        "previous_response_id: not found".to_owned()
    })?;
    for (_, _, item) in items(request) {
        require(!has(item, "id"), || {
            let id = text(item, "id");
            format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
            )
        })?;
    }
    Ok(())
}

/// Without a store, reasoning comes back encrypted.
pub(super) fn reasoning_is_encrypted(request: &ApiRequest<'_>) -> Check {
    for (at, kind, item) in items(request) {
        let is_readable = kind == "reasoning" && text(item, "encrypted_content").is_empty();
        require(is_stored(request) || !is_readable, || {
            format!("{at}: Items are not persisted when `store` is set to false.")
        })?;
    }
    Ok(())
}

/// Reasoning is followed by what the model did next.
pub(super) fn item_follows_reasoning(request: &ApiRequest<'_>) -> Check {
    let all = items(request);
    for (i, (at, kind, _)) in all.iter().enumerate() {
        let is_of_model = match all.get(i + 1) {
            Some((_, "message", next)) => text(next, "role") == "assistant",
            Some((_, next, _)) => *next != "function_call_output",
            None => false,
        };
        require(*kind != "reasoning" || is_of_model, || {
            format!(
                "{at}: Item of type 'reasoning' was provided without its required following item."
            )
        })?;
    }
    Ok(())
}

/// Encrypted reasoning was issued by this model.
pub(super) fn reasoning_was_issued(request: &ApiRequest<'_>) -> Check {
    let Some(issued) = request.issued else {
        return Ok(());
    };
    for (at, kind, item) in items(request) {
        let content = text(item, "encrypted_content");
        require(
            kind != "reasoning" || issued.is_of(content, request.model()),
            || format!("{at}: The encrypted content {content} could not be verified."),
        )?;
    }
    Ok(())
}
