//! Writes requests of Chat Completions directly from the shared history.

use super::quirks::{LimitField, Quirks, ReasoningField};
use crate::{
    ModelInfo, ModelRequest, Thinking,
    history::{CallResult, HistoryItem, InputContent, build_history},
    http, model_catalogue,
    response_accumulator::args_as_object,
    strict_schema::is_enforceable,
};
use serde::Serialize;
use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};
use turnery_engine::{AudioData, AudioFormat, CallId, Content, ImageData, ToolCall, ToolSchema};

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
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatToolCall<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Cow<'a, str>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// Message content. Text alone is sent as a string: not every server accepts parts.
#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    InputAudio { input_audio: InputAudio<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: ChatFunctionCall<'a>,
}

#[derive(Serialize)]
struct ChatFunctionCall<'a> {
    name: &'a str,
    arguments: String,
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
    parameters: &'a ToolSchema,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    quirks: &Quirks,
    enforces_schemas: bool,
    request: &ModelRequest,
) -> serde_json::Result<Vec<u8>> {
    let limit = |field| {
        let is_told =
            quirks.limit_is_chosen || model_catalogue::look_up(&info.name.model).is_some();
        (quirks.limit == field && is_told).then_some(info.max_output)
    };
    http::encode_json(&ChatRequest {
        model: &info.name.model,
        messages: build_messages(info, quirks, request),
        stream: true,
        stream_options: quirks.asks_usage.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: request
            .tools
            .iter()
            .map(|tool| ChatTool {
                r#type: "function",
                function: ToolFunction {
                    name: &tool.name,
                    description: &tool.description,
                    parameters: &tool.schema,
                    strict: enforces_schemas && is_enforceable(&tool.schema),
                },
            })
            .collect(),
        max_completion_tokens: limit(LimitField::MaxCompletionTokens),
        max_tokens: limit(LimitField::MaxTokens),
        // Known reasoning models accept only their default temperature.
        temperature: request.temperature.filter(|_| {
            model_catalogue::look_up(&info.name.model).is_none_or(|known| !known.reasoning)
        }),
        reasoning_effort: reasoning_effort(info, request.thinking),
        prompt_cache_key: quirks.cache_key.then(|| request.session_id.as_str()),
    })
}

/// Returns the reasoning effort. Models known not to reason reject the parameter.
fn reasoning_effort(info: &ModelInfo, level: Thinking) -> Option<&'static str> {
    let model = info.name.model.as_str();
    if !info.reasoning {
        return None;
    }
    match level {
        Thinking::Default => None,
        // The smallest effort of these families.
        Thinking::Off if model.starts_with('o') && model_catalogue::look_up(model).is_some() => {
            Some("low")
        }
        Thinking::Off if model.starts_with("gpt-5") && !model.starts_with("gpt-5.") => {
            Some("minimal")
        }
        Thinking::Off => Some("none"),
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
    }
}

fn build_messages<'a>(
    info: &ModelInfo,
    quirks: &Quirks,
    request: &'a ModelRequest,
) -> Vec<ChatMessage<'a>> {
    let turns = build_history(&request.messages, info);
    // Servers expect reasoning within a round of tool calls, and reject or ignore it elsewhere.
    let round = turns
        .iter()
        .rposition(|turn| matches!(turn, HistoryItem::User(_)))
        .unwrap_or(0);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(ChatMessage::System {
            content: &request.system,
        });
    }
    let mut media = Vec::new();
    for (at, turn) in turns.into_iter().enumerate() {
        if !matches!(turn, HistoryItem::User(_)) && !media.is_empty() {
            push_user(&mut messages, quirks, std::mem::take(&mut media));
        }
        match turn {
            HistoryItem::User(parts) if media.is_empty() => push_user(&mut messages, quirks, parts),
            HistoryItem::User(parts) => {
                media.extend(parts);
                push_user(&mut messages, quirks, std::mem::take(&mut media));
            }
            HistoryItem::Assistant(content) => {
                let field = quirks.reasoning_field.filter(|_| at > round);
                messages.extend(assistant_message(&content, quirks, field));
            }
            HistoryItem::Results(answers) => {
                for answer in answers {
                    messages.push(tool_message(answer, quirks, &mut media));
                }
            }
        }
    }
    if !media.is_empty() {
        push_user(&mut messages, quirks, media);
    }
    messages
}

/// Appends a user message. Mistral rejects one directly after a tool message, so an assistant message is put
/// between them.
fn push_user<'a>(
    messages: &mut Vec<ChatMessage<'a>>,
    quirks: &Quirks,
    parts: Vec<InputContent<'a>>,
) {
    if quirks.is_mistral && matches!(messages.last(), Some(ChatMessage::Tool { .. })) {
        messages.push(ChatMessage::Assistant {
            content: Some(Cow::Borrowed("I have the results.")),
            tool_calls: Vec::new(),
            reasoning_content: None,
            reasoning: None,
        });
    }
    messages.push(ChatMessage::User {
        content: user_content(parts),
    });
}

fn user_content(parts: Vec<InputContent<'_>>) -> ChatContent<'_> {
    if !parts.iter().all(is_text) {
        let part = |piece| match piece {
            InputContent::Text(text) => ChatContentPart::Text { text },
            InputContent::Image(image) => ChatContentPart::ImageUrl {
                image_url: ImageUrl {
                    url: data_url(image),
                },
            },
            InputContent::Audio(format, audio) => ChatContentPart::InputAudio {
                input_audio: input_audio(format, audio),
            },
        };
        return ChatContent::Parts(parts.into_iter().map(part).collect());
    }
    ChatContent::Text(join_texts(parts))
}

fn is_text(piece: &InputContent<'_>) -> bool {
    match piece {
        InputContent::Text(_) => true,
        InputContent::Image(_) | InputContent::Audio(..) => false,
    }
}

/// Joins texts with blank lines.
fn join_texts(parts: Vec<InputContent<'_>>) -> Cow<'_, str> {
    let mut all = None;
    for piece in parts {
        match piece {
            InputContent::Text(text) => append_paragraph(&mut all, text),
            InputContent::Image(_) | InputContent::Audio(..) => {}
        }
    }
    all.unwrap_or_default()
}

fn data_url(image: &ImageData) -> String {
    format!("data:{};base64,{}", image.mime_type, image.base64)
}

fn input_audio(format: AudioFormat, audio: &AudioData) -> InputAudio<'_> {
    InputAudio {
        data: &audio.base64,
        format: match format {
            AudioFormat::Wav => "wav",
            AudioFormat::Mp3 => "mp3",
        },
    }
}

fn assistant_message<'a>(
    content: &[&'a Content],
    quirks: &Quirks,
    field: Option<ReasoningField>,
) -> Option<ChatMessage<'a>> {
    let mut text = None;
    let mut reasoning = None;
    let mut tool_calls = Vec::new();
    for item in content {
        match item {
            Content::Text { text: piece } => {
                append_paragraph(&mut text, Cow::Borrowed(piece.as_str()))
            }
            Content::Thinking { text: piece, .. } => {
                append_paragraph(&mut reasoning, Cow::Borrowed(piece.as_str()))
            }
            Content::ToolCall(call) => tool_calls.push(chat_tool_call(call, quirks)),
            Content::Image(_) | Content::Audio(_) | Content::Opaque { .. } => {}
        }
    }
    if text.is_none() && tool_calls.is_empty() {
        return None;
    }
    let reasoning = reasoning.filter(|_| !tool_calls.is_empty());
    let (reasoning_content, reasoning) = match field {
        Some(ReasoningField::ReasoningContent) => (reasoning, None),
        Some(ReasoningField::Reasoning) => (None, reasoning),
        None => (None, None),
    };
    Some(ChatMessage::Assistant {
        content: text,
        tool_calls,
        reasoning_content,
        reasoning,
    })
}

/// Appends a paragraph; a single piece is not copied.
fn append_paragraph<'a>(all: &mut Option<Cow<'a, str>>, piece: Cow<'a, str>) {
    match all {
        Some(so_far) if !so_far.is_empty() => {
            let so_far = so_far.to_mut();
            so_far.push_str("\n\n");
            so_far.push_str(&piece);
        }
        Some(_) | None => *all = Some(piece),
    }
}

fn chat_tool_call<'a>(call: &'a ToolCall, quirks: &Quirks) -> ChatToolCall<'a> {
    ChatToolCall {
        id: sanitize_call_id(&call.call_id, quirks),
        r#type: "function",
        function: ChatFunctionCall {
            name: &call.name,
            arguments: args_as_object(&call.args).to_string(),
        },
    }
}

/// Creates a tool message, which is text only; images and recordings are collected for the user message that
/// follows.
fn tool_message<'a>(
    answer: CallResult<'a>,
    quirks: &Quirks,
    media: &mut Vec<InputContent<'a>>,
) -> ChatMessage<'a> {
    let id = sanitize_call_id(answer.call_id, quirks);
    let (texts, others): (Vec<_>, Vec<_>) = answer.content.into_iter().partition(is_text);
    let is_audio = |piece: &InputContent<'_>| matches!(piece, InputContent::Audio(..));
    let (one, all) = match others.iter().any(is_audio) {
        true => ("recording", "Recordings"),
        false => ("picture", "Pictures"),
    };
    let mut content = join_texts(texts);
    if content.is_empty() {
        content = match others.is_empty() {
            true => Cow::Borrowed("(no output)"),
            false => Cow::Owned(format!("(a {one}: see the next message)")),
        };
    }
    if !others.is_empty() {
        media.push(InputContent::Text(Cow::Owned(format!(
            "{all} that {id} gave:"
        ))));
        media.extend(others);
    }
    ChatMessage::Tool {
        tool_call_id: id,
        content,
    }
}

/// Returns the call id in a form that the server accepts: Mistral's must be nine letters and digits, so
/// others are hashed.
fn sanitize_call_id<'a>(id: &'a CallId, quirks: &Quirks) -> Cow<'a, str> {
    let id = id.as_str();
    let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !quirks.is_mistral || fits {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Cow::Owned(format!("{:09x}", hasher.finish() & 0xF_FFFF_FFFF))
}
