//! Event: what has happened. One stream in one order; records, activities and the wire are projections of it.

use crate::{
    CallDetail, CallId, ChildUsage, CompactionBlock, ConfigSnapshot, ContextSize, ContinuationKind,
    Detail, Disposition, Frame, FrameId, LlmMessage, LoopId, MessageId, ModelFault, Outcome,
    PlanEntry, PromptId, SessionId, Timestamp, ToolCall, ToolEnvelope, TurnTrigger, Usage, Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// An event with its place in the stream (engine.md, section 6.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The session.
    pub session_id: SessionId,
    /// The loop.
    pub loop_id: LoopId,
    /// Zero-based in the loop; taken before any filter, so a gap marks what was left out (LOOP-80).
    pub seq: u64,
    /// The turn, for what lies in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_index: Option<u32>,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A prompt is about to be tried under several configurations. Each of the loops' streams begins
    /// with this: until its own `LoopStart` it is pending (LOOP-50).
    ParallelStart {
        /// The agent that runs them.
        agent_id: String,
        /// All of them, in the order of their configurations (LOOP-72).
        loop_ids: Vec<LoopId>,
    },
    /// A loop began.
    LoopStart {
        /// The agent that runs it.
        agent_id: String,
        /// The host request that it serves.
        prompt_id: PromptId,
        /// The loop before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_loop_id: Option<LoopId>,
        /// How it follows from that.
        continuation_kind: ContinuationKind,
        /// The model's identity, without secrets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Box<ConfigSnapshot>>,
        /// Tells a rerun or a branch from others of the same parent: its time, RFC 3339 (UP-16).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Whatever the caller wants to find again, unchanged (LOOP-28).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// The frame that it runs in; none is the session's first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame_id: Option<FrameId>,
        /// That frame, if this loop is its first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Box<Frame>>,
    },
    /// The input was refused; no model was called.
    InputRejected {
        /// Why.
        reason: String,
    },
    /// A turn began.
    TurnStart {
        /// What caused it.
        trigger: TurnTrigger,
    },
    /// History outgrew the context window and is being summarised (UP-10).
    CompactionStarted {
        /// What the next request would hold.
        before: ContextSize,
    },
    /// The summary is there, or is not to be had; history itself is unchanged (LOOP-48).
    CompactionEnded {
        /// What stands for the older messages from now on; none if all stays as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block: Option<CompactionBlock>,
        /// What the next request holds now.
        after: ContextSize,
        /// Why there is no block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// Of the call that made the summary, also of one that came to nothing: in no turn's usage (I10).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A call of the model failed before anything of it was shown, and is tried again (UP-8, R9).
    ModelRetried {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How.
        fault: ModelFault,
        /// How long until the next one. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while; the call goes on. Comes after the first half minute,
    /// then each time the silence has doubled.
    ModelSilent {
        /// Length of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True when the connection shows signs of life (pings), false when nothing came at all.
        is_connected: bool,
    },
    /// Something that a person should know and that changes nothing: a failed hook, a broken sink.
    Issue {
        /// The sentence.
        text: String,
    },
    /// A message began.
    MessageStart {
        /// Its id.
        message_id: MessageId,
    },
    /// A live fragment of the assistant's message.
    Delta {
        /// The message that it belongs to.
        message_id: MessageId,
        /// The fragment.
        delta: StreamDelta,
    },
    /// A message is settled.
    MessageEnd {
        /// The whole message, shared with history.
        message: Arc<LlmMessage>,
    },
    /// Exactly one per turn (I4).
    UsageReported {
        /// Of this turn; `None` when the provider did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Of the loop so far.
        cumulative: Usage,
    },
    /// The model asked for a tool; all calls are announced before any runs (ACP-22).
    ToolCallRequested {
        /// The call.
        call: ToolCall,
        /// How to show it.
        detail: CallDetail,
    },
    /// A person is being asked whether a call may run.
    PermissionRequested {
        /// The call.
        call_id: CallId,
        /// How to show it, by now perhaps with a diff.
        detail: CallDetail,
    },
    /// The question is settled.
    PermissionResolved {
        /// The call.
        call_id: CallId,
        /// How.
        verdict: Verdict,
    },
    /// A call's bracket opens (R2: once per call, whatever becomes of it).
    ToolExecutionStart {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool_name: String,
        /// True when it really runs; false when the bracket only says that it did not.
        runs: bool,
    },
    /// The running call has something to show: the whole of it, each time.
    ToolExecutionUpdate {
        /// The call.
        call_id: CallId,
        /// How to show it now.
        detail: CallDetail,
    },
    /// A running call appended text to what it shows.
    ToolExecutionOutput {
        /// The call.
        call_id: CallId,
        /// The text since the last one.
        text: String,
    },
    /// A running call says how far it is (TURN-46).
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// The sentence.
        text: String,
    },
    /// A child session, at work for a running call, spent tokens (LASH-66).
    ChildUsageReported {
        /// The call that it works for.
        call_id: CallId,
        /// What it spent.
        child: ChildUsage,
    },
    /// A call's bracket closes.
    ToolExecutionEnd {
        /// The call.
        call_id: CallId,
        /// The tool's name (LASH-62: enough to draw the row alone).
        tool_name: String,
        /// What came of it.
        envelope: ToolEnvelope,
        /// How it ended.
        disposition: Disposition,
        /// The loop that it ran in a child session (TURN-45).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_loop_id: Option<LoopId>,
    },
    /// The model submitted the value that ends the loop (LASH-63).
    FinalValue {
        /// The value.
        value: Value,
    },
    /// A tool declared a value final (LASH-64).
    ToolValue {
        /// The tool.
        tool_name: String,
        /// The value.
        value: Value,
    },
    /// The model changed its plan: the whole plan (PLAN-2).
    PlanUpdated {
        /// All entries.
        entries: Vec<PlanEntry>,
    },
    /// A turn ended, with everything in it.
    TurnEnd {
        /// Its usage (I2).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// The tool-result messages, in call order (TURN-49).
        tool_results: Vec<MessageId>,
    },
    /// The loop ended. Published only after its commit (R4).
    LoopEnd {
        /// Why.
        outcome: Outcome,
        /// What is known beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<Detail>,
        /// Of all its turns (I3).
        usage: Usage,
        /// The refusal, if its input was refused (LOOP-27).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejection: Option<String>,
    },
    /// One of the loops of a group was chosen, and all of them are stored. Each of their streams ends
    /// with this; it is published once, after all their ends (R4).
    ParallelEnd {
        /// The one that was chosen (LOOP-73).
        winner: LoopId,
        /// What a judge spent; zero without one (LOOP-76).
        evaluation_usage: Usage,
        /// `provider/model` of the judge, if one was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judge: Option<String>,
    },
}

impl Event {
    /// Events of one logical row share this (R8): a call's id, or one id per content block of a message.
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
    /// True for what is shown while it happens and is known later without it: what a message was to
    /// become, and what a call printed.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        matches!(self, Self::Delta { .. } | Self::ToolExecutionOutput { .. })
    }

    /// The names of the streaming ones, and of those that mark a beginning or an end whose content
    /// other events have: a conversation that is shown again goes without.
    pub const PASSING: &[&str] = &[
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

    /// True for those of [`Self::PASSING`].
    #[must_use]
    pub fn is_passing(&self) -> bool {
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

/// A live fragment (TURN-52 to 54).
pub type StreamDelta = crate::ModelDelta;

impl StreamDelta {
    /// The content block that it belongs to.
    #[must_use]
    pub fn block(&self) -> u32 {
        match self {
            Self::Text { block, .. }
            | Self::Thinking { block, .. }
            | Self::ToolCallArgs { block, .. } => *block,
        }
    }
}
