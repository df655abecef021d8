//! Writes requests of the Messages API directly from the shared history.

use crate::{
    ModelInfo, ModelRequest, Thinking,
    history::{CallResult, HistoryItem, InputContent, audio_placeholder, build_history},
    http, model_catalogue,
    response_accumulator::args_as_object,
    strict_schema::is_enforceable,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{Content, ToolSchema};

/// Smallest thinking budget that the API accepts. Unit: tokens.
const MIN_THINKING_BUDGET: u32 = 1024;

#[derive(Serialize)]
struct MessagesRequest<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<ContentBlock<'a>>,
    messages: Vec<MessageParam<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolParam<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct MessageParam<'a> {
    role: &'static str,
    content: Vec<ContentBlock<'a>>,
}

#[derive(Serialize)]
struct ToolParam<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a ToolSchema,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingParam {
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentBlock<'a> {
    Known(KnownBlock<'a>),
    Raw(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<ContentBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    enforces_schemas: bool,
    request: &ModelRequest,
) -> serde_json::Result<Vec<u8>> {
    let enforces_schemas = enforces_schemas && model_catalogue::enforces_schemas(&info.name.model);
    let mut messages = build_messages(info, request);
    mark_cache_breakpoints(&mut messages);
    let (thinking, output_config) = match thinking_params(info, request.thinking) {
        (Some(ThinkingParam::Enabled { .. }), _) if continues_without_thinking(&messages) => {
            (None, None)
        }
        asked => asked,
    };
    let mut system = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(ContentBlock::Known(KnownBlock::Text {
            text: Cow::Borrowed(&request.system),
            cache_control: Some(CacheControl::Ephemeral),
        }));
    }
    http::encode_json(&MessagesRequest {
        model: &info.name.model,
        max_tokens: info.max_output,
        stream: true,
        system,
        messages,
        tools: request
            .tools
            .iter()
            .map(|tool| ToolParam {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.schema,
                strict: enforces_schemas && is_enforceable(&tool.schema),
            })
            .collect(),
        // The API rejects a temperature together with thinking.
        temperature: request.temperature.filter(|_| thinking.is_none()),
        thinking,
        output_config,
    })
}

fn build_messages<'a>(info: &ModelInfo, request: &'a ModelRequest) -> Vec<MessageParam<'a>> {
    let mut messages: Vec<MessageParam<'a>> = Vec::new();
    for turn in build_history(&request.messages, info) {
        let (role, content) = match turn {
            HistoryItem::User(parts) => ("user", parts.into_iter().map(input_block).collect()),
            HistoryItem::Assistant(content) => ("assistant", assistant_blocks(&content)),
            HistoryItem::Results(answers) => {
                ("user", answers.into_iter().map(tool_result_block).collect())
            }
        };
        push_message(&mut messages, role, content);
    }
    if messages
        .first()
        .is_some_and(|first| first.role == "assistant")
    {
        let text = input_block(InputContent::Text(Cow::Borrowed(
            "(The conversation before this is left out.)",
        )));
        messages.insert(
            0,
            MessageParam {
                role: "user",
                content: vec![text],
            },
        );
    }
    messages
}

/// Appends a message, merging it with the previous one if both have the same role, because the API requires
/// alternating roles.
fn push_message<'a>(
    messages: &mut Vec<MessageParam<'a>>,
    role: &'static str,
    mut content: Vec<ContentBlock<'a>>,
) {
    if content.is_empty() {
        return;
    }
    match messages.last_mut().filter(|last| last.role == role) {
        Some(last) => last.content.append(&mut content),
        None => messages.push(MessageParam { role, content }),
    }
}

fn assistant_blocks<'a>(content: &[&'a Content]) -> Vec<ContentBlock<'a>> {
    let mut blocks: Vec<ContentBlock<'a>> = content
        .iter()
        .filter_map(|item| assistant_block(item))
        .collect();
    // The API rejects a message that ends in reasoning, which a truncated response does.
    while blocks.last().is_some_and(is_thinking_block) {
        blocks.pop();
    }
    blocks
}

fn assistant_block(item: &Content) -> Option<ContentBlock<'_>> {
    Some(match item {
        Content::Text { text } => input_block(InputContent::Text(Cow::Borrowed(text))),
        // The API rejects reasoning without its signature, which a truncated response lacks.
        Content::Thinking { text, signature } => ContentBlock::Known(KnownBlock::Thinking {
            thinking: text,
            signature: signature.as_deref()?,
        }),
        Content::ToolCall(call) => ContentBlock::Known(KnownBlock::ToolUse {
            id: sanitize_call_id(call.call_id.as_str()),
            name: &call.name,
            input: args_as_object(&call.args),
        }),
        Content::Opaque { value, .. } => ContentBlock::Raw(value),
        Content::Image(_) | Content::Audio(_) => return None,
    })
}

fn is_thinking_block(block: &ContentBlock<'_>) -> bool {
    match block {
        ContentBlock::Known(KnownBlock::Thinking { .. }) => true,
        ContentBlock::Known(_) => false,
        ContentBlock::Raw(value) => value["type"] == "redacted_thinking",
    }
}

fn input_block(part: InputContent<'_>) -> ContentBlock<'_> {
    ContentBlock::Known(match part {
        InputContent::Text(text) => KnownBlock::Text {
            text,
            cache_control: None,
        },
        InputContent::Image(image) => KnownBlock::Image {
            source: ImageSource::Base64 {
                media_type: &image.mime_type,
                data: &image.base64,
            },
            cache_control: None,
        },
        // The API has no block for audio.
        InputContent::Audio(_, audio) => return input_block(audio_placeholder(audio)),
    })
}

fn tool_result_block(answer: CallResult<'_>) -> ContentBlock<'_> {
    ContentBlock::Known(KnownBlock::ToolResult {
        tool_use_id: sanitize_call_id(answer.call_id.as_str()),
        content: answer.content.into_iter().map(input_block).collect(),
        is_error: answer.is_error,
        cache_control: None,
    })
}

/// Replaces characters in ids of other providers that this API rejects.
fn sanitize_call_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(id.chars().map(|c| if fits(c) { c } else { '_' }).collect())
}

/// Marks the last two messages of the user as ends of cached prefixes: the last call wrote the cache up to the
/// first of them.
fn mark_cache_breakpoints(messages: &mut [MessageParam<'_>]) {
    let of_user = messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == "user");
    for message in of_user.take(2) {
        if let Some(ContentBlock::Known(
            KnownBlock::Text { cache_control, .. }
            | KnownBlock::Image { cache_control, .. }
            | KnownBlock::ToolResult { cache_control, .. },
        )) = message.content.last_mut()
        {
            *cache_control = Some(CacheControl::Ephemeral);
        }
    }
}

/// Returns true within a round of tool calls that started without thinking, for example with another model:
/// the API then rejects a thinking budget. Models with adaptive thinking may start a round without thinking,
/// and changing the parameter would invalidate the cache.
fn continues_without_thinking(messages: &[MessageParam<'_>]) -> bool {
    let [.., before, last] = messages else {
        return false;
    };
    let has_results = last
        .content
        .iter()
        .any(|block| matches!(block, ContentBlock::Known(KnownBlock::ToolResult { .. })));
    has_results && !before.content.first().is_some_and(is_thinking_block)
}

fn thinking_params(
    info: &ModelInfo,
    level: Thinking,
) -> (Option<ThinkingParam>, Option<OutputConfig>) {
    let model = &info.name.model;
    let (budget, effort) = match level {
        Thinking::Default => return (None, None),
        // Claude does not think unless asked to, and the newest models reject an explicit `disabled`.
        Thinking::Off if model_catalogue::is_claude(model) => return (None, None),
        Thinking::Off => return (Some(ThinkingParam::Disabled), None),
        Thinking::Low => (2048, "low"),
        Thinking::Medium => (8192, "medium"),
        Thinking::High => (24_576, "high"),
    };
    if !info.reasoning {
        return (None, None);
    }
    if model_catalogue::has_adaptive_thinking(model) {
        let thinking = ThinkingParam::Adaptive {
            display: "summarized",
        };
        return (Some(thinking), Some(OutputConfig { effort }));
    }
    // At least half of the output is left for the response, and the budget must be below the limit.
    let budget_tokens = budget.min(info.max_output / 2);
    let enabled = ThinkingParam::Enabled { budget_tokens };
    (
        (budget_tokens >= MIN_THINKING_BUDGET).then_some(enabled),
        None,
    )
}
