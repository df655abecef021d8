//! Stages of a loop: what it waits for, with the state to continue from.

use super::call_batch::CallBatch;
use super::pending_turn::{InputFiltering, NextStep, PendingTurn};
use super::response_draft::ResponseDraft;
use crate::{Content, Event, MessageId, ModelError, ResponseText, TurnStop, Usage};

/// Stage of a loop: what it waits for.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// A hook verdict. Tool hooks run while other calls are running; they are part of `RunningCalls`.
    AwaitingHook(Box<PendingHook>),
    /// A summary of history.
    Compacting(Box<CompactionReason>),
    /// A model response.
    AwaitingModel(ResponseDraft),
    /// A permission verdict, the end of a call, or the verdict of a tool hook.
    RunningCalls(CallBatch),
    /// The result of the commit. The sealed outcome is in this `LoopEnd` event.
    Committing(Box<Event>),
    /// Nothing; the loop is over.
    Finished,
}

/// Pending hook with the state to continue from. Tool hooks are part of the call batch.
#[derive(Clone, Debug)]
pub(super) enum PendingHook {
    /// Input filter of the prompt.
    Prompt(Vec<Content>),
    /// Input filter of a steering or follow-up message.
    Queued(Vec<Content>, InputFiltering),
    BeforeTurn(PendingTurn),
    AfterTurn(NextStep),
    /// Error hook of a failed loop; its turn, if there is one, is still open.
    OnError(LoopFailure),
    BeforeCompaction(CompactionReason),
    AfterCompaction(CompactionReason),
    /// Checkpoint after this text of the model.
    Checkpoint(ResponseText),
}

/// End of a failed loop.
#[derive(Clone, Debug)]
pub(super) struct LoopFailure {
    pub(super) usage: Option<Usage>,
    /// Results of the turn's calls.
    pub(super) tool_results: Vec<MessageId>,
    pub(super) stop: TurnStop,
}

impl LoopFailure {
    /// Creates the failure of a loop whose turn, if there is one, has no calls.
    pub(super) fn without_calls(stop: TurnStop, usage: Option<Usage>) -> Self {
        Self {
            usage,
            tool_results: Vec::new(),
            stop,
        }
    }
}

/// Reason for a compaction, which decides how the loop continues.
#[derive(Clone, Debug)]
pub(super) enum CompactionReason {
    /// The next request would fill the context; the model is called in any case.
    ContextFull {
        /// True if the window overflowed within the last response.
        has_overflowed: bool,
    },
    /// The provider rejected the request as too long; the model is called again if there is a summary.
    Overflow(ModelError),
    /// The loop does nothing else (UP-13).
    Standalone,
}
