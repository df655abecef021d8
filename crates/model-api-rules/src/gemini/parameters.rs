//! Parameters and tools.

use super::contents::require_name;
use crate::{
    check::{Check, require},
    json::{has, list, only_fields, text},
    request::ApiRequest,
    tool_schema,
};
use serde_json::Value;
use std::collections::HashSet;

fn declarations<'a>(request: &ApiRequest<'a>) -> impl Iterator<Item = &'a Value> {
    list(request.body, "tools")
        .iter()
        .flat_map(|tool| list(tool, "functionDeclarations"))
}

fn schemas<'a>(request: &ApiRequest<'a>) -> impl Iterator<Item = (String, &'a Value)> {
    declarations(request).filter_map(|declaration| {
        let schema = declaration.get("parametersJsonSchema")?;
        Some((format!("function {}", text(declaration, "name")), schema))
    })
}

/// Fields outside of the documented ones are refused.
pub(super) fn known_fields(request: &ApiRequest<'_>) -> Check {
    let body = request.body;
    let top = [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
    ];
    only_fields("request", body, &top)?;
    let members: [(&str, &[&str]); 3] = [
        ("systemInstruction", &["parts", "role"]),
        ("toolConfig", &["functionCallingConfig"]),
        (
            "generationConfig",
            &[
                "maxOutputTokens",
                "temperature",
                "thinkingConfig",
                "responseMimeType",
                "responseJsonSchema",
            ],
        ),
    ];
    for (name, known) in members {
        if let Some(value) = body.get(name) {
            only_fields(name, value, known)?;
        }
    }
    if let Some(thinking) = body
        .get("generationConfig")
        .and_then(|it| it.get("thinkingConfig"))
    {
        only_fields(
            "thinkingConfig",
            thinking,
            &["includeThoughts", "thinkingBudget", "thinkingLevel"],
        )?;
    }
    for tool in list(body, "tools") {
        only_fields("tools", tool, &["functionDeclarations"])?;
    }
    for declaration in declarations(request) {
        let known = ["name", "description", "parametersJsonSchema"];
        only_fields("tools.functionDeclarations", declaration, &known)?;
    }
    Ok(())
}

/// Names of functions are unique and have the form that the API demands.
pub(super) fn tool_names(request: &ApiRequest<'_>) -> Check {
    let mut seen = HashSet::new();
    for declaration in declarations(request) {
        let name = text(declaration, "name");
        require_name("tools.functionDeclarations.name", name)?;
        require(seen.insert(name), || {
            format!("Duplicate function declaration found: {name}")
        })?;
    }
    Ok(())
}

/// The root of a schema is an object without unions.
pub(super) fn schema_roots(request: &ApiRequest<'_>) -> Check {
    schemas(request).try_for_each(|(at, schema)| tool_schema::require_plain_root(&at, schema))
}

/// Schemas use the keywords of the subset.
pub(super) fn schema_subset(request: &ApiRequest<'_>) -> Check {
    schemas(request).try_for_each(|(at, schema)| tool_schema::require_gemini(&at, schema))
}

/// A mode of calling needs functions, and is one of those that the API has.
pub(super) fn choice_needs_tools(request: &ApiRequest<'_>) -> Check {
    let Some(config) = request.body.get("toolConfig") else {
        return Ok(());
    };
    require(declarations(request).next().is_some(), || {
        "Function calling config is set without function_declarations.".to_owned()
    })?;
    let config = config.get("functionCallingConfig").unwrap_or(&Value::Null);
    let mode = text(config, "mode");
    require(
        ["AUTO", "ANY", "NONE", "VALIDATED"].contains(&mode)
            && !has(config, "allowedFunctionNames"),
        || format!("Invalid value at 'tool_config.function_calling_config.mode': {mode:?}"),
    )
}
