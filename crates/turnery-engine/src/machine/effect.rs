//! Effects that a loop requests from its host, and how a loop finishes.

use crate::{
    CallId, Content, ContextSize, Event, HookRequest, Outcome, ToolCall, ToolChoice, ToolEnvelope,
    Usage,
};

/// Effect requested by a loop. Hosts carry effects out in order: an effect may start only after each
/// preceding `Emit` or `Publish` was handed to the outbox.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Add the event to the record, then send it to the client.
    Emit(Event),
    /// Send an event that is already in the record (the `LoopEnd` of a successful commit).
    Publish(Event),
    /// Call the model with history and tools.
    CallModel {
        /// Index of the turn.
        turn_index: u32,
        /// Constraint on the calls of the response.
        tool_choice: ToolChoice,
    },
    /// Drop the model's stream without waiting for it.
    StopModel,
    /// Run a hook; answered with `HookAnswered`. At most one at a time.
    RunHook(HookRequest),
    /// Cancel the running hook.
    CancelHook,
    /// Summarise history; answered with `Compacted`.
    Compact {
        /// Size of the next request, as counted so far.
        before: ContextSize,
        /// True if the provider rejected the request as too long: the context window is smaller than `before`.
        has_overflowed: bool,
    },
    /// Drop the running summary without waiting for it.
    StopCompaction,
    /// Decide whether the call may run; answered with `Verdict` or `ToolEnded`, possibly after
    /// `PermissionRequested`.
    Gate(ToolCall),
    /// Cancel the permission request.
    CancelGate(CallId),
    /// Run the call; answered with `ToolEnded`.
    RunTool(ToolCall),
    /// Give a running call the results of its nested calls, in call order; answers `NestedCalls`.
    ReturnResults {
        /// The running call.
        parent: CallId,
        /// Result of each nested call.
        results: Vec<ToolEnvelope>,
    },
    /// Request a running call to stop.
    StopTool(CallId),
    /// Kill a running call and all its processes.
    AbortTool(CallId),
    /// Send `GraceOver` after the grace period.
    StartGrace,
    /// Take back a user message (`Steer`, `FollowUp`) that this loop will not deliver, and run it as the next
    /// prompt. Emitted before `Commit` or `Finish`, and for later messages at once, even after `Finish`.
    ReturnUndelivered(Vec<Content>),
    /// Add this `LoopEnd` to the record and store it; answered with `Committed` or `CommitFailed`.
    Commit(Event),
    /// The loop is over. Only `ReturnUndelivered` may follow.
    Finish(LoopFinish),
}

/// How a loop finished.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopFinish {
    /// The record was committed.
    Committed {
        /// Outcome of the loop.
        outcome: Outcome,
        /// Usage of all turns.
        usage: Usage,
    },
    /// The record was not committed: an error of the host, not an outcome (LASH-33, LASH-34).
    CommitFailed(CommitError),
}

/// Reason why a loop could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Another process or handle owns the session.
    #[error("another process has taken over this session; nothing of this prompt was stored")]
    LaneLost,
    /// The session was changed concurrently.
    #[error("the session was changed concurrently; nothing of this prompt was stored")]
    HeadConflict,
    /// The store failed or is full.
    #[error("the session could not be stored: {0}")]
    Store(String),
}
