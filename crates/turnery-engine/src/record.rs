//! Record: what is kept of a loop. Built by the recorder from events, and by nothing else.

use crate::{
    Detail, Event, LlmMessage, LoopId, MessageId, Outcome, PromptId, SessionId, Timestamp, TurnId,
    Usage,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One engine execution: the commit unit (LOOP-1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// `{session_id}.{config_segment}.{N}`.
    pub loop_id: LoopId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The agent that ran it (LOOP-14).
    pub agent_id: String,
    /// The host request that it served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<PromptId>,
    /// How its record ended.
    pub status: LoopStatus,
    /// Why it ended; absent while it runs, and after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What is known beside the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// How it follows from its parent (LOOP-16).
    pub continuation_kind: ContinuationKind,
    /// The loop before it (LOOP-22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_loop_id: Option<LoopId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended (LOOP-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why its input was refused (LOOP-27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// The model's identity (LOOP-29: never a secret).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigSnapshot>,
    /// Of all its turns (LOOP-45).
    pub usage: Usage,
    /// Its turns; empty in records from before turns existed (LOOP-61).
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// Every new message of the loop, in order: the authority for context and replay (LOOP-83).
    pub messages: Vec<Arc<LlmMessage>>,
    /// Its events without the streaming ones; gaps in `seq` mark those (LOOP-80).
    #[serde(default)]
    pub events: Vec<Event>,
    /// False for loops that the next prompt must not see: refused, or aborted by a crash.
    pub on_chain: bool,
}

/// One accepted model call and the tools it asked for (TURN-63).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub turn_id: TurnId,
    /// What caused it (TURN-10).
    pub triggered_by: TurnTrigger,
    /// Of its accepted response; `None` when the provider did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Messages injected before the model was called. Ids into the loop's `messages` (C-13).
    pub input_messages: Vec<MessageId>,
    /// The model's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_message: Option<MessageId>,
    /// Tool results, in call order.
    pub tool_results: Vec<MessageId>,
    /// When it began (TURN-13).
    pub started_at: Timestamp,
    /// When it ended, after its last tool (TURN-14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// What caused a turn (TURN-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    /// A person's message.
    User,
    /// A parent agent.
    SubAgent,
    /// A tool round trip, a steering message, or a continued loop.
    Continuation,
    /// The first turn of a branch.
    Branch,
}

/// How a record ended (LOOP-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// Announced by a parallel group, not begun.
    Pending,
    /// Running.
    Running,
    /// Ended, whatever the outcome.
    Completed,
    /// Its input was refused.
    Rejected,
    /// Never ended: the process went away.
    Aborted,
}

/// How a loop follows from the one before it (LOOP-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationKind {
    /// A new prompt.
    Initial,
    /// Goes on without a new prompt.
    Default,
    /// A retry.
    Rerun,
    /// A branch.
    Branch,
    /// A standalone compaction.
    Compaction,
}

/// The model's identity at the time of the loop (LOOP-29 to 43). Holds no key and no closure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigSnapshot {
    /// Model id.
    pub model: String,
    /// Provider name.
    pub provider: String,
    /// Stable identity of the configuration; the middle part of the loop id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_id: Option<String>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// API protocol, for example `anthropic_messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Base URL without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether the model reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Unit: tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Output tokens per response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How much it is to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
}
