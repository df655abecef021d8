//! Parameters and tools.

use super::items::is_stored;
use crate::{
    chat::{is_openai_reasoning, require_effort},
    check::{Check, require},
    json::{has, list, only_fields, text},
    request::ApiRequest,
    tool_names::require_tool_names,
    tool_schema,
};
use serde_json::Value;

const TOP: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "temperature",
    "reasoning",
    "text",
    "prompt_cache_key",
    "previous_response_id",
    "truncation",
];

/// Fields outside of the documented ones are refused.
pub(super) fn known_fields(request: &ApiRequest<'_>) -> Check {
    let body = request.body;
    only_fields("request", body, TOP)?;
    for (i, tool) in list(body, "tools").iter().enumerate() {
        let known = ["type", "name", "description", "parameters", "strict"];
        only_fields(&format!("tools[{i}]"), tool, &known)?;
        require(text(tool, "type") == "function", || {
            format!("tools[{i}].type: Invalid value")
        })?;
    }
    if let Some(reasoning) = body.get("reasoning") {
        only_fields("reasoning", reasoning, &["effort", "summary"])?;
        let summary = text(reasoning, "summary");
        require(
            ["", "auto", "concise", "detailed"].contains(&summary),
            || format!("reasoning.summary: Invalid value: '{summary}'"),
        )?;
    }
    Ok(())
}

/// Without a store, a request that asks for reasoning asks for its encrypted form too: it is lost otherwise.
pub(super) fn asks_for_encrypted_reasoning(request: &ApiRequest<'_>) -> Check {
    let included = list(request.body, "include");
    let is_asked = included
        .iter()
        .any(|it| it == "reasoning.encrypted_content");
    require(
        is_stored(request) || is_asked || !has(request.body, "reasoning"),
        || "include: reasoning.encrypted_content is missing".to_owned(),
    )
}

/// Names of tools are unique words of up to 64 characters.
pub(super) fn tool_names(request: &ApiRequest<'_>) -> Check {
    let tools = list(request.body, "tools").iter().enumerate();
    let names = tools.map(|(i, tool)| (format!("tools[{i}].name"), text(tool, "name")));
    require_tool_names(names, 64)
}

fn schema(tool: &Value) -> (String, &Value) {
    let at = format!("function '{}'", text(tool, "name"));
    (at, tool.get("parameters").unwrap_or(&Value::Null))
}

/// The root of a schema is an object with properties and without unions.
pub(super) fn schema_roots(request: &ApiRequest<'_>) -> Check {
    list(request.body, "tools")
        .iter()
        .map(schema)
        .try_for_each(|(at, schema)| tool_schema::require_openai_root(&at, schema))
}

/// A strict schema requires all properties and allows no others. Left out, `strict` is on.
pub(super) fn strict_schemas(request: &ApiRequest<'_>) -> Check {
    let tools = list(request.body, "tools").iter();
    let mut strict = tools.filter(|tool| tool.get("strict") != Some(&Value::Bool(false)));
    strict.try_for_each(|tool| {
        let (at, schema) = schema(tool);
        tool_schema::require_strict(&at, schema)
    })
}

/// A choice of tools needs tools.
pub(super) fn choice_needs_tools(request: &ApiRequest<'_>) -> Check {
    let needs = ["tool_choice", "parallel_tool_calls"]
        .iter()
        .find(|name| has(request.body, name));
    require(
        needs.is_none() || !list(request.body, "tools").is_empty(),
        || format!("{needs:?} is only allowed when 'tools' are specified."),
    )
}

/// The limit is at least 16 tokens.
pub(super) fn output_limit(request: &ApiRequest<'_>) -> Check {
    let limit = request
        .body
        .get("max_output_tokens")
        .and_then(Value::as_u64);
    require(limit.is_none_or(|limit| limit >= 16), || {
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
            .to_owned()
    })
}

/// The cache key has at most 64 characters.
pub(super) fn cache_key(request: &ApiRequest<'_>) -> Check {
    let length = text(request.body, "prompt_cache_key").chars().count();
    require(length <= 64, || {
        format!("Invalid 'prompt_cache_key': string too long: {length}")
    })
}

/// Models that reason take no temperature.
pub(super) fn no_temperature(request: &ApiRequest<'_>) -> Check {
    let is_refused = is_openai_reasoning(request.model()) && has(request.body, "temperature");
    require(!is_refused, || {
        "Unsupported parameter: 'temperature' is not supported with this model.".to_owned()
    })
}

/// Models take the efforts of their generation; those that do not reason refuse `reasoning`.
pub(super) fn effort_of_model(request: &ApiRequest<'_>) -> Check {
    let Some(reasoning) = request.body.get("reasoning") else {
        return Ok(());
    };
    require(!request.model().starts_with("gpt-4"), || {
        "Unsupported parameter: 'reasoning' is not supported with this model.".to_owned()
    })?;
    match text(reasoning, "effort") {
        "" => Ok(()),
        effort => require_effort(request.model(), effort),
    }
}
