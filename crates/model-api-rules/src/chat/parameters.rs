//! Parameters and tools.

use super::{
    calls::{calls, function, messages, of_role},
    host::Host,
};
use crate::{
    check::{Check, require},
    json::{has, list, only_fields, text},
    request::ApiRequest,
    tool_names::require_tool_names,
    tool_schema,
};
use serde_json::Value;

/// Fields that OpenAI documents, as far as the product could send them.
pub(super) const TOP: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "response_format",
    "prompt_cache_key",
];

/// Fields that other servers document beside.
const TOP_OF_OTHERS: &[&str] = &[
    "reasoning",
    "thinking",
    "enable_thinking",
    "chat_template_kwargs",
    "reasoning_format",
];

const REASONING: &[&str] = &[
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
];

/// Returns the fields of a message that OpenAI documents.
pub(super) fn message_fields(message: &Value) -> &'static [&'static str] {
    match text(message, "role") {
        "assistant" => &["role", "content", "tool_calls"],
        "tool" => &["role", "content", "tool_call_id"],
        _ => &["role", "content"],
    }
}

/// Fields that no server documents are refused.
pub(super) fn known_fields(request: &ApiRequest<'_>) -> Check {
    let body = request.body;
    only_fields("request", body, &[TOP, TOP_OF_OTHERS].concat())?;
    for (i, message) in messages(request).iter().enumerate() {
        let known = match text(message, "role") {
            "assistant" => [message_fields(message), REASONING].concat(),
            _ => message_fields(message).to_vec(),
        };
        only_fields(&format!("messages[{i}]"), message, &known)?;
        for (j, part) in list(message, "content").iter().enumerate() {
            let kind = text(part, "type");
            only_fields(
                &format!("messages[{i}].content[{j}]"),
                part,
                &["type", kind, "cache_control"],
            )?;
        }
    }
    for (at, call) in calls(request) {
        only_fields(&at, call, &["id", "type", "function"])?;
        only_fields(&at, function(call), &["name", "arguments"])?;
        require(text(call, "type") == "function", || {
            format!("{at}.type: invalid value")
        })?;
    }
    for (i, tool) in list(body, "tools").iter().enumerate() {
        let at = format!("tools[{i}]");
        only_fields(&at, tool, &["type", "function"])?;
        only_fields(
            &at,
            function(tool),
            &["name", "description", "parameters", "strict"],
        )?;
    }
    require(
        !has(body, "stream_options") || body.get("stream") == Some(&Value::Bool(true)),
        || "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned(),
    )
}

/// Names of tools are unique words of up to 64 characters.
pub(super) fn tool_names(request: &ApiRequest<'_>) -> Check {
    let tools = list(request.body, "tools").iter().enumerate();
    let names = tools.map(|(i, tool)| {
        let name = text(function(tool), "name");
        (format!("tools[{i}].function.name"), name)
    });
    require_tool_names(names, 64)
}

fn schemas<'a>(request: &ApiRequest<'a>) -> impl Iterator<Item = (String, &'a Value, bool)> {
    list(request.body, "tools").iter().map(|tool| {
        let function = function(tool);
        let at = format!("function '{}'", text(function, "name"));
        let is_strict = function.get("strict") == Some(&Value::Bool(true));
        (
            at,
            function.get("parameters").unwrap_or(&Value::Null),
            is_strict,
        )
    })
}

/// The root of a schema is an object without unions; OpenAI and servers that copy it want properties. Models of other
/// vendors are served by translators.
pub(super) fn schema_roots(request: &ApiRequest<'_>) -> Check {
    let is_copy = matches!(Host::of(request), Host::OpenAi | Host::Other);
    let others = ["claude", "gemini", "kimi"];
    let is_translated = others.iter().any(|name| request.model().starts_with(name));
    let require_root = match is_copy && !is_translated {
        true => tool_schema::require_openai_root,
        false => tool_schema::require_plain_root,
    };
    schemas(request).try_for_each(|(at, schema, _)| require_root(&at, schema))
}

/// A strict schema requires all properties and allows no others.
pub(super) fn strict_schemas(request: &ApiRequest<'_>) -> Check {
    schemas(request).try_for_each(|(at, schema, is_strict)| match is_strict {
        true => tool_schema::require_strict(&at, schema),
        false => Ok(()),
    })
}

/// A choice of tools needs tools.
pub(super) fn choice_needs_tools(request: &ApiRequest<'_>) -> Check {
    let needs = ["tool_choice", "parallel_tool_calls"]
        .iter()
        .find(|name| has(request.body, name));
    require(needs.is_none() || has(request.body, "tools"), || {
        format!("{needs:?} is only allowed when 'tools' are specified.")
    })
}

/// Servers that translate to Anthropic need tools for a history with calls.
pub(super) fn tools_for_calls(request: &ApiRequest<'_>) -> Check {
    let is_needed = !calls(request).is_empty() || !of_role(request, "tool").is_empty();
    require(!is_needed || has(request.body, "tools"), || {
        "Requests which include `tool_use` or `tool_result` blocks must define tools.".to_owned()
    })
}

/// The limit is given once.
pub(super) fn one_output_limit(request: &ApiRequest<'_>) -> Check {
    let has_both = has(request.body, "max_tokens") && has(request.body, "max_completion_tokens");
    require(!has_both, || {
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
            .to_owned()
    })
}

/// OpenAI's reasoning models know `max_completion_tokens` only.
pub(super) fn limit_of_reasoning_models(request: &ApiRequest<'_>) -> Check {
    let is_refused = Host::of(request) == Host::OpenAi
        && is_openai_reasoning(request.model())
        && has(request.body, "max_tokens");
    require(!is_refused, || {
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.".to_owned()
    })
}

/// OpenAI's reasoning models take no temperature.
pub(super) fn no_temperature(request: &ApiRequest<'_>) -> Check {
    let is_refused = is_openai_reasoning(request.model()) && has(request.body, "temperature");
    require(!is_refused, || {
        "Unsupported value: 'temperature' does not support this value with this model.".to_owned()
    })
}

/// OpenAI's models take the efforts of their generation; those that do not reason take none.
pub(super) fn effort_of_model(request: &ApiRequest<'_>) -> Check {
    match request.body.get("reasoning_effort").and_then(Value::as_str) {
        Some(effort) => require_effort(request.model(), effort),
        None => Ok(()),
    }
}

/// Requires an effort that a model of OpenAI takes; other models are not judged.
pub(crate) fn require_effort(model: &str, effort: &str) -> Check {
    let accepted: &[&str] = match model {
        _ if model.starts_with("gpt-4") || model.starts_with("gpt-3") => &[],
        _ if model.starts_with("gpt-5-pro") => &["high"],
        _ if model.starts_with("gpt-5-codex") => &["low", "medium", "high"],
        _ if model == "gpt-5" || model.starts_with("gpt-5-") => {
            &["minimal", "low", "medium", "high"]
        }
        _ if model.starts_with("gpt-5.") => &["none", "low", "medium", "high", "xhigh", "max"],
        _ if is_o_series(model) => &["low", "medium", "high"],
        _ => return Ok(()),
    };
    require(accepted.contains(&effort), || {
        format!("Unsupported value: '{effort}' is not supported with the '{model}' model.")
    })
}

fn is_o_series(model: &str) -> bool {
    ["o1", "o3", "o4"]
        .iter()
        .any(|name| model == *name || model.starts_with(&format!("{name}-")))
}

/// Returns true for OpenAI's models that reason.
pub(crate) fn is_openai_reasoning(model: &str) -> bool {
    let chats = model.starts_with("gpt-5-chat");
    is_o_series(model) || (model.starts_with("gpt-5") && !chats)
}
