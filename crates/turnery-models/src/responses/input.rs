//! Converts the shared history to input items.

use super::call_id::accepted_call_id;
use crate::{
    ModelInfo, ModelRequest,
    call_name::accepted_name,
    history::{
        CallResult, HistoryItem, InputContent, ReasoningScope, audio_placeholder, build_history,
    },
    response_accumulator::args_as_object,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use turnery_engine::{Content, ToolCall};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'a> {
    Message {
        role: &'static str,
        content: ItemContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ItemContent<'a>,
    },
    Reasoning {
        summary: &'a [Value],
        encrypted_content: &'a str,
    },
    /// An item that the server produced and that no client answers.
    #[serde(untagged)]
    Server(ServerItem<'a>),
}

/// Text alone, or parts.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum InputPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image {
        detail: &'static str,
        /// A data URL.
        image_url: String,
    },
    #[serde(rename = "input_file")]
    File {
        filename: &'a str,
        /// A data URL.
        file_data: String,
    },
}

/// An item as the server sent it, without its id: the server keeps no items that it could refer to (quirk 30).
pub(super) struct ServerItem<'a>(&'a Map<String, Value>);

impl Serialize for ServerItem<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().filter(|(name, _)| *name != "id"))
    }
}

/// Returns the conversation as input items. With `groups_calls`, the calls of a response come after its other items, so
/// that nothing stands between them and their outputs.
pub(super) fn build_input<'a>(
    info: &ModelInfo,
    groups_calls: bool,
    request: &'a ModelRequest,
) -> Vec<InputItem<'a>> {
    let mut items = Vec::with_capacity(request.messages.len());
    for item in build_history(request, info, ReasoningScope::SameModel) {
        match item {
            HistoryItem::User(parts) => items.push(InputItem::Message {
                role: "user",
                content: ItemContent::Parts(parts.into_iter().map(content_part).collect()),
                phase: None,
            }),
            HistoryItem::Assistant(content) => {
                let mut response = assistant_items(&content);
                if groups_calls {
                    response.sort_by_key(|item| matches!(item, InputItem::FunctionCall { .. }));
                }
                items.append(&mut response);
            }
            HistoryItem::Results(results) => items.extend(results.into_iter().map(call_output)),
        }
    }
    items
}

fn assistant_items<'a>(content: &[&'a Content]) -> Vec<InputItem<'a>> {
    let mut items = Vec::with_capacity(content.len());
    for block in content {
        match block {
            Content::Text { text } => items.push(InputItem::Message {
                role: "assistant",
                content: ItemContent::Text(Cow::Borrowed(text)),
                phase: None,
            }),
            Content::ToolCall(call) => items.push(function_call(call)),
            Content::Opaque { value, .. } => push_opaque(&mut items, value),
            // The opaque block that follows contains the same reasoning, as the server needs it.
            Content::Thinking { .. } => {}
            Content::Image(_) | Content::Audio(_) | Content::Document(_) => {}
        }
    }
    // The API rejects reasoning that nothing follows, which truncated responses end in.
    while matches!(items.last(), Some(InputItem::Reasoning { .. })) {
        items.pop();
    }
    items
}

/// Appends the item that an opaque block holds, or the phase of the message before it.
fn push_opaque<'a>(items: &mut Vec<InputItem<'a>>, value: &'a Value) {
    let Some(block) = value.as_object() else {
        return;
    };
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "message" => {
            if let Some(InputItem::Message { phase, .. }) = items.last_mut() {
                *phase = Some(text("phase")).filter(|phase| !phase.is_empty());
            }
        }
        // The API rejects empty reasoning, and without state on the server knows none that is not encrypted
        // (quirks 29 and 32).
        "reasoning" if text("encrypted_content").is_empty() => {}
        "reasoning" => items.push(InputItem::Reasoning {
            summary: match block.get("summary") {
                Some(Value::Array(parts)) => parts,
                Some(_) | None => &[],
            },
            encrypted_content: text("encrypted_content"),
        }),
        kind if is_foreign(kind) || awaits_output(block) => {}
        _ => items.push(InputItem::Server(ServerItem(block))),
    }
}

/// Returns true for types of other APIs' blocks. A provider that is configured to use another API than before keeps its
/// name.
fn is_foreign(kind: &str) -> bool {
    kind.is_empty()
        // Blocks of Anthropic Messages.
        || matches!(kind, "thinking" | "redacted_thinking" | "server_tool_use")
        || kind.ends_with("_tool_result")
        // Reasoning details of Chat Completions, such as `reasoning.encrypted`.
        || kind.contains('.')
}

/// Returns true for calls of tools that were never offered: the API rejects them without the client's output.
fn awaits_output(block: &Map<String, Value>) -> bool {
    block.get("call_id").is_some_and(Value::is_string)
}

fn function_call(call: &ToolCall) -> InputItem<'_> {
    InputItem::FunctionCall {
        call_id: accepted_call_id(call.call_id.as_str()),
        name: accepted_name(&call.name, &[]),
        arguments: args_as_object(&call.args).to_string(),
    }
}

fn call_output(result: CallResult<'_>) -> InputItem<'_> {
    InputItem::FunctionCallOutput {
        call_id: accepted_call_id(result.call_id.as_str()),
        output: output_content(result.content),
    }
}

/// Returns the output of a call: its texts joined, or parts if there is anything else, such as pictures (quirk 15).
fn output_content(parts: Vec<InputContent<'_>>) -> ItemContent<'_> {
    let is_text = |part: &InputContent<'_>| match part {
        InputContent::Text(_) => true,
        InputContent::Image(_) | InputContent::Audio(..) | InputContent::Document(_) => false,
    };
    if !parts.iter().all(is_text) {
        return ItemContent::Parts(parts.into_iter().map(content_part).collect());
    }
    let mut all = Cow::Borrowed("");
    for part in parts {
        match part {
            InputContent::Text(text) if all.is_empty() => all = text,
            InputContent::Text(text) => {
                let all = all.to_mut();
                all.push_str("\n\n");
                all.push_str(&text);
            }
            InputContent::Image(_) | InputContent::Audio(..) | InputContent::Document(_) => {}
        }
    }
    ItemContent::Text(match all.is_empty() {
        true => Cow::Borrowed("(no output)"),
        false => all,
    })
}

fn content_part(part: InputContent<'_>) -> InputPart<'_> {
    match part {
        InputContent::Text(text) => InputPart::Text { text },
        InputContent::Image(image) => InputPart::Image {
            detail: "auto",
            image_url: data_url(&image.mime_type, &image.base64),
        },
        InputContent::Document(document) => InputPart::File {
            filename: &document.name,
            file_data: data_url(&document.mime_type, &document.base64),
        },
        // The API has no part for audio.
        InputContent::Audio(_, audio) => content_part(audio_placeholder(audio)),
    }
}

fn data_url(mime_type: &str, base64: &str) -> String {
    format!("data:{mime_type};base64,{base64}")
}
