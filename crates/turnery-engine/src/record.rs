//! Stored records of loops, turns and parallel groups. Only the recorder builds them, from events.

use crate::{
    CallId, ChildUsage, CommandJudgement, CompactionBlock, ConfigSnapshot, ContinuationKind, Event,
    EventKind, Frame, FrameId, LlmMessage, LoopId, Message, MessageId, ModelError, Outcome,
    PromptId, SessionId, Timestamp, TurnId, TurnTrigger, Usage, session_title,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// Record of one engine execution, the unit of a commit (LOOP-1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopRecord {
    /// `{session_id}.{config_segment}.{N}`.
    pub loop_id: LoopId,
    /// Session of the loop.
    pub session_id: SessionId,
    /// Agent that ran the loop (LOOP-14).
    pub agent_id: String,
    /// Host request that the loop served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<PromptId>,
    /// Status of the loop.
    pub status: LoopStatus,
    /// Outcome; absent while the loop runs and after a crash.
    #[serde(flatten, with = "crate::outcome::optional")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "crate::outcome::StoredOptionalOutcome")
    )]
    pub outcome: Option<Outcome>,
    /// Loop of another session that this record is a copy of. Its usage counts in that session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<LoopId>,
    /// How the loop continues from its parent (LOOP-16).
    pub continuation_kind: ContinuationKind,
    /// Preceding loop (LOOP-22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_loop_id: Option<LoopId>,
    /// Start time.
    pub started_at: Timestamp,
    /// End time (LOOP-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Reason if the input was rejected (LOOP-27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// Model configuration (LOOP-29: never a secret).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigSnapshot>,
    /// Distinguishes a rerun or branch from its siblings (UP-16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Caller-defined data (LOOP-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Frame of the loop; `None` is the first frame of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<FrameId>,
    /// The frame itself, if this loop is the first in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// Usage of all turns (LOOP-45).
    pub usage: Usage,
    /// Usage of child sessions: the latest total per session, source and model (C-17). Not part of `usage`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children_usage: Vec<ChildUsage>,
    /// Loops that the tool calls ran in child sessions (LOOP-65).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_loop_refs: Vec<ChildLoopRef>,
    /// Last state of each tool that has one, by tool name. The events lack the states before it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_states: BTreeMap<String, ToolState>,
    /// Parallel evaluation that the loop took part in (LOOP-71).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group: Option<ParallelGroup>,
    /// Replacement for all messages up to this loop in the context of later model calls (LOOP-46).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_block: Option<CompactionBlock>,
    /// Usage of summary calls, if the provider reported it. Not part of `usage` (I10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_usage: Option<Usage>,
    /// Model calls that failed and were retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
    /// Notices for the user, apart from the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<String>,
    /// Turns; empty in records from before turns existed (LOOP-61).
    #[serde(default)]
    pub turns: Vec<TurnRecord>,
    /// All new messages of the loop, in order: the source for context and replay (LOOP-83).
    pub messages: Vec<Arc<LlmMessage>>,
    /// Events, by default without streaming ones, which leave gaps in `seq` (LOOP-80, LOOP-81).
    #[serde(default)]
    pub events: Vec<Event>,
    /// False for loops that the next prompt does not see: rejected, aborted before the first message, or run
    /// as a candidate and not selected.
    pub on_chain: bool,
}

impl LoopRecord {
    /// Returns true if a conversation through this loop includes its messages: the loop is on the chain, or
    /// is a candidate that was not selected but that a later loop continues from (UP-17).
    #[must_use]
    pub fn is_in_conversation(&self) -> bool {
        let group = self.parallel_group.as_ref();
        let is_loser = group.is_some_and(|group| !group.is_selected);
        self.on_chain
            || (is_loser
                && self.status == LoopStatus::Completed
                && self
                    .outcome
                    .as_ref()
                    .is_some_and(Outcome::stays_in_conversation))
    }

    /// Returns a session title: the user's first line in the first prompt, shortened. `None` if there is
    /// none.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let mut messages = self.messages.iter();
        messages.find_map(|message| match &message.message {
            Message::User { content } => Some(session_title::title_from_content(content)),
            Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        })?
    }

    /// Returns the effects that the tool calls of this loop requested (JIDO-76), in the order in which the calls
    /// ended, each with a key that no other effect ever has.
    pub fn requested_effects(&self) -> impl Iterator<Item = RequestedEffect<'_>> {
        let ended = self.events.iter().filter_map(|event| {
            let EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                ..
            } = &event.kind
            else {
                return None;
            };
            Some((call_id, tool_name, &envelope.effects))
        });
        ended.flat_map(move |(call_id, tool_name, effects)| {
            let effects = effects.iter().enumerate();
            effects.map(move |(index, effect)| RequestedEffect {
                key: format!("{}/{call_id}/{index}", self.loop_id),
                tool_name,
                effect,
            })
        })
    }

    /// Creates the record of a loop that has just started: running, empty, and off the chain.
    #[must_use]
    pub fn new_running(
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
            tool_states: BTreeMap::new(),
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

/// Effect that a tool call requested from the host.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedEffect<'a> {
    /// `{loop_id}/{call_id}/{index}`. Unique for ever: a loop id contains its session's id and is never reused
    /// (LOOP-10), and `index` is the position among the effects of the call, from 0.
    pub key: String,
    /// Name of the tool as it was called.
    pub tool_name: &'a str,
    /// The effect, with its `kind`.
    pub effect: &'a Value,
}

/// Record of a turn: one accepted model call and its tool calls (TURN-63).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnRecord {
    /// Turn id.
    pub turn_id: TurnId,
    /// Cause of the turn (TURN-10).
    pub triggered_by: TurnTrigger,
    /// Usage of the accepted response; `None` if the provider did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Ids, in the loop's `messages`, of those added before the model call (C-13).
    pub input_messages: Vec<MessageId>,
    /// Id of the assistant message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_message: Option<MessageId>,
    /// Ids of the tool results, in call order.
    pub tool_results: Vec<MessageId>,
    /// Start time (TURN-13).
    pub started_at: Timestamp,
    /// End time, after the last tool (TURN-14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// Status of a loop (LOOP-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// Announced as part of a parallel group, not started.
    Pending,
    /// Running.
    Running,
    /// Ended with any outcome.
    Completed,
    /// Ended because the input was rejected.
    Rejected,
    /// Never ended, because the process terminated.
    Aborted,
}

/// State of a tool after a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolState {
    /// The call.
    pub call_id: CallId,
    /// The state, as the tool wrote it.
    pub state: Arc<str>,
}

/// Link to a loop that a tool call ran in another session (LOOP-66 to LOOP-69).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildLoopRef {
    /// Call id.
    pub tool_call_id: CallId,
    /// Tool name.
    pub tool_name: String,
    /// Loop that the call ran.
    pub child_loop_id: LoopId,
    /// Session of that loop, the first part of the loop id.
    pub child_session_id: SessionId,
}

/// Parallel group: one prompt under several configurations (LOOP-70 to LOOP-77). Equal in all its records
/// except for `is_selected`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelGroup {
    /// Ids of all loops, in the order of the configurations.
    pub all_loop_ids: Vec<LoopId>,
    /// Selected loop.
    pub selected_loop_id: LoopId,
    /// Index of the selected configuration.
    pub selected_config_index: u32,
    /// Usage of the judge model; zero without one.
    pub evaluation_usage: Usage,
    /// `provider/model` of the judge; absent unless a model judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Command that judged, with its results; absent unless a command judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandJudgement>>,
    /// True in the record of the selected loop only.
    pub is_selected: bool,
}

/// Model call that failed and was retried in the same turn (R9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedAttempt {
    /// Index of the turn.
    pub turn_index: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Error of the attempt.
    #[serde(rename = "fault")]
    pub error: ModelError,
}
