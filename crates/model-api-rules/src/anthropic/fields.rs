//! Names and types of fields.

use super::blocks::all_blocks;
use crate::{
    check::{Check, require},
    json::{has, list, only_fields, text},
    request::ApiRequest,
};
use serde_json::Value;

const TOP: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "stream",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "service_tier",
    "container",
    "cache_control",
];

const TOOL: &[&str] = &[
    "name",
    "description",
    "input_schema",
    "type",
    "strict",
    "cache_control",
];

/// Fields outside of the documented ones are refused, at every depth.
pub(super) fn known_fields(request: &ApiRequest<'_>) -> Check {
    let body = request.body;
    only_fields("request", body, TOP)?;
    for (i, block) in list(body, "system").iter().enumerate() {
        let at = format!("system.{i}");
        only_fields(&at, block, &["type", "text", "cache_control"])?;
        require(text(block, "type") == "text", || {
            format!("{at}.type: Input should be 'text'")
        })?;
    }
    for (i, message) in list(body, "messages").iter().enumerate() {
        only_fields(&format!("messages.{i}"), message, &["role", "content"])?;
    }
    for (at, kind, block) in all_blocks(body) {
        block_fields(&at, kind, block)?;
    }
    for (i, tool) in list(body, "tools").iter().enumerate() {
        only_fields(&format!("tools.{i}"), tool, TOOL)?;
    }
    parameter_fields(body)
}

fn block_fields(at: &str, kind: &str, block: &Value) -> Check {
    let known: &[&str] = match kind {
        "text" => &["type", "text", "cache_control", "citations"],
        "image" => &["type", "source", "cache_control"],
        "document" => &[
            "type",
            "source",
            "title",
            "context",
            "citations",
            "cache_control",
        ],
        "thinking" => &["type", "thinking", "signature"],
        "redacted_thinking" => &["type", "data"],
        "tool_use" => &["type", "id", "name", "input", "cache_control"],
        "tool_result" => &[
            "type",
            "tool_use_id",
            "content",
            "is_error",
            "cache_control",
        ],
        // Blocks of the server's own tools go back as they came.
        "server_tool_use" => return Ok(()),
        kind if kind.ends_with("_tool_result") => return Ok(()),
        other => return Err(format!("{at}.type: {other:?} is no type of a block")),
    };
    only_fields(at, block, known)?;
    if let Some(mark) = block.get("cache_control") {
        only_fields(&format!("{at}.cache_control"), mark, &["type", "ttl"])?;
        require(text(mark, "type") == "ephemeral", || {
            format!("{at}.cache_control.type: Input should be 'ephemeral'")
        })?;
    }
    if kind == "tool_use" {
        let is_object = block.get("input").is_some_and(Value::is_object);
        require(is_object, || {
            format!("{at}.tool_use.input: Input should be a valid dictionary")
        })?;
    }
    Ok(())
}

fn parameter_fields(body: &Value) -> Check {
    if let Some(thinking) = body.get("thinking") {
        let known: &[&str] = match text(thinking, "type") {
            "enabled" => &["type", "budget_tokens", "display"],
            "adaptive" => &["type", "display"],
            "disabled" | "between_tools" => &["type"],
            other => return Err(format!("thinking.type: {other:?} is no type of thinking")),
        };
        only_fields("thinking", thinking, known)?;
    }
    if let Some(choice) = body.get("tool_choice") {
        let known: &[&str] = match text(choice, "type") {
            "auto" | "any" => &["type", "disable_parallel_tool_use"],
            "tool" => &["type", "name", "disable_parallel_tool_use"],
            "none" => &["type"],
            other => return Err(format!("tool_choice.type: {other:?} is no choice")),
        };
        only_fields("tool_choice", choice, known)?;
    }
    if let Some(config) = body.get("output_config") {
        only_fields("output_config", config, &["effort", "format"])?;
        let effort = text(config, "effort");
        let efforts = ["low", "medium", "high", "xhigh", "max"];
        require(!has(config, "effort") || efforts.contains(&effort), || {
            format!("output_config.effort: {effort:?} is no effort")
        })?;
    }
    Ok(())
}

/// The model, a positive limit and at least one message with content are required.
pub(super) fn required_fields(request: &ApiRequest<'_>) -> Check {
    let body = request.body;
    require(!text(body, "model").is_empty(), || {
        "model: Field required".to_owned()
    })?;
    let limit = body.get("max_tokens").and_then(Value::as_u64);
    require(limit.is_some_and(|limit| limit > 0), || {
        "max_tokens: Field required".to_owned()
    })?;
    let messages = list(body, "messages");
    require(!messages.is_empty(), || {
        "messages: at least one message is required".to_owned()
    })?;
    for (i, message) in messages.iter().enumerate() {
        let is_filled = match message.get("content") {
            Some(Value::Array(blocks)) => !blocks.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            _ => false,
        };
        require(is_filled, || {
            format!("messages.{i}: messages must have non-empty content")
        })?;
    }
    for (i, tool) in list(body, "tools").iter().enumerate() {
        let is_object = tool.get("input_schema").is_some_and(Value::is_object);
        require(is_object, || {
            format!("tools.{i}.custom.input_schema: Field required")
        })?;
    }
    Ok(())
}
