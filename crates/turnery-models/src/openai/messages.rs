//! Converts the conversation to messages of Chat Completions.

use super::{
    call_id_map::CallIdMap,
    quirks::{Quirks, ReasoningField, ReasoningReplay},
    replayed_reasoning::{details_in, field_in},
};
use crate::{
    ModelInfo, ModelRequest,
    call_name::accepted_name,
    history::{CallResult, HistoryItem, InputContent, build_history},
    response_accumulator::args_as_object,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{AudioData, AudioFormat, Content, ToolCall};

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum ChatMessage<'a> {
    System {
        content: ChatContent<'a>,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant(AssistantMessage<'a>),
    Tool {
        tool_call_id: Cow<'a, str>,
        content: ChatContent<'a>,
    },
}

#[derive(Default, Serialize)]
pub(super) struct AssistantMessage<'a> {
    /// `None` only together with calls: some servers reject a null elsewhere.
    content: Option<ChatContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a Value>,
}

/// Message content. Text alone is sent as a string, because not every server accepts parts, and models that see parts
/// of their own imitate them.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Serialize)]
pub(super) struct ChatPart<'a> {
    #[serde(flatten)]
    kind: ChatPartKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<ChatCacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPartKind<'a> {
    Text { text: Cow<'a, str> },
    Thinking { thinking: [ThinkingText<'a>; 1] },
    ImageUrl { image_url: ImageUrl },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: FilePart<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct ThinkingText<'a> {
    text: Cow<'a, str>,
}

/// Marks the end of a cached prefix.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatCacheControl {
    Ephemeral,
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
struct FilePart<'a> {
    filename: &'a str,
    /// A data URL.
    file_data: String,
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: ChatFunctionCall<'a>,
}

#[derive(Serialize)]
struct ChatFunctionCall<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// Returns the messages of a request, the system prompt included.
pub(super) fn build_messages<'a>(
    info: &ModelInfo,
    quirks: &'a Quirks,
    request: &'a ModelRequest,
) -> Vec<ChatMessage<'a>> {
    let turns = build_history(request, info, quirks.reasoning_scope);
    let mut messages = MessageList {
        quirks,
        ids: CallIdMap::new(&turns, quirks.call_ids),
        messages: Vec::with_capacity(turns.len() + 1),
        pending: Vec::new(),
    };
    if !request.system.trim().is_empty() {
        let content = text_content(Cow::Borrowed(&request.system), quirks.cache_marks);
        messages.messages.push(ChatMessage::System { content });
    }
    let last_user = turns
        .iter()
        .rposition(|turn| matches!(turn, HistoryItem::User(_)))
        .unwrap_or(0);
    for (at, turn) in turns.into_iter().enumerate() {
        match turn {
            HistoryItem::User(parts) => messages.pending.extend(parts),
            HistoryItem::Assistant(content) => {
                let replays = match quirks.reasoning_replay {
                    ReasoningReplay::Never => false,
                    ReasoningReplay::Round => at > last_user,
                    ReasoningReplay::Always => true,
                };
                messages.push_assistant(&content, replays);
            }
            HistoryItem::Results(answers) => {
                for answer in answers {
                    messages.push_result(answer);
                }
            }
        }
    }
    messages.push_pending();
    let mut messages = messages.messages;
    if quirks.cache_marks {
        mark_cache_breakpoints(&mut messages);
    }
    messages
}

/// Messages so far.
struct MessageList<'a> {
    quirks: &'a Quirks,
    ids: CallIdMap<'a>,
    messages: Vec<ChatMessage<'a>>,
    /// Content of the next user message.
    pending: Vec<InputContent<'a>>,
}

impl<'a> MessageList<'a> {
    /// Adds the pending content as a user message. Mistral rejects one directly after a tool message, so an assistant
    /// message is put between them.
    fn push_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let is_after_tool = matches!(self.messages.last(), Some(ChatMessage::Tool { .. }));
        if self.quirks.separates_results && is_after_tool {
            let text = Cow::Borrowed("I have the results.");
            self.messages.push(ChatMessage::Assistant(AssistantMessage {
                content: Some(ChatContent::Text(text)),
                ..AssistantMessage::default()
            }));
        }
        let parts = std::mem::take(&mut self.pending);
        let content = user_content(parts, self.quirks.cache_marks);
        self.messages.push(ChatMessage::User { content });
    }

    /// Adds a message of the model, unless nothing of it is left. `replays` is true if it goes back with its reasoning.
    fn push_assistant(&mut self, content: &[&'a Content], replays: bool) {
        let mut text = None;
        let mut reasoning: Option<Cow<'a, str>> = None;
        let mut field = self.quirks.reasoning_field;
        let mut message = AssistantMessage::default();
        for item in content {
            match item {
                Content::Text { text: piece } => {
                    append_paragraph(&mut text, Cow::Borrowed(piece.as_str()))
                }
                Content::Thinking { .. } | Content::Opaque { .. } if !replays => {}
                // The blocks are pieces of one text.
                Content::Thinking { text: piece, .. } => match &mut reasoning {
                    Some(so_far) => so_far.to_mut().push_str(piece),
                    None => reasoning = Some(Cow::Borrowed(piece.as_str())),
                },
                Content::Opaque { value, .. } => {
                    field = field_in(value).unwrap_or(field);
                    message.reasoning_details.extend(details_in(value));
                }
                Content::ToolCall(call) if self.quirks.takes_tools => {
                    message.tool_calls.push(chat_tool_call(call, &self.ids))
                }
                Content::ToolCall(call) => append_paragraph(&mut text, call_as_text(call)),
                Content::Image(_) | Content::Audio(_) | Content::Document(_) => {}
            }
        }
        if text.is_none() && message.tool_calls.is_empty() {
            return;
        }
        if !message.reasoning_details.is_empty() {
            // They hold the text too.
            reasoning = None;
        } else if reasoning.is_none() {
            field = self.quirks.reasoning_field;
            reasoning = self.quirks.missing_reasoning.map(Cow::Borrowed);
        }
        message.content = text.map(ChatContent::Text);
        message.set_reasoning(field, reasoning);
        self.push_pending();
        self.messages.push(ChatMessage::Assistant(message));
    }

    /// Adds the result of a call as a tool message, which is text only: images and recordings go into the user message
    /// that follows.
    fn push_result(&mut self, answer: CallResult<'a>) {
        let id = self.ids.get(answer.call_id);
        let (texts, others): (Vec<_>, Vec<_>) = answer.content.into_iter().partition(is_text);
        let is_image = |piece: &InputContent<'_>| matches!(piece, InputContent::Image(_));
        let is_audio = |piece: &InputContent<'_>| matches!(piece, InputContent::Audio(..));
        let (one, all) = if others.iter().all(is_image) {
            ("picture", "Pictures")
        } else if others.iter().all(is_audio) {
            ("recording", "Recordings")
        } else {
            ("file", "Files")
        };
        let mut text = join_texts(texts);
        if text.is_empty() {
            text = match others.is_empty() {
                true => Cow::Borrowed("(no output)"),
                false => Cow::Owned(format!("(a {one}: see the next message)")),
            };
        }
        if !self.quirks.takes_tools {
            let text = format!("Result of the call {id}:\n{text}");
            self.pending.push(InputContent::Text(Cow::Owned(text)));
            self.pending.extend(others);
            return;
        }
        if !others.is_empty() {
            let lead = format!("{all} that {id} gave:");
            self.pending.push(InputContent::Text(Cow::Owned(lead)));
            self.pending.extend(others);
        }
        self.messages.push(ChatMessage::Tool {
            tool_call_id: id,
            content: text_content(text, self.quirks.cache_marks),
        });
    }
}

impl<'a> AssistantMessage<'a> {
    fn set_reasoning(&mut self, field: ReasoningField, reasoning: Option<Cow<'a, str>>) {
        match field {
            ReasoningField::ReasoningContent => self.reasoning_content = reasoning,
            ReasoningField::Reasoning => self.reasoning = reasoning,
            ReasoningField::ReasoningText => self.reasoning_text = reasoning,
            ReasoningField::ThinkingParts => {
                let Some(text) = reasoning else {
                    return;
                };
                let thinking = [ThinkingText { text }];
                let mut parts = vec![ChatPartKind::Thinking { thinking }.into()];
                match self.content.take() {
                    Some(ChatContent::Text(text)) => parts.push(ChatPartKind::Text { text }.into()),
                    Some(ChatContent::Parts(others)) => parts.extend(others),
                    None => {}
                }
                self.content = Some(ChatContent::Parts(parts));
            }
        }
    }
}

impl<'a> From<ChatPartKind<'a>> for ChatPart<'a> {
    fn from(kind: ChatPartKind<'a>) -> Self {
        Self {
            kind,
            cache_control: None,
        }
    }
}

/// Marks the system prompt and the last two messages of the user and of tools as ends of cached prefixes: the last call
/// wrote the cache up to the first of those two. Claude accepts at most four marks.
fn mark_cache_breakpoints(messages: &mut [ChatMessage<'_>]) {
    let mut of_user = 0;
    for message in messages.iter_mut().rev() {
        let content = match message {
            ChatMessage::System { content } => content,
            ChatMessage::User { content } | ChatMessage::Tool { content, .. } if of_user < 2 => {
                of_user += 1;
                content
            }
            ChatMessage::User { .. } | ChatMessage::Tool { .. } | ChatMessage::Assistant(_) => {
                continue;
            }
        };
        if let ChatContent::Parts(parts) = content
            && let Some(last) = parts.last_mut()
        {
            last.cache_control = Some(ChatCacheControl::Ephemeral);
        }
    }
}

/// Returns text as content. `as_parts` is true if a mark may be put on it: the form must not change with the mark.
fn text_content(text: Cow<'_, str>, as_parts: bool) -> ChatContent<'_> {
    match as_parts {
        true => ChatContent::Parts(vec![ChatPartKind::Text { text }.into()]),
        false => ChatContent::Text(text),
    }
}

fn user_content(parts: Vec<InputContent<'_>>, as_parts: bool) -> ChatContent<'_> {
    if parts.iter().all(is_text) {
        return text_content(join_texts(parts), as_parts);
    }
    let part = |piece| {
        ChatPart::from(match piece {
            InputContent::Text(text) => ChatPartKind::Text { text },
            InputContent::Image(image) => ChatPartKind::ImageUrl {
                image_url: ImageUrl {
                    url: data_url(&image.mime_type, &image.base64),
                },
            },
            InputContent::Audio(format, audio) => ChatPartKind::InputAudio {
                input_audio: input_audio(format, audio),
            },
            InputContent::Document(document) => ChatPartKind::File {
                file: FilePart {
                    filename: &document.name,
                    file_data: data_url(&document.mime_type, &document.base64),
                },
            },
        })
    };
    ChatContent::Parts(parts.into_iter().map(part).collect())
}

fn is_text(piece: &InputContent<'_>) -> bool {
    match piece {
        InputContent::Text(_) => true,
        InputContent::Image(_) | InputContent::Audio(..) | InputContent::Document(_) => false,
    }
}

/// Joins texts with blank lines.
fn join_texts(parts: Vec<InputContent<'_>>) -> Cow<'_, str> {
    let mut all = None;
    for piece in parts {
        match piece {
            InputContent::Text(text) => append_paragraph(&mut all, text),
            InputContent::Image(_) | InputContent::Audio(..) | InputContent::Document(_) => {}
        }
    }
    all.unwrap_or_default()
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

fn data_url(mime_type: &str, base64: &str) -> String {
    format!("data:{mime_type};base64,{base64}")
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

fn chat_tool_call<'a>(call: &'a ToolCall, ids: &CallIdMap<'a>) -> ChatToolCall<'a> {
    ChatToolCall {
        id: ids.get(&call.call_id),
        r#type: "function",
        function: ChatFunctionCall {
            name: accepted_name(&call.name, &[]),
            arguments: args_as_object(&call.args).to_string(),
        },
    }
}

/// Returns a call as text, for a host without tools.
fn call_as_text(call: &ToolCall) -> Cow<'_, str> {
    let ToolCall {
        call_id,
        name,
        args,
        ..
    } = call;
    Cow::Owned(format!("(Call {call_id} of the tool {name} with {args})"))
}
