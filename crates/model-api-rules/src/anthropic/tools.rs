//! Declarations of tools.

use super::blocks::{call_ids, result_ids};
use crate::{
    check::{Check, require},
    json::{has, is_word, list, require_form, text},
    request::ApiRequest,
    tool_names::require_tool_names,
    tool_schema,
};
use serde_json::Value;

/// Most characters of a tool's name.
const MAX_NAME_CHARS: usize = 128;

fn schemas<'a>(request: &ApiRequest<'a>) -> impl Iterator<Item = (String, &'a Value)> {
    let tools = list(request.body, "tools").iter().enumerate();
    tools.map(|(i, tool)| {
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        (format!("tools.{i}.custom.input_schema"), schema)
    })
}

/// A history with calls needs tools. The API has become lenient, Bedrock and gateways have not.
pub(super) fn tools_for_calls(request: &ApiRequest<'_>) -> Check {
    let has_calls =
        |message: &Value| !call_ids(message).is_empty() || !result_ids(message).is_empty();
    let is_needed = list(request.body, "messages").iter().any(has_calls);
    require(
        !is_needed || !list(request.body, "tools").is_empty(),
        || {
            "Requests which include `tool_use` or `tool_result` blocks must define tools."
                .to_owned()
        },
    )
}

/// Names of tools are unique words.
pub(super) fn tool_names(request: &ApiRequest<'_>) -> Check {
    let tools = list(request.body, "tools").iter().enumerate();
    let names = tools.map(|(i, tool)| (format!("tools.{i}.custom.name"), text(tool, "name")));
    require_tool_names(names, MAX_NAME_CHARS)
}

/// Names in calls of the history are words of up to 64 characters: Bedrock demands it.
pub(super) fn called_names(request: &ApiRequest<'_>) -> Check {
    for (at, kind, block) in super::blocks::all_blocks(request.body) {
        if kind == "tool_use" {
            let at = format!("{at}.tool_use.name");
            require_form(&at, text(block, "name"), 1..=64, is_word)?;
        }
    }
    Ok(())
}

/// The root of a schema is an object without unions.
pub(super) fn schema_roots(request: &ApiRequest<'_>) -> Check {
    for (at, schema) in schemas(request) {
        tool_schema::require_plain_root(&at, schema)?;
    }
    Ok(())
}

/// Property names have 1 to 64 letters, digits, `_`, `.` and `-`.
pub(super) fn property_names(request: &ApiRequest<'_>) -> Check {
    for (at, schema) in schemas(request) {
        tool_schema::for_each_property(schema, &mut |name| {
            require_form(&at, name, 1..=64, |c| is_word(c) || c == '.')
        })?;
    }
    Ok(())
}

/// A choice of tools needs tools.
pub(super) fn choice_needs_tools(request: &ApiRequest<'_>) -> Check {
    let has_choice = has(request.body, "tool_choice");
    require(
        !has_choice || !list(request.body, "tools").is_empty(),
        || "tool_choice may only be specified while providing `tools`".to_owned(),
    )
}
