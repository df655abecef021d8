//! Converts the conversation to a form common to all APIs.
//!
//! Guarantees: no two adjacent items have the same kind, each call is directly followed by exactly one result,
//! results are in call order, and no item is empty. The content of a result may be empty.

use crate::{ModelInfo, ModelRequest, context_hash::ContextHash};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use turnery_engine::{
    AudioData, AudioFormat, CallId, Content, DocumentData, ImageData, LlmMessage, Message,
    MessageStop,
};

/// Result of a call whose real result was never stored.
const MISSING_RESULT: &str = "No result: the call was cut short.";

/// Content of one role.
#[derive(Debug)]
pub(crate) enum HistoryItem<'a> {
    User(Vec<InputContent<'a>>),
    /// Without reasoning and opaque blocks that the model would reject or misread.
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
    Document(&'a DocumentData),
}

/// Result of one call.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) call_id: &'a CallId,
    pub(crate) content: Vec<InputContent<'a>>,
    pub(crate) is_error: bool,
}

/// Requests in which reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningScope {
    /// To the model that produced it.
    SameModel,
    /// To the model that produced it, after the same system prompt, tools and messages: the provider signs them along.
    SameContext,
}

/// Returns the conversation for this model.
pub(crate) fn build_history<'a>(
    request: &'a ModelRequest,
    info: &ModelInfo,
    scope: ReasoningScope,
) -> Vec<HistoryItem<'a>> {
    let messages = request.messages.as_slice();
    let convert = |content| input_content(content, info);
    let results = results_by_call(messages);
    let mut context = (scope == ReasoningScope::SameContext).then(|| ContextHash::new(request));
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        match &message.message {
            Message::System { text } => {
                push_user(&mut turns, vec![InputContent::Text(wrap_notice(text))])
            }
            Message::User { content } => push_user(&mut turns, convert(content)),
            Message::Assistant {
                content,
                provider,
                model,
                request,
                stop,
                ..
            } => {
                let requested = request.as_ref().map_or(model, |request| &request.model);
                let is_own = *provider == info.name.provider && *requested == info.name.model;
                let answered = request
                    .as_ref()
                    .and_then(|request| request.context.as_ref());
                let fits = || match (&context, answered) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(context), Some(answered)) => context.to_hex() == *answered,
                };
                let has_reasoning = content.iter().any(is_reasoning);
                let keeps_reasoning = has_reasoning && is_whole(*stop) && is_own && fits();
                let kept = |item: &&Content| is_sent_back(item, keeps_reasoning);
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
        if let Some(context) = &mut context {
            context.push(message);
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
            Content::Image(image) => Some(match info.images {
                true => InputContent::Image(image),
                false => image_placeholder(image),
            }),
            Content::Audio(audio) => Some(match AudioFormat::from_mime_type(&audio.mime_type) {
                Some(format) if info.audio => InputContent::Audio(format, audio),
                Some(_) | None => audio_placeholder(audio),
            }),
            Content::Document(document) => Some(match info.documents {
                true => InputContent::Document(document),
                false => document_placeholder(document),
            }),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
        })
        .collect()
}

/// Replaces a recording for a model that accepts no audio.
pub(crate) fn audio_placeholder<'a>(audio: &AudioData) -> InputContent<'a> {
    InputContent::Text(Cow::Owned(format!(
        "[audio ({}) omitted: this model does not accept audio]",
        audio.mime_type
    )))
}

/// Replaces an image for a model that accepts none.
fn image_placeholder<'a>(image: &ImageData) -> InputContent<'a> {
    InputContent::Text(Cow::Owned(format!(
        "[image ({}) omitted: this model does not accept images]",
        image.mime_type
    )))
}

/// Replaces a document for a model that accepts none.
pub(crate) fn document_placeholder<'a>(document: &DocumentData) -> InputContent<'a> {
    InputContent::Text(Cow::Owned(format!(
        "[document {} omitted: this model does not accept documents, but its text can be extracted with a tool]",
        document.name
    )))
}

/// Returns true if there is only white space. Stops at the first other character, unlike `trim`.
fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// Returns false for a response that failed or was cancelled, whose reasoning is not complete.
fn is_whole(stop: MessageStop) -> bool {
    match stop {
        MessageStop::Stop | MessageStop::Length | MessageStop::ToolUse | MessageStop::GuardRail => {
            true
        }
        MessageStop::Error | MessageStop::Aborted => false,
    }
}

fn is_reasoning(item: &Content) -> bool {
    matches!(item, Content::Thinking { .. } | Content::Opaque { .. })
}

/// Returns true if a block of an assistant message is sent back.
fn is_sent_back(item: &Content, keeps_reasoning: bool) -> bool {
    match item {
        Content::Text { text } => !is_blank(text),
        Content::ToolCall(_) => true,
        Content::Thinking { .. } | Content::Opaque { .. } => keeps_reasoning,
        Content::Image(_) | Content::Audio(_) | Content::Document(_) => false,
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
