//! How loops and turns continue each other: their kinds, and the frames that a session consists of.

use crate::{FrameId, LoopId};
use serde::{Deserialize, Serialize};

/// How a loop continues from its parent (LOOP-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContinuationKind {
    /// New prompt.
    Initial,
    /// Continuation without a new prompt.
    Default,
    /// Retry of the parent's prompt.
    Rerun,
    /// New branch.
    Branch,
    /// Standalone compaction.
    Compaction,
}

/// Cause of a turn (TURN-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    /// Message of the user.
    User,
    /// Request of a parent agent.
    SubAgent,
    /// Tool results, a steering message, or a continued loop.
    Continuation,
    /// First turn of a branch.
    Branch,
}

/// Separate context inside a session: requests omit everything before its first loop (LASH-12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Frame id.
    pub frame_id: FrameId,
    /// Preceding frame; `None` is the first frame of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_frame_id: Option<FrameId>,
    /// Loop whose outcome opened the frame.
    pub opened_by: LoopId,
    /// Task of the frame.
    pub task: String,
}
