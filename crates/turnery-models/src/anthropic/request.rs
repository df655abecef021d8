//! Writes requests of the Messages API directly from the shared history.

use super::{
    call_ids::accepted_id,
    model_rules::ModelRules,
    thinking::{ThinkingParam, ThinkingSetup, ToolRound},
};
use crate::{
    ModelInfo, ModelRequest, ToolChoice,
    call_name::accepted_name,
    history::{CallResult, HistoryItem, InputContent, audio_placeholder, build_history},
    http,
    response_accumulator::args_as_object,
    schema_dialect::DialectSchema,
    strict_schema::is_enforceable,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::Content;

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
    tool_choice: Option<ToolChoiceParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
pub(super) struct MessageParam<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<ContentBlock<'a>>,
}

#[derive(Serialize)]
struct ToolParam<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a DialectSchema,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoiceParam {
    Any,
    None,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ContentBlock<'a> {
    Known(KnownBlock<'a>),
    Raw(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KnownBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: MediaSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: MediaSource<'a>,
        #[serde(skip_serializing_if = "str::is_empty")]
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
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
pub(super) enum MediaSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    Ephemeral,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    enforces_schemas: bool,
    request: &ModelRequest,
    schemas: &[DialectSchema],
) -> serde_json::Result<Vec<u8>> {
    let rules = ModelRules::of(&info.name.model);
    let enforces_schemas = enforces_schemas && rules.enforces_schemas;
    let mut messages = build_messages(info, rules, request);
    mark_cache_breakpoints(&mut messages);
    let thinking = ThinkingSetup::new(info, rules, request.thinking, tool_round(&messages));
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
        tools: tool_params(request, schemas, enforces_schemas),
        tool_choice: match request.tool_choice {
            _ if request.tools.is_empty() => None,
            ToolChoice::Auto => None,
            ToolChoice::None => Some(ToolChoiceParam::None),
            // The API rejects a forced call together with thinking.
            ToolChoice::Required => (!thinking.is_on).then_some(ToolChoiceParam::Any),
        },
        // The API rejects a temperature together with thinking.
        temperature: request
            .temperature
            .filter(|_| rules.takes_temperature && !thinking.is_on),
        thinking: thinking.param,
        output_config: thinking.effort.map(|effort| OutputConfig { effort }),
    })
}

/// Returns the tools, of which the last marks the end of a prefix that sessions with other instructions share.
fn tool_params<'a>(
    request: &'a ModelRequest,
    schemas: &'a [DialectSchema],
    enforces_schemas: bool,
) -> Vec<ToolParam<'a>> {
    let last = request.tools.len();
    let mut params = Vec::with_capacity(last);
    for (at, (tool, input_schema)) in request.tools.iter().zip(schemas).enumerate() {
        params.push(ToolParam {
            name: &tool.name,
            description: &tool.description,
            strict: enforces_schemas && input_schema.is_unchanged() && is_enforceable(&tool.schema),
            input_schema,
            cache_control: (at + 1 == last).then_some(CacheControl::Ephemeral),
        });
    }
    params
}

fn build_messages<'a>(
    info: &ModelInfo,
    rules: ModelRules,
    request: &'a ModelRequest,
) -> Vec<MessageParam<'a>> {
    let mut messages: Vec<MessageParam<'a>> = Vec::new();
    for turn in build_history(request, info, rules.reasoning_scope()) {
        let (role, content) = match turn {
            HistoryItem::User(parts) => ("user", parts.into_iter().map(input_block).collect()),
            HistoryItem::Assistant(content) => ("assistant", assistant_blocks(content, rules)),
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

pub(super) fn assistant_blocks<'a>(
    content: impl IntoIterator<Item = &'a Content>,
    rules: ModelRules,
) -> Vec<ContentBlock<'a>> {
    let items = content.into_iter();
    let mut blocks: Vec<ContentBlock<'a>> = items
        .filter_map(|item| assistant_block(item, rules))
        .collect();
    // The API rejects a message that ends in reasoning, which a truncated response does.
    while blocks.last().is_some_and(is_thinking_block) {
        blocks.pop();
    }
    blocks
}

fn assistant_block(item: &Content, rules: ModelRules) -> Option<ContentBlock<'_>> {
    Some(match item {
        Content::Text { text } => input_block(InputContent::Text(Cow::Borrowed(text))),
        Content::Thinking { text, signature } => ContentBlock::Known(KnownBlock::Thinking {
            thinking: text,
            signature: match signature {
                Some(signature) => signature,
                // The API rejects reasoning without its signature, which a truncated response lacks.
                None if rules.signs_reasoning || text.is_empty() => return None,
                None => "",
            },
        }),
        Content::ToolCall(call) => ContentBlock::Known(KnownBlock::ToolUse {
            id: accepted_id(call.call_id.as_str()),
            name: accepted_name(&call.name, &[]),
            input: args_as_object(&call.args),
        }),
        Content::Opaque { value, .. } if is_foreign(value) => return None,
        Content::Opaque { value, .. } => ContentBlock::Raw(value),
        Content::Image(_) | Content::Audio(_) | Content::Document(_) => return None,
    })
}

/// Returns true for blocks of other APIs. A provider that is configured to use another API than before keeps its name.
fn is_foreign(block: &Value) -> bool {
    match block["type"].as_str() {
        // Items of Responses.
        Some("message" | "reasoning" | "item_reference") => true,
        Some(kind) => kind.is_empty() || kind.ends_with("_call") || kind.ends_with("_output"),
        // Parts of Gemini, and reasoning of Chat Completions.
        None => true,
    }
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
            source: MediaSource::Base64 {
                media_type: &image.mime_type,
                data: &image.base64,
            },
            cache_control: None,
        },
        InputContent::Document(document) => KnownBlock::Document {
            source: MediaSource::Base64 {
                media_type: &document.mime_type,
                data: &document.base64,
            },
            title: &document.name,
            cache_control: None,
        },
        // The API has no block for audio.
        InputContent::Audio(_, audio) => return input_block(audio_placeholder(audio)),
    })
}

fn tool_result_block(answer: CallResult<'_>) -> ContentBlock<'_> {
    ContentBlock::Known(KnownBlock::ToolResult {
        tool_use_id: accepted_id(answer.call_id.as_str()),
        content: answer.content.into_iter().map(input_block).collect(),
        is_error: answer.is_error,
        cache_control: None,
    })
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
            | KnownBlock::Document { cache_control, .. }
            | KnownBlock::ToolResult { cache_control, .. },
        )) = message.content.last_mut()
        {
            *cache_control = Some(CacheControl::Ephemeral);
        }
    }
}

/// Returns whether the request continues a round of calls. A round starts with the answer to a message of the user.
fn tool_round(messages: &[MessageParam<'_>]) -> ToolRound {
    let has_results = |message: &MessageParam<'_>| {
        let is_result =
            |block: &_| matches!(block, ContentBlock::Known(KnownBlock::ToolResult { .. }));
        message.content.iter().any(is_result)
    };
    if !messages.last().is_some_and(has_results) {
        return ToolRound::None;
    }
    let of_round = messages
        .iter()
        .rev()
        .take_while(|message| message.role == "assistant" || has_results(message));
    let first = of_round
        .filter(|message| message.role == "assistant")
        .last();
    match first.and_then(|message| message.content.first()) {
        Some(block) if is_thinking_block(block) => ToolRound::WithThinking,
        Some(_) | None => ToolRound::WithoutThinking,
    }
}
