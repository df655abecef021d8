//! Compaction: replaces older messages in the model's context with a summary. Stored history is unchanged.

mod context_size;
mod plan;
mod shorten;

pub use context_size::{ContextSize, estimate_content_tokens, estimate_text_tokens};
pub use plan::{CompactionPlan, CompactionSettings, plan_compaction};
pub use shorten::truncate_middle;

use crate::{LlmMessage, MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Replacement for all messages of the chain up to and including `through` (LOOP-46, UP-11). The context
/// consists of `keep_first`, `keep_compacted`, `keep_recent`, and all messages after `through`.
/// Only the newest block of a chain applies; its summary includes older ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionBlock {
    /// First messages of the conversation, kept unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_first: Vec<MessageId>,
    /// Summary of the messages between `keep_first` and `keep_recent`; never empty in a valid block.
    pub keep_compacted: Vec<Arc<LlmMessage>>,
    /// Latest messages, in order, possibly with shortened tool output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_recent: Vec<RetainedMessage>,
    /// Last message that the block replaces.
    pub through: MessageId,
    /// Creation time.
    pub created_at: Timestamp,
}

/// Message kept by a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetainedMessage {
    /// Message id.
    pub message_id: MessageId,
    /// Shortened form; `None` if the message is kept unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Arc<LlmMessage>>,
}
