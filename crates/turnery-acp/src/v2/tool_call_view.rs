//! Encodes parts of a tool call for v2. Live calls, replayed calls and permission requests share the encoding.

use super::diff;
use crate::view::code_fence::fence_output;
use agent_client_protocol_schema::v2::{
    AudioContent, ContentBlock, ImageContent, TextContent, ToolCallContent, ToolCallLocation,
    ToolKind,
};
use turnery_engine::{Artifact, CallKind, Content, Location};

/// Encodes the kind of a call.
pub(super) fn encode_kind(kind: CallKind) -> ToolKind {
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

/// Encodes the whole list of locations.
pub(super) fn encode_locations(locations: &[Location]) -> Vec<ToolCallLocation> {
    locations
        .iter()
        .map(|place| ToolCallLocation::new(place.path.clone()).line(place.line))
        .collect()
}

/// Encodes artifacts, diffs first. v2 has no client terminals; [`super::call_terminal`] shows the agent's own.
pub(super) fn encode_artifacts(artifacts: &[Artifact]) -> Vec<ToolCallContent> {
    let diffs = artifacts.iter().filter_map(|artifact| match artifact {
        Artifact::Diff {
            path,
            old,
            new,
            from_line,
        } => Some(diff::encode_diff(path, old.as_deref(), new, from_line.is_some()).into()),
        Artifact::Content(_) | Artifact::Terminal { .. } => None,
    });
    let others = artifacts.iter().filter_map(|artifact| match artifact {
        Artifact::Content(content) => encode_block(content).map(Into::into),
        Artifact::Diff { .. } | Artifact::Terminal { .. } => None,
    });
    diffs.chain(others).collect()
}

/// Encodes a result for the user. Output of commands is fenced, so that it is not rendered as Markdown.
pub(super) fn encode_result(content: &[Content], kind: CallKind) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|item| match (item, kind) {
            (Content::Text { text }, CallKind::Execute) => Some(text_block(fence_output(text))),
            (item, _) => encode_block(item),
        })
        .map(Into::into)
        .collect()
}

/// Returns a block of plain text.
pub(super) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// Encodes content as a block; `None` if it is not for the user.
pub(super) fn encode_block(content: &Content) -> Option<ContentBlock> {
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
