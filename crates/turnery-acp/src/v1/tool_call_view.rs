//! Encodes parts of a tool call for v1. Live calls, replayed calls and permission requests share the encoding.

use crate::view::code_fence::fence_output;
use agent_client_protocol_schema::v1::{
    AudioContent, ContentBlock, Diff, ImageContent, Terminal, TextContent, ToolCallContent,
    ToolCallLocation, ToolKind,
};
use turnery_engine::{Artifact, CallKind, Content, Location};

/// Encodes the kind of a call.
pub(crate) fn encode_kind(kind: CallKind) -> ToolKind {
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

/// Encodes the whole list of locations (TOOL-5, TOOL-7).
pub(crate) fn encode_locations(locations: &[Location]) -> Vec<ToolCallLocation> {
    locations
        .iter()
        .map(|place| ToolCallLocation::new(place.path.clone()).line(place.line))
        .collect()
}

/// Encodes artifacts, diffs first: many clients show only the first item.
pub(crate) fn encode_artifacts(artifacts: &[Artifact]) -> Vec<ToolCallContent> {
    let is_diff = |artifact: &&Artifact| matches!(artifact, Artifact::Diff { .. });
    artifacts
        .iter()
        .filter(is_diff)
        .chain(artifacts.iter().filter(|artifact| !is_diff(artifact)))
        .filter_map(encode_artifact)
        .collect()
}

fn encode_artifact(artifact: &Artifact) -> Option<ToolCallContent> {
    match artifact {
        Artifact::Content(content) => encode_block(content).map(Into::into),
        Artifact::Diff { path, old, new, .. } => Some(ToolCallContent::Diff(
            Diff::new(path.clone(), new.clone()).old_text(old.clone()),
        )),
        Artifact::Terminal { terminal_id } => Some(ToolCallContent::Terminal(Terminal::new(
            terminal_id.clone(),
        ))),
    }
}

/// Encodes a result for the user. Output of commands is fenced, so that it is not rendered as Markdown.
pub(crate) fn encode_result(content: &[Content], kind: CallKind) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|item| match (item, kind) {
            (Content::Text { text }, CallKind::Execute) => Some(text_block(&fence_output(text))),
            (item, _) => encode_block(item),
        })
        .map(Into::into)
        .collect()
}

/// Returns a block of plain text.
pub(crate) fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// Encodes content as a block; `None` if it is not for the user.
pub(crate) fn encode_block(content: &Content) -> Option<ContentBlock> {
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
