//! Input: all that the world can tell a loop.

use super::CommitFault;
use crate::{
    CallDetail, CallId, ModelDelta, ModelFault, PlanEntry, Response, ToolEnvelope, Verdict,
};

/// What the world tells a loop.
#[derive(Clone, Debug)]
pub enum Input {
    /// A live fragment of the model's answer.
    Delta(ModelDelta),
    /// The model's whole answer. `details` says how to show each of its calls, in call order.
    Answered {
        /// The answer.
        response: Response,
        /// One for each call.
        details: Vec<CallDetail>,
    },
    /// The model call failed for good (retries are over).
    ModelFailed(ModelFault),
    /// A person is being asked about a call.
    Asking {
        /// The call.
        call_id: CallId,
        /// How to show it.
        detail: CallDetail,
    },
    /// Whether a call may run.
    Verdict {
        /// The call.
        call_id: CallId,
        /// The answer.
        verdict: Verdict,
    },
    /// A running call shows something new: the whole of it.
    Shows {
        /// The call.
        call_id: CallId,
        /// How to show it now.
        detail: CallDetail,
    },
    /// A running call printed text.
    Printed {
        /// The call.
        call_id: CallId,
        /// The text since the last one.
        text: String,
    },
    /// A running call changed the plan.
    Planned {
        /// The call.
        call_id: CallId,
        /// The whole plan.
        entries: Vec<PlanEntry>,
    },
    /// A call ended; also one that failed before it could run (unknown tool, bad arguments).
    Ended {
        /// The call.
        call_id: CallId,
        /// What came of it.
        envelope: ToolEnvelope,
    },
    /// The prompt's token fired.
    Cancel,
    /// The grace after a cancel is over: whatever still runs is to be killed.
    GraceOver,
    /// [`Limits::duration`](super::Limits::duration) has passed.
    TimeUp,
    /// The commit succeeded.
    Committed,
    /// The commit failed: nothing was stored (LASH-35).
    CommitFailed(CommitFault),
    /// Somebody else holds the session now: nothing more may be stored. While a commit is under way
    /// this changes nothing: the store knows whether it was stored, and answers.
    LaneLost,
}
