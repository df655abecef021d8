//! Shown: how a call looks on the wire. The same shapes for live calls, replayed calls and questions.

use crate::{bounds::RAW_LIMIT, content::fence};
use agent_client_protocol_schema::v1::{
    AudioContent, ContentBlock, Diff, ImageContent, Terminal, TextContent, ToolCallContent,
    ToolCallLocation, ToolKind,
};
use serde_json::Value;
use turnery_engine::{Artifact, CallKind, Content, Location};
use turnery_tools::visible_line;

/// The wire's word for a sort of call.
pub(crate) fn kind(kind: CallKind) -> ToolKind {
    match kind {
        CallKind::Read => ToolKind::Read,
        CallKind::Edit => ToolKind::Edit,
        CallKind::Delete => ToolKind::Delete,
        CallKind::Move => ToolKind::Move,
        CallKind::Search => ToolKind::Search,
        CallKind::Execute => ToolKind::Execute,
        CallKind::Think => ToolKind::Think,
        CallKind::Fetch => ToolKind::Fetch,
        CallKind::Other => ToolKind::Other,
    }
}

/// What a call is called: by its tool if nothing better is known.
pub(crate) fn title(title: &str, tool: &str) -> String {
    let title = if title.is_empty() { tool } else { title };
    visible_line(title).into_owned()
}

/// Places, as a whole list (TOOL-5, TOOL-7).
pub(crate) fn locations(locations: &[Location]) -> Vec<ToolCallLocation> {
    locations
        .iter()
        .map(|place| ToolCallLocation::new(place.path.clone()).line(place.line))
        .collect()
}

/// What a call has to show, diffs first: many clients look at the first item only.
pub(crate) fn artifacts(artifacts: &[Artifact]) -> Vec<ToolCallContent> {
    let is_diff = |artifact: &&Artifact| matches!(artifact, Artifact::Diff { .. });
    artifacts
        .iter()
        .filter(is_diff)
        .chain(artifacts.iter().filter(|artifact| !is_diff(artifact)))
        .filter_map(artifact)
        .collect()
}

fn artifact(artifact: &Artifact) -> Option<ToolCallContent> {
    match artifact {
        Artifact::Content(content) => block(content).map(Into::into),
        Artifact::Diff { path, old, new, .. } => Some(ToolCallContent::Diff(
            Diff::new(path.clone(), new.clone()).old_text(old.clone()),
        )),
        Artifact::Terminal { terminal_id } => Some(ToolCallContent::Terminal(Terminal::new(
            terminal_id.clone(),
        ))),
    }
}

/// A result, for a person. What a command printed is fenced, so that it is not read as Markdown.
pub(crate) fn result(content: &[Content], sort: CallKind) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|item| match (item, sort) {
            (Content::Text { text }, CallKind::Execute) => Some(text_block(&fenced(text))),
            (item, _) => block(item),
        })
        .map(Into::into)
        .collect()
}

/// Output of a command as a Markdown fence.
pub(crate) fn fenced(text: &str) -> String {
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}console\n{text}{end}{fence}")
}

/// A block of plain text.
pub(crate) fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// A piece of a message as a block; `None` for what is not for people.
pub(crate) fn block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } => Some(text_block(text)),
        Content::Image(image) => Some(ContentBlock::Image(ImageContent::new(
            image.base64.to_string(),
            image.mime_type.clone(),
        ))),
        Content::Audio(audio) => Some(ContentBlock::Audio(AudioContent::new(
            audio.base64.to_string(),
            audio.mime_type.clone(),
        ))),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
    }
}

/// Arguments or a result for the curious, unless it would make a huge line (TR-9).
pub(crate) fn raw(value: &Value) -> Option<Value> {
    (size(value) <= RAW_LIMIT).then(|| value.clone())
}

/// About how many bytes a value has as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(k, v)| k.len() + 4 + size(v)).sum(),
    }
}
