//! Record: what is kept of a loop. Built by the recorder from events, and by nothing else.

use crate::{
    CallId, CompactionBlock, Detail, Event, FrameId, LlmMessage, LoopId, Message, MessageId,
    ModelFault, Outcome, PromptId, SessionId, Timestamp, TurnId, Usage, title,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One engine execution: the commit unit (LOOP-1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The loop of another session that this is a copy of; what it spent was spent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<LoopId>,
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
    /// Tells a rerun or a branch from others of the same parent (UP-16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// What its caller wants to find again (LOOP-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The frame that it ran in; none is the session's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<FrameId>,
    /// That frame, if this loop is its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// Of all its turns (LOOP-45).
    pub usage: Usage,
    /// Of child sessions: the latest of each session, source and model (C-17). Not part of `usage`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children_usage: Vec<ChildUsage>,
    /// Loops that its tool calls ran in child sessions (LOOP-65).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_loop_refs: Vec<ChildLoopRef>,
    /// The evaluation that it took part in (LOOP-71).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group: Option<ParallelGroup>,
    /// What stands for the messages up to here in the context of later calls (LOOP-46).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_block: Option<CompactionBlock>,
    /// Of the calls that made summaries, where the provider said so. Not part of `usage` (I10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_usage: Option<Usage>,
    /// Calls of the model that failed and were tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What a person should know of it, beside its outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<String>,
    /// Its turns; empty in records from before turns existed (LOOP-61).
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// Every new message of the loop, in order: the authority for context and replay (LOOP-83).
    pub messages: Vec<Arc<LlmMessage>>,
    /// Its events, as a rule without the streaming ones; gaps in `seq` mark those (LOOP-80, LOOP-81).
    #[serde(default)]
    pub events: Vec<Event>,
    /// False for loops that the next prompt does not see: refused, aborted before anything was said, or
    /// tried and not chosen.
    pub on_chain: bool,
}

impl LoopRecord {
    /// Whether a conversation that leads through it holds its messages: so it is on the chain, and so
    /// it is with an answer that was not chosen, once somebody goes on from it after all (UP-17).
    #[must_use]
    pub fn stands(&self) -> bool {
        let group = self.parallel_group.as_ref();
        let is_loser = group.is_some_and(|group| !group.is_selected);
        let stays = |outcome| crate::recorder::stays(outcome, self.detail.as_ref());
        self.on_chain
            || (is_loser
                && self.status == LoopStatus::Completed
                && self.outcome.as_ref().is_some_and(stays))
    }

    /// A title for its session: the user's first line in its first prompt, shortened. `None` if there is none.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let mut messages = self.messages.iter();
        messages.find_map(|message| match &message.message {
            Message::User { content } => Some(title::of(content)),
            Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        })?
    }

    /// The record of a loop that has just begun: running, empty, and off the chain.
    #[must_use]
    pub fn begun(
        session_id: SessionId,
        loop_id: LoopId,
        agent_id: String,
        started_at: Timestamp,
    ) -> Self {
        Self {
            loop_id,
            session_id,
            agent_id,
            prompt_id: None,
            status: LoopStatus::Running,
            outcome: None,
            detail: None,
            copied_from: None,
            continuation_kind: ContinuationKind::Initial,
            parent_loop_id: None,
            started_at,
            ended_at: None,
            rejection: None,
            config: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
            usage: Usage::default(),
            children_usage: Vec::new(),
            child_loop_refs: Vec::new(),
            parallel_group: None,
            compaction_block: None,
            compaction_usage: None,
            attempts: Vec::new(),
            issues: Vec::new(),
            turns: Vec::new(),
            messages: Vec::new(),
            events: Vec::new(),
            on_chain: false,
        }
    }
}

/// One accepted model call and the tools it asked for (TURN-63).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// A lineage of context inside a session: what came before it is not in the next request (LASH-12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Its id.
    pub frame_id: FrameId,
    /// The frame before it; none is the session's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_frame_id: Option<FrameId>,
    /// The loop whose outcome opened it.
    pub opened_by: LoopId,
    /// What it is to do.
    pub task: String,
}

/// Tokens that a child session spent with one model (LASH-101, UP-19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildUsage {
    /// The child session.
    pub session_id: SessionId,
    /// For what: see [`usage::source`](crate::usage::source).
    pub source: String,
    /// `provider/model`.
    pub model: String,
    /// The child's turn that this is of, from 0 over all its loops.
    pub iteration: u32,
    /// Of that turn; `None` when the provider did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of the child session with this source and model so far.
    pub cumulative: Usage,
}

/// A link to a loop in another session that a tool call ran (LOOP-66 to 69).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildLoopRef {
    /// The call.
    pub tool_call_id: CallId,
    /// Its tool.
    pub tool_name: String,
    /// The loop.
    pub child_loop_id: LoopId,
    /// The session, which is the loop id's first part.
    pub child_session_id: SessionId,
}

/// One prompt under several configurations (LOOP-70 to 77). The same on all its loops but for `is_selected`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelGroup {
    /// All loops, in the order of the configurations.
    pub all_loop_ids: Vec<LoopId>,
    /// The winner.
    pub selected_loop_id: LoopId,
    /// The winner's place among the configurations, from 0.
    pub selected_config_index: u32,
    /// Of the judge model; zero without one.
    pub evaluation_usage: Usage,
    /// `provider/model` of the judge; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// True on the winner's record only.
    pub is_selected: bool,
}

/// A call of the model that failed and was tried again, inside one turn (R9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// The turn.
    pub turn_index: u32,
    /// Its number, from 1.
    pub attempt: u32,
    /// How it failed.
    pub fault: ModelFault,
}
