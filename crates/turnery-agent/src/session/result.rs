//! Defines the result of a prompt and the handles to wait for it.

use super::{InterjectError, UnknownPriceError, command::QueueSlot};
use crate::{CancellationToken, UsageReport, UsageRow, usage_report::children_usage};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::oneshot;
use turnery_engine::{
    CallId, CommitError, Disposition, EventKind, LlmMessage, LoopId, LoopRecord, MessageId,
    Outcome, Timestamp, ToolCall, ToolEnvelope, Usage,
};
use turnery_models::UnknownModelError;

/// Result of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// Why the prompt ended.
    pub outcome: Outcome,
    /// Usage of all turns of its loops (I5), excluding child sessions (C-17).
    pub usage: Usage,
    /// Turns as counted by the limits, including those of candidates, judge and child sessions, excluding the
    /// forced reply beyond the turn limit (C-4). In a child session: those of the whole prompt so far.
    pub turns: u32,
    /// Its loops in order, as stored: one, plus one per frame (LASH-13). Empty if a hook rejected the prompt.
    pub loops: Vec<Arc<LoopRecord>>,
    /// False if the prompt was cancelled and the store does not respond: the last loop is being stored in the
    /// background, or is lost. The session's next prompt waits for that.
    pub is_stored: bool,
}

/// Tool call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolExecution {
    /// Call as requested by the model.
    pub call: ToolCall,
    /// Result of the call.
    pub envelope: ToolEnvelope,
    /// How the call ended.
    pub disposition: Disposition,
    /// Time from start to end. Unit: milliseconds.
    pub duration_ms: u64,
    /// Loop that the call ran in a child session.
    pub child_loop_id: Option<LoopId>,
}

impl PromptResult {
    /// Creates a result without loops.
    #[must_use]
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            usage: Usage::default(),
            turns: 0,
            loops: Vec::new(),
            is_stored: true,
        }
    }

    /// Iterates over the ids of its loops, in order.
    pub fn loop_ids(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.iter().map(|record| &record.loop_id)
    }

    /// Iterates over all its new messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<LlmMessage>> {
        self.loops.iter().flat_map(|record| &record.messages)
    }

    /// Iterates over problems to show to the user in addition to the outcome.
    pub fn issues(&self) -> impl Iterator<Item = &str> {
        let issues = self.loops.iter().flat_map(|record| &record.issues);
        issues.map(String::as_str)
    }

    /// Returns the tool calls of its turns, in call order.
    #[must_use]
    pub fn executions(&self) -> Vec<ToolExecution> {
        let mut places: HashMap<&CallId, usize> = HashMap::new();
        let mut calls: Vec<(&ToolCall, Timestamp, Option<ToolExecution>)> = Vec::new();
        for event in self.loops.iter().flat_map(|record| &record.events) {
            match &event.kind {
                EventKind::ToolCallRequested { call, .. } => {
                    places.insert(&call.call_id, calls.len());
                    calls.push((call, event.at, None));
                }
                EventKind::ToolExecutionStart { call_id, .. } => {
                    if let Some(place) = places.get(call_id) {
                        calls[*place].1 = event.at;
                    }
                }
                EventKind::ToolExecutionEnd {
                    call_id,
                    envelope,
                    disposition,
                    child_loop_id,
                    ..
                } => {
                    if let Some(place) = places.get(call_id) {
                        let (call, started, done) = &mut calls[*place];
                        let took = (event.at - *started).num_milliseconds();
                        *done = Some(ToolExecution {
                            call: call.clone(),
                            envelope: envelope.clone(),
                            disposition: *disposition,
                            duration_ms: u64::try_from(took).unwrap_or_default(),
                            child_loop_id: child_loop_id.clone(),
                        });
                    }
                }
                // Other events say nothing about what a call did.
                _ => {}
            }
        }
        calls.into_iter().filter_map(|(.., done)| done).collect()
    }

    /// Returns the usage of its child sessions: the last cumulative figure of each session, summed by purpose
    /// and model, sorted (LASH-103, I6).
    #[must_use]
    pub fn children_usage(&self) -> Vec<UsageRow> {
        children_usage(self.loops.iter().map(|record| &**record))
    }

    /// Returns all usage of the prompt by purpose and model: turns, child sessions, candidates, judge and
    /// summaries.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        UsageReport::from_records(self.loops.iter().map(|record| &**record))
    }

    /// Returns the usage including child sessions (I7).
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        self.children_usage()
            .iter()
            .fold(self.usage, |mut total, child| {
                total += child.usage;
                total
            })
    }
}

/// Error of a prompt that has no result: a failure of the host, never an outcome (S8, LASH-33).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Another process or handle is running a prompt in the session; this prompt did not begin.
    #[error("the session is busy: {holder} is at work in it; try again when it is done")]
    Busy {
        /// Description of the lane's owner.
        holder: String,
    },
    /// The last loop could not be stored and left no trace.
    #[error(transparent)]
    Lost(#[from] CommitError),
    /// The model does not exist; the prompt did not begin.
    #[error(transparent)]
    Model(#[from] UnknownModelError),
    /// The cost is limited and a model's price is unknown; the prompt did not begin.
    #[error(transparent)]
    Price(#[from] UnknownPriceError),
    /// The session cannot be continued as requested; the prompt did not begin.
    #[error(transparent)]
    Continue(#[from] ContinueError),
    /// The prompt was withdrawn before it began.
    #[error("the prompt was withdrawn before it began")]
    Withdrawn,
    /// The MCP server that should have generated the prompt failed; the prompt did not begin.
    #[error("the prompt could not be written: {0}")]
    Server(String),
}

/// Error of continuing, rerunning or branching a session (UP-15).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// The session has no such loop.
    #[error("this session has no loop {0}; take one of its own")]
    NoSuchLoop(LoopId),
    /// The session has no loop to rerun.
    #[error("nothing has run in this session yet; prompt it first")]
    NothingToRerun,
    /// The context is empty.
    #[error("the conversation is empty, so there is nothing to go on from; prompt it first")]
    ContextEmpty,
    /// The last message is the model's.
    #[error("the model has already answered; say something new, or rerun the loop")]
    Answered,
}

/// Reports whether an interjection reached the model.
pub struct DeliveryReceipt {
    pub(super) heard: oneshot::Receiver<()>,
}

impl DeliveryReceipt {
    /// Waits until the interjection is delivered to the model or dropped by a filter. Returns
    /// [`InterjectError::Idle`] if the prompt ends first; the interjection is then discarded.
    pub async fn result(self) -> Result<(), InterjectError> {
        self.heard.await.map_err(|_| InterjectError::Idle)
    }
}

/// Handle of an accepted prompt. Its result arrives after all events of the prompt have been pushed and the
/// commit has succeeded. Dropping the handle does not cancel the prompt.
pub struct PromptHandle {
    pub(super) result: oneshot::Receiver<Result<PromptResult, PromptError>>,
    pub(super) inserted: oneshot::Receiver<MessageId>,
    pub(super) place: QueueSlot,
    /// Tokens that cancel the prompt: its own, and the shared one of all prompts.
    pub(super) cancels: (CancellationToken, CancellationToken),
    /// True if the prompt was withdrawn and its queue slot is empty.
    pub(super) withdrawn: bool,
}

impl PromptHandle {
    /// Waits until the prompt's message is part of the conversation and returns its id, long before the
    /// prompt ends; `None` if there will be no message, in which case the result gives the reason. A cancel
    /// before the prompt begins withdraws it at once.
    pub async fn inserted(&mut self) -> Option<MessageId> {
        let (own, all) = &self.cancels;
        tokio::select! {
            biased;
            inserted = &mut self.inserted => return inserted.ok(),
            () = own.cancelled() => {}
            () = all.cancelled() => {}
        }
        self.withdrawn = self.place.take();
        match self.withdrawn {
            true => None,
            false => (&mut self.inserted).await.ok(),
        }
    }

    /// Waits for the result of the prompt.
    pub async fn result(self) -> Result<PromptResult, PromptError> {
        if self.withdrawn {
            return Err(PromptError::Withdrawn);
        }
        self.result.await.unwrap_or_else(|_| {
            Err(PromptError::Lost(CommitError::Store(
                "the session ended unexpectedly; open it again".to_owned(),
            )))
        })
    }
}
