//! Input: all that the world can tell a loop.

use super::CommitFault;
use crate::{
    CallDetail, CallId, ChildUsage, CompactionBlock, Content, ContextSize, HookVerdict, ModelDelta,
    ModelFault, PlanEntry, Price, Response, Spending, ToolEnvelope, Usage, Verdict,
};

/// What the world tells a loop.
#[derive(Clone, Debug)]
pub enum Input {
    /// A live fragment of the model's answer.
    Delta(ModelDelta),
    /// The model's whole answer. `calls` says what is known of each of its calls, in call order.
    Answered {
        /// The answer.
        response: Response,
        /// One for each call.
        calls: Vec<Announced>,
    },
    /// An attempt to call the model failed and is made again.
    Retried {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How.
        fault: ModelFault,
        /// How long until the next one. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while.
    Silent {
        /// For how long. Unit: milliseconds.
        silent_ms: u64,
        /// Whether the connection shows signs of life, such as pings.
        is_connected: bool,
    },
    /// Somebody wants to say something while the loop runs: heard after the call at work (UP-5).
    Steer(Vec<Content>),
    /// Somebody wants to say something once the loop would end (UP-6).
    FollowUp(Vec<Content>),
    /// A hook's answer to the last [`Effect::Hook`](super::Effect::Hook).
    Hooked(HookVerdict),
    /// The answer to [`Effect::Compact`](super::Effect::Compact).
    Compacted {
        /// The overlay, or why there is none.
        block: Result<CompactionBlock, String>,
        /// What the next request holds now.
        after: ContextSize,
        /// Of the call that made the summary, if one was made and the provider said so (I10).
        usage: Option<Usage>,
    },
    /// A running call says how far it is.
    Progressed {
        /// The call.
        call_id: CallId,
        /// The sentence.
        text: String,
    },
    /// A child session at work for a running call spent tokens.
    ChildSpent {
        /// The call.
        call_id: CallId,
        /// What it spent.
        child: ChildUsage,
    },
    /// What the rest of the prompt has spent by now: all of it but the loop itself and the child sessions
    /// that it was told of.
    OtherSpending(Spending),
    /// What the tokens of the model cost that is called from now on; `None` if that is not known.
    Price(Option<Price>),
    /// Something that a person should know and that changes nothing.
    Noticed(String),
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

/// What is known of a call before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announced {
    /// How to show it.
    pub detail: CallDetail,
    /// It may run beside others that may (C-6): it changes nothing that they could see.
    pub parallel: bool,
}
