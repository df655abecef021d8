//! Writes requests of Chat Completions directly from the shared history.

use super::{
    messages::{ChatMessage, build_messages},
    quirks::{LimitField, Quirks, TemperatureRule},
    thinking_params::{ThinkingParams, thinking_params},
};
use crate::{
    ModelInfo, ModelRequest, Thinking, ToolChoice, http, model_catalogue,
    schema_dialect::DialectSchema, strict_schema::is_enforceable,
};
use serde::Serialize;
use turnery_engine::ToolSpec;

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(flatten)]
    thinking: ThinkingParams,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a DialectSchema,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    quirks: &Quirks,
    enforces_schemas: bool,
    request: &ModelRequest,
    schemas: &[DialectSchema],
) -> serde_json::Result<Vec<u8>> {
    let sends_limit = quirks.has_user_limit || model_catalogue::look_up(&info.name.model).is_some();
    let limit = |field| (sends_limit && quirks.limit == field).then_some(info.max_output);
    let tools: &[ToolSpec] = match quirks.takes_tools {
        true => &request.tools,
        false => &[],
    };
    // Models known not to reason reject the parameters.
    let thinking = match info.reasoning {
        true => thinking_params(quirks, request.thinking, !tools.is_empty()),
        false => ThinkingParams::default(),
    };
    http::encode_json(&ChatRequest {
        model: &info.name.model,
        messages: build_messages(info, quirks, request),
        stream: true,
        stream_options: quirks.asks_usage.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: tools
            .iter()
            .zip(schemas)
            .map(|(tool, schema)| chat_tool(tool, schema, enforces_schemas))
            .collect(),
        tool_choice: match tools.is_empty() {
            true => None,
            false => tool_choice(quirks, request),
        },
        max_completion_tokens: limit(LimitField::MaxCompletionTokens),
        max_tokens: limit(LimitField::MaxTokens),
        temperature: request
            .temperature
            .filter(|_| takes_temperature(quirks, request.thinking)),
        thinking,
        reasoning_format: quirks.reasoning_format,
        prompt_cache_key: quirks.cache_key.then(|| request.session_id.as_str()),
    })
}

fn chat_tool<'a>(
    tool: &'a ToolSpec,
    parameters: &'a DialectSchema,
    enforces_schemas: bool,
) -> ChatTool<'a> {
    ChatTool {
        r#type: "function",
        function: ToolFunction {
            name: &tool.name,
            description: &tool.description,
            strict: enforces_schemas && parameters.is_unchanged() && is_enforceable(&tool.schema),
            parameters,
        },
    }
}

/// Returns the choice, as far as the host accepts it.
fn tool_choice(quirks: &Quirks, request: &ModelRequest) -> Option<&'static str> {
    let thinks = request.thinking != Thinking::Off;
    match request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => quirks.can_forbid_calls.then_some("none"),
        ToolChoice::Required => (quirks.can_force_calls
            && !(quirks.forces_calls_without_thinking && thinks))
            .then_some("required"),
    }
}

fn takes_temperature(quirks: &Quirks, level: Thinking) -> bool {
    match quirks.temperature {
        TemperatureRule::Accepted => true,
        TemperatureRule::WithoutThinking => match level {
            Thinking::Default | Thinking::Off => true,
            Thinking::Low | Thinking::Medium | Thinking::High => false,
        },
        TemperatureRule::Rejected => false,
    }
}
