//! History: the conversation as every API wants it, before it is written down in its own words.
//!
//! What must hold of the result: roles alternate, each call is followed at once by exactly one
//! result, results come in call order, and nothing is empty.

use crate::ModelInfo;
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use turnery_engine::{AudioData, AudioFormat, CallId, Content, ImageData, LlmMessage, Message};

/// What a call is said to have given when its result was never kept.
const NO_RESULT: &str = "No result: the call was cut short.";

/// One side's contribution.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    User(Vec<Said<'a>>),
    /// Reasoning and opaque blocks of other providers are left out: they mean nothing to this one.
    Assistant(Vec<&'a Content>),
    /// Right after the assistant that made the calls.
    Results(Vec<Answer<'a>>),
}

/// A piece of what a person, the program or a tool says.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    Text(Cow<'a, str>),
    Image(&'a ImageData),
    Audio(AudioFormat, &'a AudioData),
}

/// The result of one call.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) call_id: &'a CallId,
    pub(crate) said: Vec<Said<'a>>,
    pub(crate) is_error: bool,
}

/// The conversation, for this model.
pub(crate) fn turns<'a>(messages: &'a [Arc<LlmMessage>], info: &ModelInfo) -> Vec<Turn<'a>> {
    let provider = info.name.provider.as_str();
    let said = |content| said(content, info);
    let results = results(messages);
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        match &message.message {
            Message::System { text } => user(&mut turns, vec![Said::Text(notice(text))]),
            Message::User { content } => user(&mut turns, said(content)),
            Message::Assistant {
                content,
                provider: author,
                ..
            } => {
                let kept = |item: &&Content| is_kept(item, author, provider);
                assistant(&mut turns, content.iter().filter(kept).collect());
                let answers: Vec<Answer<'_>> = message
                    .message
                    .calls()
                    .map(|call| answer(&call.call_id, &results, said))
                    .collect();
                if !answers.is_empty() {
                    turns.push(Turn::Results(answers));
                }
            }
            Message::ToolResult { .. } => {}
        }
    }
    turns
}

/// The first result of each call.
fn results(messages: &[Arc<LlmMessage>]) -> HashMap<&CallId, (&[Content], bool)> {
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

fn answer<'a>(
    call_id: &'a CallId,
    results: &HashMap<&'a CallId, (&'a [Content], bool)>,
    said: impl Fn(&'a [Content]) -> Vec<Said<'a>>,
) -> Answer<'a> {
    match results.get(call_id) {
        Some((content, is_error)) => Answer {
            call_id,
            said: said(content),
            is_error: *is_error,
        },
        None => Answer {
            call_id,
            said: vec![Said::Text(Cow::Borrowed(NO_RESULT))],
            is_error: true,
        },
    }
}

/// A notice of the engine: mid-way system messages are refused by many servers, so it goes as the
/// user's text, and says what it is.
fn notice(text: &str) -> Cow<'_, str> {
    Cow::Owned(format!("<system-notice>\n{text}\n</system-notice>"))
}

fn said<'a>(content: &'a [Content], info: &ModelInfo) -> Vec<Said<'a>> {
    content
        .iter()
        .filter_map(|item| match item {
            Content::Text { text } if is_blank(text) => None,
            Content::Text { text } => Some(Said::Text(Cow::Borrowed(text))),
            Content::Image(image) => Some(Said::Image(image)),
            Content::Audio(audio) => Some(match AudioFormat::of(&audio.mime_type) {
                Some(format) if info.audio => Said::Audio(format, audio),
                Some(_) | None => unheard(audio),
            }),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
        })
        .collect()
}

/// Stands for a recording in a conversation that goes on with a model that takes none.
pub(crate) fn unheard<'a>(audio: &AudioData) -> Said<'a> {
    Said::Text(Cow::Owned(format!(
        "[a recording ({}) is left out here: this model takes none]",
        audio.mime_type
    )))
}

/// Returns true if there is only white space. `trim` would look at both ends of a text.
fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// Returns true if a block of an assistant's message is sent back to `provider`; `author` wrote the message.
fn is_kept(item: &Content, author: &str, provider: &str) -> bool {
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

fn user<'a>(turns: &mut Vec<Turn<'a>>, mut said: Vec<Said<'a>>) {
    if said.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(Turn::User(so_far)) => so_far.append(&mut said),
        Some(Turn::Assistant(_) | Turn::Results(_)) | None => turns.push(Turn::User(said)),
    }
}

fn assistant<'a>(turns: &mut Vec<Turn<'a>>, mut content: Vec<&'a Content>) {
    if content.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(Turn::Assistant(so_far)) => so_far.append(&mut content),
        Some(Turn::User(_) | Turn::Results(_)) | None => turns.push(Turn::Assistant(content)),
    }
}
