//! Encodes the artifacts of a tool call.

use super::{diff, shared::encode_block};
use agent_client_protocol_schema::v2::ToolCallContent;
use turnery_engine::Artifact;

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
