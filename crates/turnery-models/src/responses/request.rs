//! Writes requests of Responses.

use super::{
    OutputLimit, ResponsesHost,
    effort::{Effort, effort},
    input::{InputItem, build_input},
};
use crate::{
    ModelInfo, ModelRequest, Thinking, ToolChoice, http, model_catalogue,
    schema_dialect::DialectSchema, strict_schema::is_enforceable,
};
use serde::Serialize;
use turnery_engine::ToolSpec;

/// Longest cache key that the API accepts. Unit: bytes.
const MAX_CACHE_KEY_BYTES: usize = 64;

#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<InputItem<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningParam>,
    prompt_cache_key: &'a str,
}

#[derive(Serialize)]
struct FunctionTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a DialectSchema,
    /// Never left out: the API takes that for true.
    strict: bool,
}

#[derive(Serialize)]
struct ReasoningParam {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    host: ResponsesHost,
    request: &ModelRequest,
    schemas: &[DialectSchema],
) -> serde_json::Result<Vec<u8>> {
    let model = info.name.model.as_str();
    let is_known = model_catalogue::look_up(model).is_some();
    // Models without reasoning reject its parameters. Unknown models receive them only if the user asks for a level.
    let is_reasoning = info.reasoning && (is_known || request.thinking != Thinking::Default);
    let cache_key = request.session_id.as_str();
    http::encode_json(&ResponsesRequest {
        model,
        instructions: match request.system.trim().is_empty() {
            true => "",
            false => &request.system,
        },
        input: build_input(info, host.groups_calls, request),
        stream: true,
        store: false,
        include: match is_reasoning {
            true => &["reasoning.encrypted_content"],
            false => &[],
        },
        tools: request
            .tools
            .iter()
            .zip(schemas)
            .map(|(tool, schema)| function_tool(tool, schema, host.enforces_schemas))
            .collect(),
        tool_choice: match request.tool_choice {
            _ if request.tools.is_empty() => None,
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none"),
            ToolChoice::Required => Some("required"),
        },
        parallel_tool_calls: (!request.tools.is_empty()).then_some(true),
        max_output_tokens: match host.output_limit {
            OutputLimit::Always => Some(info.max_output),
            OutputLimit::IfKnown => is_known.then_some(info.max_output),
            OutputLimit::Never => None,
        },
        temperature: request.temperature.filter(|_| !is_reasoning),
        reasoning: is_reasoning.then(|| reasoning_param(model, request.thinking)),
        prompt_cache_key: &cache_key[..cache_key.floor_char_boundary(MAX_CACHE_KEY_BYTES)],
    })
}

fn function_tool<'a>(
    tool: &'a ToolSpec,
    parameters: &'a DialectSchema,
    enforces_schemas: bool,
) -> FunctionTool<'a> {
    FunctionTool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        strict: enforces_schemas && parameters.is_unchanged() && is_enforceable(&tool.schema),
        parameters,
    }
}

fn reasoning_param(model: &str, level: Thinking) -> ReasoningParam {
    let effort = effort(model, level);
    ReasoningParam {
        effort,
        summary: (effort != Some(Effort::Off)).then_some("auto"),
    }
}
