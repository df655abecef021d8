//! The request of the Messages API, written straight from the shared history.

use crate::{
    ModelInfo, ModelRequest, Thinking,
    answer::object,
    history::{Answer, Said, Turn, turns, unheard},
    http, known,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{Content, Schema};

/// The least that the API takes as a budget. Unit: tokens.
const LEAST_BUDGET: u32 = 1024;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<WireThinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Schema,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireThinking {
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
enum Block<'a> {
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
        source: Source<'a>,
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
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

pub(super) fn body(info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    let mut messages = messages(info, request);
    mark_for_cache(&mut messages);
    let (thinking, output_config) = match thinking(info, request.thinking) {
        (Some(WireThinking::Enabled { .. }), _) if goes_on_without_thinking(&messages) => {
            (None, None)
        }
        asked => asked,
    };
    let mut system = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(Block::Known(KnownBlock::Text {
            text: Cow::Borrowed(&request.system),
            cache_control: Some(CacheControl::Ephemeral),
        }));
    }
    http::body(&Body {
        model: &info.name.model,
        max_tokens: info.max_output,
        stream: true,
        system,
        messages,
        tools: request
            .tools
            .iter()
            .map(|tool| WireTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.schema,
            })
            .collect(),
        // Thinking and a temperature exclude each other.
        temperature: request.temperature.filter(|_| thinking.is_none()),
        thinking,
        output_config,
    })
}

fn messages<'a>(info: &ModelInfo, request: &'a ModelRequest) -> Vec<WireMessage<'a>> {
    let mut messages: Vec<WireMessage<'a>> = Vec::new();
    for turn in turns(&request.messages, info) {
        let (role, content) = match turn {
            Turn::User(said) => ("user", said.into_iter().map(block).collect()),
            Turn::Assistant(content) => ("assistant", assistant(&content)),
            Turn::Results(answers) => ("user", answers.into_iter().map(result).collect()),
        };
        push(&mut messages, role, content);
    }
    if messages
        .first()
        .is_some_and(|first| first.role == "assistant")
    {
        let text = block(Said::Text(Cow::Borrowed(
            "(The conversation before this is left out.)",
        )));
        messages.insert(
            0,
            WireMessage {
                role: "user",
                content: vec![text],
            },
        );
    }
    messages
}

/// The API wants the roles to alternate.
fn push<'a>(messages: &mut Vec<WireMessage<'a>>, role: &'static str, mut content: Vec<Block<'a>>) {
    if content.is_empty() {
        return;
    }
    match messages.last_mut().filter(|last| last.role == role) {
        Some(last) => last.content.append(&mut content),
        None => messages.push(WireMessage { role, content }),
    }
}

fn assistant<'a>(content: &[&'a Content]) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = content
        .iter()
        .filter_map(|item| assistant_block(item))
        .collect();
    // The API refuses a message that ends in reasoning: an answer that was cut short there.
    while blocks.last().is_some_and(is_thinking) {
        blocks.pop();
    }
    blocks
}

fn assistant_block(item: &Content) -> Option<Block<'_>> {
    Some(match item {
        Content::Text { text } => block(Said::Text(Cow::Borrowed(text))),
        // Without its signature the API refuses it: the answer was cut short within.
        Content::Thinking { text, signature } => Block::Known(KnownBlock::Thinking {
            thinking: text,
            signature: signature.as_deref()?,
        }),
        Content::ToolCall(call) => Block::Known(KnownBlock::ToolUse {
            id: wire_id(call.call_id.as_str()),
            name: &call.name,
            input: object(&call.args),
        }),
        Content::Opaque { value, .. } => Block::Raw(value),
        Content::Image(_) | Content::Audio(_) => return None,
    })
}

fn is_thinking(block: &Block<'_>) -> bool {
    match block {
        Block::Known(KnownBlock::Thinking { .. }) => true,
        Block::Known(_) => false,
        Block::Raw(value) => value["type"] == "redacted_thinking",
    }
}

fn block(said: Said<'_>) -> Block<'_> {
    Block::Known(match said {
        Said::Text(text) => KnownBlock::Text {
            text,
            cache_control: None,
        },
        Said::Image(image) => KnownBlock::Image {
            source: Source::Base64 {
                media_type: &image.mime_type,
                data: &image.base64,
            },
            cache_control: None,
        },
        // The API has no block for it.
        Said::Audio(_, audio) => return block(unheard(audio)),
    })
}

fn result(answer: Answer<'_>) -> Block<'_> {
    Block::Known(KnownBlock::ToolResult {
        tool_use_id: wire_id(answer.call_id.as_str()),
        content: answer.said.into_iter().map(block).collect(),
        is_error: answer.is_error,
        cache_control: None,
    })
}

/// Ids of other providers may hold characters that this API refuses.
fn wire_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(id.chars().map(|c| if fits(c) { c } else { '_' }).collect())
}

/// Cache up to the end, and up to the message before: the latter is what the last call wrote.
fn mark_for_cache(messages: &mut [WireMessage<'_>]) {
    let of_user = messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == "user");
    for message in of_user.take(2) {
        if let Some(Block::Known(
            KnownBlock::Text { cache_control, .. }
            | KnownBlock::Image { cache_control, .. }
            | KnownBlock::ToolResult { cache_control, .. },
        )) = message.content.last_mut()
        {
            *cache_control = Some(CacheControl::Ephemeral);
        }
    }
}

/// In the middle of a round of tools the API takes no new budget for thinking if the round began
/// without: the model was changed in between, say. One that decides by itself when it thinks may
/// begin a round without, and to ask otherwise in the next call would throw the cache away.
fn goes_on_without_thinking(messages: &[WireMessage<'_>]) -> bool {
    let [.., before, last] = messages else {
        return false;
    };
    let has_results = last
        .content
        .iter()
        .any(|block| matches!(block, Block::Known(KnownBlock::ToolResult { .. })));
    has_results && !before.content.first().is_some_and(is_thinking)
}

fn thinking(info: &ModelInfo, level: Thinking) -> (Option<WireThinking>, Option<OutputConfig>) {
    let model = &info.name.model;
    let (budget, effort) = match level {
        Thinking::Default => return (None, None),
        // A Claude does not think unless asked to, and the newest refuse the word.
        Thinking::Off if known::is_claude(model) => return (None, None),
        Thinking::Off => return (Some(WireThinking::Disabled), None),
        Thinking::Low => (2048, "low"),
        Thinking::Medium => (8192, "medium"),
        Thinking::High => (24_576, "high"),
    };
    if !info.reasoning {
        return (None, None);
    }
    if known::thinks_adaptively(model) {
        let thinking = WireThinking::Adaptive {
            display: "summarized",
        };
        return (Some(thinking), Some(OutputConfig { effort }));
    }
    // At least half of the room is for the answer, and the budget must lie below the whole of it.
    let budget_tokens = budget.min(info.max_output / 2);
    let enabled = WireThinking::Enabled { budget_tokens };
    ((budget_tokens >= LEAST_BUDGET).then_some(enabled), None)
}
