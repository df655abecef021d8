//! Events of a loop: a single ordered stream from which records, activities and client updates are derived.

use crate::{
    CallDetail, CallId, ChildUsage, CommandJudgement, CompactionBlock, ConfigSnapshot, ContextSize,
    ContinuationKind, Disposition, Frame, FrameId, LlmMessage, LoopId, MessageId, ModelDelta,
    ModelError, Outcome, PlanEntry, PromptId, SessionId, Timestamp, ToolCall, ToolEnvelope,
    TurnTrigger, Usage, Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Event with its position in the stream of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Session id.
    pub session_id: SessionId,
    /// Loop id.
    pub loop_id: LoopId,
    /// Sequence number in the loop, from 0. Assigned before filtering, so a gap marks omitted events
    /// (LOOP-80).
    pub seq: u64,
    /// Turn index; `None` for events outside of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_index: Option<u32>,
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A prompt is about to run under several configurations. First event of each of the loops, which stay
    /// pending until their `LoopStart` (LOOP-50).
    ParallelStart {
        /// Agent that runs the loops.
        agent_id: String,
        /// Ids of all loops, in the order of their configurations (LOOP-72).
        loop_ids: Vec<LoopId>,
    },
    /// A loop started.
    LoopStart {
        /// Agent that runs the loop.
        agent_id: String,
        /// Host request that the loop serves.
        prompt_id: PromptId,
        /// Preceding loop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_loop_id: Option<LoopId>,
        /// How the loop continues from its parent.
        continuation_kind: ContinuationKind,
        /// Model configuration, without secrets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Box<ConfigSnapshot>>,
        /// Distinguishes a rerun or branch from its siblings: its start time in RFC 3339 (UP-16).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Caller-defined data, stored unchanged (LOOP-28).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Frame of the loop; `None` is the first frame of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame_id: Option<FrameId>,
        /// The frame itself, if this loop is the first in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Box<Frame>>,
    },
    /// An input filter rejected the prompt, which ends the loop, or a queued message, which is dropped; the
    /// model does not see the rejected input (C-7).
    InputRejected {
        /// Reason.
        reason: String,
    },
    /// A turn started.
    TurnStart {
        /// Cause of the turn.
        trigger: TurnTrigger,
    },
    /// History is being summarised, because it nears or exceeds the context window or on request (UP-10,
    /// UP-13).
    CompactionStarted {
        /// Size of the next request without compaction.
        before: ContextSize,
    },
    /// Compaction ended, with or without a summary; history itself is unchanged (LOOP-48).
    CompactionEnded {
        /// Replacement for the older messages; `None` if compaction failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block: Option<CompactionBlock>,
        /// Size of the next request now.
        after: ContextSize,
        /// Reason why there is no block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// Usage of the summary call, even if it failed. Not part of any turn's usage (I10).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A model call failed before any output was shown and is retried (UP-8, R9).
    ModelRetried {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Error of the attempt.
        #[serde(rename = "fault")]
        error: ModelError,
        /// Delay before the next attempt. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while; the call continues. Sent after 30 seconds of silence, then
    /// each time the silence has doubled.
    ModelSilent {
        /// Duration of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True if the connection shows signs of life (pings), false if nothing was received.
        is_connected: bool,
    },
    /// Notice for the user that does not affect the loop, for example a failed hook or sink.
    Issue {
        /// Text of the notice.
        text: String,
    },
    /// A message started.
    MessageStart {
        /// Message id.
        message_id: MessageId,
    },
    /// Live fragment of an assistant message.
    Delta {
        /// Message that the fragment belongs to.
        message_id: MessageId,
        /// Fragment.
        delta: ModelDelta,
    },
    /// A message is complete.
    MessageEnd {
        /// The complete message, shared with history.
        message: Arc<LlmMessage>,
    },
    /// Token usage of a turn; sent exactly once per turn (I4).
    UsageReported {
        /// Usage of the turn; `None` if the provider did not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Usage of the loop so far.
        cumulative: Usage,
    },
    /// The model, or a running call, requested a tool call. All calls of a response are announced before any
    /// runs (ACP-22), and so are all calls that a call requests at once.
    ToolCallRequested {
        /// The call.
        call: ToolCall,
        /// How to display the call.
        detail: CallDetail,
    },
    /// The user is being asked whether a call may run.
    PermissionRequested {
        /// The call.
        call_id: CallId,
        /// How to display the call, possibly including a diff.
        detail: CallDetail,
    },
    /// A permission request was resolved.
    PermissionResolved {
        /// The call.
        call_id: CallId,
        /// Decision.
        verdict: Verdict,
    },
    /// A call starts. Sent once per call, even if the tool does not run (R2).
    ToolExecutionStart {
        /// The call.
        call_id: CallId,
        /// Tool name.
        tool_name: String,
        /// True if the tool actually runs; false if the start only pairs with an end event.
        runs: bool,
    },
    /// A running call changed its display. Always the complete detail.
    ToolExecutionUpdate {
        /// The call.
        call_id: CallId,
        /// How to display the call now.
        detail: CallDetail,
    },
    /// A running call printed text.
    ToolExecutionOutput {
        /// The call.
        call_id: CallId,
        /// Text printed since the previous output event.
        text: String,
    },
    /// A running call reported its progress (TURN-46).
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// Progress text.
        text: String,
    },
    /// A child session spent tokens on behalf of a running call (LASH-66).
    ChildUsageReported {
        /// Call that the child session works for.
        call_id: CallId,
        /// Tokens spent.
        child: ChildUsage,
    },
    /// A call ended.
    ToolExecutionEnd {
        /// The call.
        call_id: CallId,
        /// Tool name; sufficient to render the call without earlier events (LASH-62).
        tool_name: String,
        /// Result of the call.
        envelope: ToolEnvelope,
        /// How the call ended.
        disposition: Disposition,
        /// Loop that the call ran in a child session (TURN-45).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_loop_id: Option<LoopId>,
    },
    /// The model submitted the final value of the loop (LASH-63).
    FinalValue {
        /// The value.
        value: Value,
    },
    /// A tool declared a value final (LASH-64).
    ToolValue {
        /// Tool name.
        tool_name: String,
        /// The value.
        value: Value,
    },
    /// The model changed its plan. Always the complete plan (PLAN-2).
    PlanUpdated {
        /// All entries.
        entries: Vec<PlanEntry>,
    },
    /// A turn and all of its calls ended.
    TurnEnd {
        /// Usage of the turn (I2).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Ids of the tool result messages, in call order (TURN-49).
        tool_results: Vec<MessageId>,
    },
    /// The loop ended. Published only after the commit (R4).
    LoopEnd {
        /// Outcome of the loop.
        #[serde(flatten)]
        #[cfg_attr(feature = "schema", schemars(with = "crate::outcome::StoredOutcome"))]
        outcome: Outcome,
        /// Usage of all turns (I3).
        usage: Usage,
        /// Reason if the input was rejected (LOOP-27).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejection: Option<String>,
    },
    /// One loop of a parallel group was selected, and all loops are stored. Last event of each of their
    /// streams; published once, after all their ends (R4).
    ParallelEnd {
        /// Selected loop (LOOP-73).
        winner: LoopId,
        /// Usage of the judge; zero without one (LOOP-76).
        evaluation_usage: Usage,
        /// `provider/model` of the judge, if a model judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judge: Option<String>,
        /// Command that judged, with its results.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Box<CommandJudgement>>,
    },
}

impl Event {
    /// Returns the id shared by the events that a client displays as one row (R8): a call id, or one id per
    /// content block of a message. `None` for other events.
    #[must_use]
    pub fn correlation_id(&self) -> Option<String> {
        match &self.kind {
            EventKind::ToolCallRequested { call, .. } => Some(call.call_id.to_string()),
            EventKind::PermissionRequested { call_id, .. }
            | EventKind::PermissionResolved { call_id, .. }
            | EventKind::ToolExecutionStart { call_id, .. }
            | EventKind::ToolExecutionUpdate { call_id, .. }
            | EventKind::ToolExecutionOutput { call_id, .. }
            | EventKind::ToolProgress { call_id, .. }
            | EventKind::ChildUsageReported { call_id, .. }
            | EventKind::ToolExecutionEnd { call_id, .. } => Some(call_id.to_string()),
            EventKind::Delta { message_id, delta } => {
                Some(format!("{message_id}.{}", delta.block()))
            }
            EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::MessageEnd { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::UsageReported { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => None,
        }
    }
}

impl EventKind {
    /// Returns true for live fragments (message deltas and tool output), which later events make redundant.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        matches!(self, Self::Delta { .. } | Self::ToolExecutionOutput { .. })
    }

    /// Names of the kinds that a replayed conversation omits: streaming events, and start or end markers
    /// whose content is in other events.
    pub const TRANSIENT_KINDS: &[&str] = &[
        "delta",
        "tool_execution_output",
        "message_start",
        "model_silent",
        "permission_resolved",
        "tool_execution_start",
        "tool_progress",
        "turn_end",
        "turn_start",
    ];

    /// Returns true for the kinds in [`Self::TRANSIENT_KINDS`].
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::ToolExecutionOutput { .. }
                | Self::MessageStart { .. }
                | Self::ModelSilent { .. }
                | Self::PermissionResolved { .. }
                | Self::ToolExecutionStart { .. }
                | Self::ToolProgress { .. }
                | Self::TurnEnd { .. }
                | Self::TurnStart { .. }
        )
    }
}

impl ModelDelta {
    /// Returns the index of the content block that the fragment belongs to.
    #[must_use]
    pub fn block(&self) -> u32 {
        match self {
            Self::Text { block, .. }
            | Self::Thinking { block, .. }
            | Self::ToolCallArgs { block, .. } => *block,
        }
    }
}
