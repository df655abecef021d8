//! Effect: all that a loop can ask of the world, and how it can be over.

use crate::{CallId, Content, ContextSize, Detail, Event, Hook, Outcome, ToolCall, Usage};

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
    /// Ask a hook: answer with `Hooked`. One at a time.
    Hook(Hook),
    /// Take the question back from the hook.
    StopHook,
    /// Summarise history: answer with `Compacted`.
    Compact(ContextSize),
    /// Drop the summary in the making; do not wait for it.
    StopCompaction,
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
    /// Somebody's words (`Steer`, `FollowUp`) that this loop will not say to the model: run them as the
    /// next prompt. Given when the outcome is sealed, before `Commit` or `Finish`; for words that come
    /// later at once, even after `Finish`.
    Unheard(Vec<Content>),
    /// Fold this `LoopEnd` and store the record: answer with `Committed` or `CommitFailed`.
    Commit(Event),
    /// The loop is over. Nothing follows but `Unheard`.
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
