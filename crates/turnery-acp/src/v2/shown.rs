//! Shown: how a call looks in v2. The same shapes for live calls, replayed calls and questions.

use super::diff;
use crate::shown::fenced;
use agent_client_protocol_schema::v2::{
    AudioContent, ContentBlock, ImageContent, TextContent, ToolCallContent, ToolCallLocation,
    ToolKind,
};
use turnery_engine::{Artifact, CallKind, Content, Location};

/// The wire's word for a sort of call.
pub(super) fn kind(kind: CallKind) -> ToolKind {
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

/// Places, as a whole list.
pub(super) fn locations(locations: &[Location]) -> Vec<ToolCallLocation> {
    locations
        .iter()
        .map(|place| ToolCallLocation::new(place.path.clone()).line(place.line))
        .collect()
}

/// What a call has to show, diffs first. Terminals of the client do not exist in v2; ours are shown
/// by [`super::terminal`].
pub(super) fn artifacts(artifacts: &[Artifact]) -> Vec<ToolCallContent> {
    let diffs = artifacts.iter().filter_map(|artifact| match artifact {
        Artifact::Diff {
            path,
            old,
            new,
            from_line,
        } => Some(diff::to_wire(path, old.as_deref(), new, from_line.is_some()).into()),
        Artifact::Content(_) | Artifact::Terminal { .. } => None,
    });
    let others = artifacts.iter().filter_map(|artifact| match artifact {
        Artifact::Content(content) => block(content).map(Into::into),
        Artifact::Diff { .. } | Artifact::Terminal { .. } => None,
    });
    diffs.chain(others).collect()
}

/// A result, for a person. What a command printed is fenced, so that it is not read as Markdown.
pub(super) fn result(content: &[Content], sort: CallKind) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|item| match (item, sort) {
            (Content::Text { text }, CallKind::Execute) => Some(text_block(fenced(text))),
            (item, _) => block(item),
        })
        .map(Into::into)
        .collect()
}

/// A block of plain text.
pub(super) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// A piece of a message as a block; `None` for what is not for people.
pub(super) fn block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } => Some(text_block(text)),
        Content::Image(image) => Some(ContentBlock::Image(ImageContent::new(
            image.base64.to_string(),
            image.mime_type.as_str(),
        ))),
        Content::Audio(audio) => Some(ContentBlock::Audio(AudioContent::new(
            audio.base64.to_string(),
            audio.mime_type.as_str(),
        ))),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
    }
}
