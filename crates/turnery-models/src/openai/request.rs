//! The request of Chat Completions, written straight from the shared history.

use super::quirks::{LimitField, Quirks, ReasoningField};
use crate::{
    ModelInfo, ModelRequest, Thinking,
    answer::object,
    history::{Answer, Said, Turn, turns},
    http, known,
};
use serde::Serialize;
use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};
use turnery_engine::{AudioData, AudioFormat, CallId, Content, ImageData, Schema, ToolCall};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
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
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: WireContent<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
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

/// Text alone goes as a string: not every server takes parts.
#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
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
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Schema,
}

pub(super) fn body(
    info: &ModelInfo,
    quirks: &Quirks,
    request: &ModelRequest,
) -> serde_json::Result<Vec<u8>> {
    let limit = |field| {
        let is_told = quirks.limit_is_chosen || known::look_up(&info.name.model).is_some();
        (quirks.limit == field && is_told).then_some(info.max_output)
    };
    http::body(&Body {
        model: &info.name.model,
        messages: messages(info, quirks, request),
        stream: true,
        stream_options: quirks.asks_usage.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: request
            .tools
            .iter()
            .map(|tool| WireTool {
                r#type: "function",
                function: ToolFunction {
                    name: &tool.name,
                    description: &tool.description,
                    parameters: &tool.schema,
                },
            })
            .collect(),
        max_completion_tokens: limit(LimitField::Completion),
        max_tokens: limit(LimitField::Plain),
        // A model that is known to reason takes none but its own.
        temperature: request
            .temperature
            .filter(|_| known::look_up(&info.name.model).is_none_or(|known| !known.reasoning)),
        reasoning_effort: effort(info, request.thinking),
        prompt_cache_key: quirks.cache_key.then(|| request.session_id.as_str()),
    })
}

/// A model that is known not to reason refuses to be asked.
fn effort(info: &ModelInfo, level: Thinking) -> Option<&'static str> {
    let model = info.name.model.as_str();
    if !info.reasoning {
        return None;
    }
    match level {
        Thinking::Default => None,
        // The least that these families know.
        Thinking::Off if model.starts_with('o') && known::look_up(model).is_some() => Some("low"),
        Thinking::Off if model.starts_with("gpt-5") && !model.starts_with("gpt-5.") => {
            Some("minimal")
        }
        Thinking::Off => Some("none"),
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
    }
}

fn messages<'a>(
    info: &ModelInfo,
    quirks: &Quirks,
    request: &'a ModelRequest,
) -> Vec<WireMessage<'a>> {
    let turns = turns(&request.messages, info);
    // Reasoning is wanted back within a round of tools, and refused or wasted outside it.
    let round = turns
        .iter()
        .rposition(|turn| matches!(turn, Turn::User(_)))
        .unwrap_or(0);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(WireMessage::System {
            content: &request.system,
        });
    }
    let mut media = Vec::new();
    for (at, turn) in turns.into_iter().enumerate() {
        if !matches!(turn, Turn::User(_)) && !media.is_empty() {
            push_user(&mut messages, quirks, std::mem::take(&mut media));
        }
        match turn {
            Turn::User(said) if media.is_empty() => push_user(&mut messages, quirks, said),
            Turn::User(said) => {
                media.extend(said);
                push_user(&mut messages, quirks, std::mem::take(&mut media));
            }
            Turn::Assistant(content) => {
                let field = quirks.reasoning_field.filter(|_| at > round);
                messages.extend(assistant(&content, quirks, field));
            }
            Turn::Results(answers) => {
                for answer in answers {
                    messages.push(result(answer, quirks, &mut media));
                }
            }
        }
    }
    if !media.is_empty() {
        push_user(&mut messages, quirks, media);
    }
    messages
}

fn push_user<'a>(messages: &mut Vec<WireMessage<'a>>, quirks: &Quirks, said: Vec<Said<'a>>) {
    if quirks.is_mistral && matches!(messages.last(), Some(WireMessage::Tool { .. })) {
        messages.push(WireMessage::Assistant {
            content: Some(Cow::Borrowed("I have the results.")),
            tool_calls: Vec::new(),
            reasoning_content: None,
            reasoning: None,
        });
    }
    messages.push(WireMessage::User {
        content: content(said),
    });
}

fn content(said: Vec<Said<'_>>) -> WireContent<'_> {
    if !said.iter().all(is_text) {
        let part = |piece| match piece {
            Said::Text(text) => WirePart::Text { text },
            Said::Image(image) => WirePart::ImageUrl {
                image_url: ImageUrl {
                    url: data_url(image),
                },
            },
            Said::Audio(format, audio) => WirePart::InputAudio {
                input_audio: input_audio(format, audio),
            },
        };
        return WireContent::Parts(said.into_iter().map(part).collect());
    }
    WireContent::Text(joined(said))
}

fn is_text(piece: &Said<'_>) -> bool {
    match piece {
        Said::Text(_) => true,
        Said::Image(_) | Said::Audio(..) => false,
    }
}

/// The texts, with an empty line in between.
fn joined(said: Vec<Said<'_>>) -> Cow<'_, str> {
    let mut all = None;
    for piece in said {
        match piece {
            Said::Text(text) => append(&mut all, text),
            Said::Image(_) | Said::Audio(..) => {}
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

fn assistant<'a>(
    content: &[&'a Content],
    quirks: &Quirks,
    field: Option<ReasoningField>,
) -> Option<WireMessage<'a>> {
    let mut text = None;
    let mut reasoning = None;
    let mut tool_calls = Vec::new();
    for item in content {
        match item {
            Content::Text { text: piece } => append(&mut text, Cow::Borrowed(piece.as_str())),
            Content::Thinking { text: piece, .. } => {
                append(&mut reasoning, Cow::Borrowed(piece.as_str()))
            }
            Content::ToolCall(call) => tool_calls.push(wire_call(call, quirks)),
            Content::Image(_) | Content::Audio(_) | Content::Opaque { .. } => {}
        }
    }
    if text.is_none() && tool_calls.is_empty() {
        return None;
    }
    let reasoning = reasoning.filter(|_| !tool_calls.is_empty());
    let (reasoning_content, reasoning) = match field {
        Some(ReasoningField::Content) => (reasoning, None),
        Some(ReasoningField::Plain) => (None, reasoning),
        None => (None, None),
    };
    Some(WireMessage::Assistant {
        content: text,
        tool_calls,
        reasoning_content,
        reasoning,
    })
}

/// Copies nothing if there is only one piece.
fn append<'a>(all: &mut Option<Cow<'a, str>>, piece: Cow<'a, str>) {
    match all {
        Some(so_far) if !so_far.is_empty() => {
            let so_far = so_far.to_mut();
            so_far.push_str("\n\n");
            so_far.push_str(&piece);
        }
        Some(_) | None => *all = Some(piece),
    }
}

fn wire_call<'a>(call: &'a ToolCall, quirks: &Quirks) -> WireCall<'a> {
    WireCall {
        id: wire_id(&call.call_id, quirks),
        r#type: "function",
        function: WireFunction {
            name: &call.name,
            arguments: object(&call.args).to_string(),
        },
    }
}

/// A tool's message is text; its pictures and recordings wait for the user message after the results.
fn result<'a>(answer: Answer<'a>, quirks: &Quirks, media: &mut Vec<Said<'a>>) -> WireMessage<'a> {
    let id = wire_id(answer.call_id, quirks);
    let (texts, others): (Vec<_>, Vec<_>) = answer.said.into_iter().partition(is_text);
    let is_audio = |piece: &Said<'_>| matches!(piece, Said::Audio(..));
    let (one, all) = match others.iter().any(is_audio) {
        true => ("recording", "Recordings"),
        false => ("picture", "Pictures"),
    };
    let mut content = joined(texts);
    if content.is_empty() {
        content = match others.is_empty() {
            true => Cow::Borrowed("(no output)"),
            false => Cow::Owned(format!("(a {one}: see the next message)")),
        };
    }
    if !others.is_empty() {
        media.push(Said::Text(Cow::Owned(format!("{all} that {id} gave:"))));
        media.extend(others);
    }
    WireMessage::Tool {
        tool_call_id: id,
        content,
    }
}

fn wire_id<'a>(id: &'a CallId, quirks: &Quirks) -> Cow<'a, str> {
    let id = id.as_str();
    let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !quirks.is_mistral || fits {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Cow::Owned(format!("{:09x}", hasher.finish() & 0xF_FFFF_FFFF))
}
