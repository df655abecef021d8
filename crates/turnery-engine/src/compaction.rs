//! Compaction: what stands for older messages once history outgrows the context window. History itself never changes.

mod plan;
mod shorten;
mod size;

pub use plan::{CompactionSettings, Plan, plan};
pub use shorten::ends;
pub use size::{ContextSize, content_tokens, text_tokens};

use crate::{LlmMessage, MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An overlay over all messages of the chain up to and including `through` (LOOP-46, UP-11): the context
/// is `keep_first`, then `keep_compacted`, then `keep_recent`, then all that came after `through`.
/// The newest block of a chain stands alone; older ones are inside its summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionBlock {
    /// Messages from the beginning, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_first: Vec<MessageId>,
    /// The summary of what lies between.
    pub keep_compacted: Vec<Arc<LlmMessage>>,
    /// The latest messages, in order, tool output perhaps shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_recent: Vec<Kept>,
    /// The last message that the block stands for.
    pub through: MessageId,
    /// When.
    pub created_at: Timestamp,
}

/// A message that a block keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// Which.
    pub message_id: MessageId,
    /// Its shortened form, if it is not kept as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Arc<LlmMessage>>,
}
