//! Changes of what a user is shown.

use super::{CallEnd, CallView, Notice, PromptUsage, SessionCost};
use crate::session::{PromptError, PromptResult};
use turnery_engine::{
    CallDetail, CompactionBlock, ContextSize, ContinuationKind, Event, EventKind, FrameId,
    LlmMessage, LoopId, MessageId, Outcome, PlanEntry, SessionId, Timestamp,
};

/// Change of a [`SessionView`](super::SessionView).
#[derive(Clone, Copy, Debug)]
pub enum ViewChange<'a> {
    /// A loop started. Not sent for stored loops.
    LoopStarted,
    /// The loop that starts continues or branches from an earlier one.
    Lineage(LoopLineage<'a>),
    /// A streamed fragment of a message.
    Text {
        /// Author of the fragment.
        author: ChunkAuthor,
        /// Message that the fragment belongs to.
        message_id: &'a MessageId,
        /// Content block of the message.
        block: u32,
        /// Fragment.
        text: &'a str,
    },
    /// A message is complete.
    Message {
        /// Complete message.
        message: &'a LlmMessage,
        /// How much of the message was shown before.
        state: MessageState,
    },
    /// The value that a loop ends with, rendered as text. Shown once for each loop.
    Value {
        /// Loop that ends with the value.
        loop_id: &'a LoopId,
        /// Text, never empty.
        text: &'a str,
    },
    /// A tool call was requested.
    CallRequested(&'a CallView),
    /// The details of a call changed.
    CallChanged {
        /// Call with its new details.
        call: &'a CallView,
        /// Details before the change.
        before: &'a CallDetail,
    },
    /// A call runs.
    CallStarted(&'a CallView),
    /// A running call printed text.
    CallPrinted {
        /// Call.
        call: &'a CallView,
        /// Text printed since the last change of this kind.
        text: &'a str,
        /// Time of the output.
        at: Timestamp,
    },
    /// A running call has a new progress text.
    CallProgressed(&'a CallView),
    /// A child session works for a call. Shown once for each child session.
    CallDelegated {
        /// Call.
        call: &'a CallView,
        /// Child session.
        child_session: &'a SessionId,
    },
    /// A call ended.
    CallEnded {
        /// Call as it was last shown.
        call: &'a CallView,
        /// End of the call.
        end: CallEnd<'a>,
    },
    /// A stored call in its final state, without client terminals, which no longer exist.
    CallStored {
        /// Call, with its final locations.
        call: &'a CallView,
        /// End of the call; `None` if the call was interrupted.
        end: Option<CallEnd<'a>>,
    },
    /// The user is asked for permission.
    QuestionAsked,
    /// The question was answered or withdrawn.
    QuestionAnswered,
    /// The whole plan.
    Plan {
        /// Session that the plan belongs to.
        session_id: &'a SessionId,
        /// All entries.
        entries: &'a [PlanEntry],
    },
    /// Context usage, cost and token counts.
    Usage(ContextUsage<'a>),
    /// Older messages are being summarised.
    CompactionStarted {
        /// Id of the compaction.
        id: &'a str,
        /// Size of the next request without compaction.
        before: ContextSize,
    },
    /// A compaction ended: with a summary, with the reason of a failure, or with neither.
    CompactionEnded {
        /// Id of the compaction.
        id: &'a str,
        /// Summary.
        block: Option<&'a CompactionBlock>,
        /// Reason of the failure.
        failure: Option<&'a str>,
    },
    /// A notice for the user.
    Notice(Notice<'a>),
    /// A loop ended. Not sent for stored loops.
    LoopEnded(&'a Outcome),
    /// The title or the time of last activity changed.
    SessionInfo {
        /// Title, if it changed.
        title: Option<&'a str>,
        /// Time of last activity.
        updated_at: Timestamp,
    },
    /// A prompt ended.
    PromptEnded(&'a Result<PromptResult, PromptError>),
}

impl<'a> ViewChange<'a> {
    /// Returns the tool call that changed, if the change is about one.
    #[must_use]
    pub fn call(&self) -> Option<&'a CallView> {
        match self {
            Self::CallRequested(call)
            | Self::CallChanged { call, .. }
            | Self::CallStarted(call)
            | Self::CallPrinted { call, .. }
            | Self::CallProgressed(call)
            | Self::CallDelegated { call, .. }
            | Self::CallEnded { call, .. }
            | Self::CallStored { call, .. } => Some(call),
            Self::LoopStarted
            | Self::Lineage(_)
            | Self::Text { .. }
            | Self::Message { .. }
            | Self::Value { .. }
            | Self::QuestionAsked
            | Self::QuestionAnswered
            | Self::Plan { .. }
            | Self::Usage(_)
            | Self::CompactionStarted { .. }
            | Self::CompactionEnded { .. }
            | Self::Notice(_)
            | Self::LoopEnded(_)
            | Self::SessionInfo { .. }
            | Self::PromptEnded(_) => None,
        }
    }
}

/// Author of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkAuthor {
    /// The user.
    User,
    /// The model.
    Agent,
    /// The model, thinking.
    Thought,
}

/// How much of a complete message was shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// Its text was streamed.
    Streamed,
    /// Nothing was shown.
    New,
    /// The message is replayed from the store; nothing was shown.
    Stored,
}

/// Origin of a loop that is not the first of a new prompt.
#[derive(Clone, Copy, Debug)]
pub struct LoopLineage<'a> {
    /// Loop.
    pub loop_id: &'a LoopId,
    /// How the loop continues from its parent.
    pub kind: ContinuationKind,
    /// Preceding loop.
    pub parent: Option<&'a LoopId>,
    /// Tag that distinguishes a rerun or branch from its siblings.
    pub tag: Option<&'a str>,
    /// Frame of the loop.
    pub frame_id: Option<&'a FrameId>,
    /// Task of the frame, if this loop is the first in it.
    pub task: Option<&'a str>,
}

impl<'a> LoopLineage<'a> {
    /// Returns the lineage of a loop that continues, retries, branches or opens a frame, from its `LoopStart`.
    pub(super) fn from_event(event: &'a Event) -> Option<Self> {
        let EventKind::LoopStart {
            parent_loop_id,
            continuation_kind,
            tag,
            frame_id,
            frame,
            ..
        } = &event.kind
        else {
            return None;
        };
        if *continuation_kind == ContinuationKind::Initial && frame.is_none() {
            return None;
        }
        Some(Self {
            loop_id: &event.loop_id,
            kind: *continuation_kind,
            parent: parent_loop_id.as_ref(),
            tag: tag.as_deref(),
            frame_id: frame_id.as_ref(),
            task: frame.as_ref().map(|frame| &*frame.task),
        })
    }
}

/// Usage of the model's context, with the cost of the session and the usage of the running prompt.
#[derive(Clone, Copy, Debug)]
pub struct ContextUsage<'a> {
    /// Used part of the context. Unit: tokens.
    pub used: u64,
    /// Size of the context, at least `used`. Unit: tokens.
    pub size: u64,
    /// Cost of the session.
    pub session_cost: &'a SessionCost,
    /// Usage of the running prompt.
    pub prompt_usage: &'a PromptUsage,
}
