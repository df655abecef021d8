//! Converts the conversation to a form common to all APIs.
//!
//! Guarantees: no two adjacent items have the same kind, each call is directly followed by exactly one result,
//! results are in call order, and no item is empty. The content of a result may be empty.

use crate::ModelInfo;
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use turnery_engine::{AudioData, AudioFormat, CallId, Content, ImageData, LlmMessage, Message};

/// Result of a call whose real result was never stored.
const MISSING_RESULT: &str = "No result: the call was cut short.";

/// Content of one role.
#[derive(Debug)]
pub(crate) enum HistoryItem<'a> {
    User(Vec<InputContent<'a>>),
    /// Without reasoning and opaque blocks of other providers, which are meaningless to this one.
    Assistant(Vec<&'a Content>),
    /// Results, directly after the assistant message with the calls.
    Results(Vec<CallResult<'a>>),
}

/// Content from the user, the engine or a tool.
#[derive(Debug)]
pub(crate) enum InputContent<'a> {
    Text(Cow<'a, str>),
    Image(&'a ImageData),
    Audio(AudioFormat, &'a AudioData),
}

/// Result of one call.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) call_id: &'a CallId,
    pub(crate) content: Vec<InputContent<'a>>,
    pub(crate) is_error: bool,
}

/// Returns the conversation for this model.
pub(crate) fn build_history<'a>(
    messages: &'a [Arc<LlmMessage>],
    info: &ModelInfo,
) -> Vec<HistoryItem<'a>> {
    let provider = info.name.provider.as_str();
    let convert = |content| input_content(content, info);
    let results = results_by_call(messages);
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        match &message.message {
            Message::System { text } => {
                push_user(&mut turns, vec![InputContent::Text(wrap_notice(text))])
            }
            Message::User { content } => push_user(&mut turns, convert(content)),
            Message::Assistant {
                content,
                provider: author,
                ..
            } => {
                let kept = |item: &&Content| is_sent_back(item, author, provider);
                push_assistant(&mut turns, content.iter().filter(kept).collect());
                let answers: Vec<CallResult<'_>> = message
                    .message
                    .calls()
                    .map(|call| call_result(&call.call_id, &results, convert))
                    .collect();
                if !answers.is_empty() {
                    turns.push(HistoryItem::Results(answers));
                }
            }
            Message::ToolResult { .. } => {}
        }
    }
    turns
}

/// Returns the first result of each call.
fn results_by_call(messages: &[Arc<LlmMessage>]) -> HashMap<&CallId, (&[Content], bool)> {
    let mut results = HashMap::new();
    for message in messages {
        if let Message::ToolResult {
            call_id,
            content,
            is_error,
            ..
        } = &message.message
        {
            results
                .entry(call_id)
                .or_insert((content.as_slice(), *is_error));
        }
    }
    results
}

fn call_result<'a>(
    call_id: &'a CallId,
    results: &HashMap<&'a CallId, (&'a [Content], bool)>,
    convert: impl Fn(&'a [Content]) -> Vec<InputContent<'a>>,
) -> CallResult<'a> {
    match results.get(call_id) {
        Some((content, is_error)) => CallResult {
            call_id,
            content: convert(content),
            is_error: *is_error,
        },
        None => CallResult {
            call_id,
            content: vec![InputContent::Text(Cow::Borrowed(MISSING_RESULT))],
            is_error: true,
        },
    }
}

/// Wraps a notice of the engine as user text: many servers reject system messages within a conversation.
fn wrap_notice(text: &str) -> Cow<'_, str> {
    Cow::Owned(format!("<system-notice>\n{text}\n</system-notice>"))
}

fn input_content<'a>(content: &'a [Content], info: &ModelInfo) -> Vec<InputContent<'a>> {
    content
        .iter()
        .filter_map(|item| match item {
            Content::Text { text } if is_blank(text) => None,
            Content::Text { text } => Some(InputContent::Text(Cow::Borrowed(text))),
            Content::Image(image) => Some(InputContent::Image(image)),
            Content::Audio(audio) => Some(match AudioFormat::from_mime_type(&audio.mime_type) {
                Some(format) if info.audio => InputContent::Audio(format, audio),
                Some(_) | None => audio_placeholder(audio),
            }),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
        })
        .collect()
}

/// Replaces a recording for a model that accepts no audio.
pub(crate) fn audio_placeholder<'a>(audio: &AudioData) -> InputContent<'a> {
    InputContent::Text(Cow::Owned(format!(
        "[a recording ({}) is left out here: this model takes none]",
        audio.mime_type
    )))
}

/// Returns true if there is only white space. Stops at the first other character, unlike `trim`.
fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// Returns true if a block of an assistant message by `author` is sent back to `provider`.
fn is_sent_back(item: &Content, author: &str, provider: &str) -> bool {
    match item {
        Content::Text { text } => !is_blank(text),
        Content::ToolCall(_) => true,
        Content::Thinking { .. } => author == provider,
        Content::Opaque {
            provider: author, ..
        } => author == provider,
        Content::Image(_) | Content::Audio(_) => false,
    }
}

fn push_user<'a>(turns: &mut Vec<HistoryItem<'a>>, mut parts: Vec<InputContent<'a>>) {
    if parts.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(HistoryItem::User(so_far)) => so_far.append(&mut parts),
        Some(HistoryItem::Assistant(_) | HistoryItem::Results(_)) | None => {
            turns.push(HistoryItem::User(parts))
        }
    }
}

fn push_assistant<'a>(turns: &mut Vec<HistoryItem<'a>>, mut content: Vec<&'a Content>) {
    if content.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(HistoryItem::Assistant(so_far)) => so_far.append(&mut content),
        Some(HistoryItem::User(_) | HistoryItem::Results(_)) | None => {
            turns.push(HistoryItem::Assistant(content))
        }
    }
}
