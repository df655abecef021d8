//! Inputs of a loop: reports of its host.

use super::CommitError;
use crate::{
    CallDetail, CallId, ChildUsage, CompactionBlock, Content, ContextSize, HookVerdict, ModelDelta,
    ModelError, PlanEntry, Price, Response, Spending, ToolCall, ToolEnvelope, Usage, Verdict,
};
use serde_json::Value;

/// Input of a loop.
#[derive(Clone, Debug)]
pub enum Input {
    /// Live fragment of the model's response.
    ModelDelta(ModelDelta),
    /// Complete response of the model.
    ModelAnswered {
        /// Response.
        response: Response,
        /// Announcement of each call of the response, in call order.
        calls: Vec<CallAnnouncement>,
        /// Final value in the text; of effect only for [`Termination::FinishRequired`](super::Termination).
        value: TextValue,
    },
    /// A model call failed and is retried.
    ModelRetried {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Error of the attempt.
        error: ModelError,
        /// Delay before the next attempt. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while.
    ModelSilent {
        /// Duration of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True if the connection shows signs of life, such as pings.
        is_connected: bool,
    },
    /// User message to be delivered while the loop runs, after the current call (UP-5).
    Steer(Vec<Content>),
    /// User message to be delivered once the loop would finish (UP-6).
    FollowUp(Vec<Content>),
    /// Verdict of the last [`Effect::RunHook`](super::Effect::RunHook).
    HookAnswered(HookVerdict),
    /// Result of [`Effect::Compact`](super::Effect::Compact).
    Compacted {
        /// Compaction block, or the reason for the failure.
        block: Result<CompactionBlock, String>,
        /// Size of the next request.
        after: ContextSize,
        /// Usage of the summary call, if the provider reported it (I10).
        usage: Option<Usage>,
    },
    /// A running call reported its progress.
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// Progress text.
        text: String,
    },
    /// A child session spent tokens on behalf of a running call.
    ChildUsageReported {
        /// The call.
        call_id: CallId,
        /// Tokens spent.
        child: ChildUsage,
    },
    /// Current spending of the rest of the prompt: everything except this loop and the child sessions
    /// reported to it.
    OtherSpending(Spending),
    /// Price of the model used from now on; `None` if unknown.
    PriceChanged(Option<Price>),
    /// Notice for the user that does not affect the loop.
    Issue(String),
    /// The model call failed, after all retries.
    ModelFailed(ModelError),
    /// The user is being asked whether a call may run.
    PermissionRequested {
        /// The call.
        call_id: CallId,
        /// How to display the call.
        detail: CallDetail,
    },
    /// Permission decision for a call.
    Verdict {
        /// The call.
        call_id: CallId,
        /// Decision.
        verdict: Verdict,
    },
    /// A running call changed its display. Always the complete detail.
    ToolUpdate {
        /// The call.
        call_id: CallId,
        /// How to display the call now.
        detail: CallDetail,
    },
    /// A running call printed text.
    ToolOutput {
        /// The call.
        call_id: CallId,
        /// Text printed since the previous output.
        text: String,
    },
    /// A running call requests further calls, which are its nested calls. Their results are returned together
    /// by [`Effect::ReturnResults`](super::Effect::ReturnResults).
    NestedCalls {
        /// The running call.
        parent: CallId,
        /// Nested calls, whose ids are unique in the session.
        calls: Vec<ToolCall>,
        /// Announcement of each call, in call order.
        announced: Vec<CallAnnouncement>,
    },
    /// A running call changed the plan.
    PlanUpdated {
        /// The call.
        call_id: CallId,
        /// Complete plan.
        entries: Vec<PlanEntry>,
    },
    /// A call ended, or failed before it could run (unknown tool, invalid arguments).
    ToolEnded {
        /// The call.
        call_id: CallId,
        /// Result of the call.
        envelope: ToolEnvelope,
    },
    /// The prompt was cancelled.
    Cancel,
    /// The grace period after a cancel is over: whatever still runs is killed.
    GraceOver,
    /// [`Limits::duration`](super::Limits::duration) has passed.
    TimeUp,
    /// The commit succeeded.
    Committed,
    /// The commit failed; nothing was stored (LASH-35).
    CommitFailed(CommitError),
    /// Another process owns the session, so nothing more may be stored. No effect during a commit: the store
    /// reports whether the record was stored.
    LaneLost,
}

/// Final value in the text of a response without calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TextValue {
    /// The text is no value.
    #[default]
    Absent,
    /// The text is a value that cannot end the loop; holds the reasons.
    Rejected(String),
    /// The text is a value that ends the loop like a submitted one.
    Accepted(Value),
}

/// Properties of a call before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallAnnouncement {
    /// How to display the call.
    pub detail: CallDetail,
    /// True if the call may run alongside other such calls (C-6): its changes are not visible to them.
    pub is_parallel: bool,
}
