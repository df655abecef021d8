//! Encodes the artifacts of a tool call.

use crate::v1::shared::encode_block;
use agent_client_protocol_schema::v1::{Diff, Terminal, ToolCallContent};
use turnery_engine::Artifact;

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
