//! Loop: the state machine of one engine execution.
//!
//! Fed with [`Input`]s, it answers with [`Effect`]s, to be carried out in the order given.
//! It has no way to fail: an input that does not fit the state is ignored, so a late word from
//! an aborted tool or a dropped model stream changes nothing (R5).

use crate::{
    CallDetail, CallId, ConfigSnapshot, Content, ContinuationKind, Detail, Event, LoopId,
    ModelDelta, ModelFault, Outcome, PlanEntry, PromptId, Response, SessionId, Timestamp, ToolCall,
    ToolEnvelope, TurnTrigger, Usage, Verdict,
};
use std::time::Duration;

/// What a loop is to do, and within which limits.
#[derive(Clone, Debug)]
pub struct LoopSpec {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Its own id.
    pub loop_id: LoopId,
    /// The agent that runs it.
    pub agent_id: String,
    /// The host request that it serves.
    pub prompt_id: PromptId,
    /// The loop before it.
    pub parent_loop_id: Option<LoopId>,
    /// How it follows from that.
    pub continuation_kind: ContinuationKind,
    /// What causes its first turn.
    pub trigger: TurnTrigger,
    /// The model's identity.
    pub config: ConfigSnapshot,
    /// The prompt: content of the user message; empty for a continuation without one.
    pub input: Vec<Content>,
    /// When to stop.
    pub limits: Limits,
}

/// When a loop stops by itself (UP-1). All compared with `>=`, before each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of ordinary turns.
    pub turns: u32,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Wall-clock time. The host also feeds [`Input::TimeUp`] when it passes in mid-turn.
    pub duration: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            tokens: 1_000_000,
            duration: Duration::from_secs(600),
        }
    }
}

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
    /// [`Limits::duration`] has passed.
    TimeUp,
    /// The commit succeeded.
    Committed,
    /// The commit failed: nothing was stored (LASH-35).
    CommitFailed(CommitFault),
    /// Somebody else holds the session now: nothing more may be stored.
    LaneLost,
}

/// What a loop asks of the world. To be carried out in order: a later one only after an `Emit` or
/// `Publish` before it has been handed to the outbox.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Fold the event into the record, then show it to the client.
    Emit(Event),
    /// Show an event that is folded already (the `LoopEnd` of a commit that succeeded).
    Publish(Event),
    /// Call the model with history and, if `tools`, with tools.
    CallModel {
        /// The turn that it is for.
        turn_index: u32,
        /// False for a reply that must be prose.
        tools: bool,
    },
    /// Drop the model's stream; do not wait for it.
    StopModel,
    /// Find out whether the call may run: answer with `Verdict`, `Ended`, and perhaps `Asking` first.
    Gate(ToolCall),
    /// Take the question back from the person.
    Withdraw(CallId),
    /// Run the call: answer with `Ended`.
    Run(ToolCall),
    /// Ask a running call to stop.
    StopTool(CallId),
    /// Kill a running call and all that it started.
    AbortTool(CallId),
    /// Feed `GraceOver` after the grace period.
    StartGrace,
    /// Fold this `LoopEnd` and store the record: answer with `Committed` or `CommitFailed`.
    Commit(Event),
    /// The loop is over. Nothing follows.
    Finish(Finish),
}

/// How a loop is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    /// Committed, with its outcome.
    Done {
        /// Why it ended.
        outcome: Outcome,
        /// What is known beside it.
        detail: Option<Detail>,
        /// Of all its turns.
        usage: Usage,
    },
    /// Not committed: an error of the host, never an outcome (LASH-33, LASH-34).
    Lost(CommitFault),
}

/// Why a loop could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitFault {
    /// Another process or handle holds the session.
    #[error("another process has taken over this session; nothing of this prompt was stored")]
    LaneLost,
    /// The session has changed underneath.
    #[error("the session was changed by somebody else; nothing of this prompt was stored")]
    HeadConflict,
    /// The store is broken or full.
    #[error("the session could not be stored: {0}")]
    Store(String),
}

/// One engine execution.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
}

impl Loop {
    /// Begin. The first effects go to `out`.
    pub fn start(spec: LoopSpec, _now: Timestamp, _out: &mut Vec<Effect>) -> Self {
        Self { spec }
    }

    /// Take in one input at the time `now`; effects are appended to `out`.
    pub fn on(&mut self, _now: Timestamp, _input: Input, _out: &mut Vec<Effect>) {}

    /// What the loop was started with.
    #[must_use]
    pub fn spec(&self) -> &LoopSpec {
        &self.spec
    }

    /// True once `Finish` has been given.
    #[must_use]
    pub fn is_over(&self) -> bool {
        false
    }
}
