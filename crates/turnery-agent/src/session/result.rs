//! Result: what came of a prompt, and how to wait for it.

use super::{SayError, UnknownPrice, mail::Place};
use crate::{CancellationToken, UsageReport, UsageRow, usage_report::children_usage};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::oneshot;
use turnery_engine::{
    CallId, CommitFault, Detail, Disposition, EventKind, LlmMessage, LoopId, LoopRecord, MessageId,
    Outcome, Timestamp, ToolCall, ToolEnvelope, Usage,
};
use turnery_models::UnknownModel;

/// What came of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// Why it ended.
    pub outcome: Outcome,
    /// What is known beside it.
    pub detail: Option<Detail>,
    /// Of all turns of its loops (I5). Child sessions are not part of it (C-17).
    pub usage: Usage,
    /// Turns as the prompt's limits count them: with those of candidates, the judge and child sessions, without the
    /// last reply beyond the limit of turns (C-4). In a child session: those of the whole prompt so far.
    pub turns: u32,
    /// Its loops, in order, as they were stored: one, and one more for each frame (LASH-13). None if a
    /// hook did not let it begin.
    pub loops: Vec<Arc<LoopRecord>>,
    /// False if the prompt was cancelled and its store does not answer: the last of the loops is stored in
    /// the background, or lost. The session's next prompt waits for that.
    pub is_stored: bool,
}

/// One call of a tool, from what was asked for to what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolExecution {
    /// What the model asked for.
    pub call: ToolCall,
    /// What came of it.
    pub envelope: ToolEnvelope,
    /// How it ended.
    pub disposition: Disposition,
    /// From its start to its end.
    pub duration_ms: u64,
    /// The loop that it ran in a child session.
    pub child_loop_id: Option<LoopId>,
}

impl PromptResult {
    /// A result without loops.
    #[must_use]
    pub fn new(outcome: Outcome, detail: Option<Detail>) -> Self {
        Self {
            outcome,
            detail,
            usage: Usage::default(),
            turns: 0,
            loops: Vec::new(),
            is_stored: true,
        }
    }

    /// The ids of its loops, in order.
    pub fn loop_ids(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.iter().map(|record| &record.loop_id)
    }

    /// All its new messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<LlmMessage>> {
        self.loops.iter().flat_map(|record| &record.messages)
    }

    /// What a person should know of it beside its outcome.
    pub fn issues(&self) -> impl Iterator<Item = &str> {
        let issues = self.loops.iter().flat_map(|record| &record.issues);
        issues.map(String::as_str)
    }

    /// The tool calls of its turns, in call order.
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
                EventKind::ParallelStart { .. }
                | EventKind::ParallelEnd { .. }
                | EventKind::LoopStart { .. }
                | EventKind::InputRejected { .. }
                | EventKind::TurnStart { .. }
                | EventKind::CompactionStarted { .. }
                | EventKind::CompactionEnded { .. }
                | EventKind::ModelRetried { .. }
                | EventKind::ModelSilent { .. }
                | EventKind::Issue { .. }
                | EventKind::MessageStart { .. }
                | EventKind::Delta { .. }
                | EventKind::MessageEnd { .. }
                | EventKind::UsageReported { .. }
                | EventKind::PermissionRequested { .. }
                | EventKind::PermissionResolved { .. }
                | EventKind::ToolExecutionUpdate { .. }
                | EventKind::ToolExecutionOutput { .. }
                | EventKind::ToolProgress { .. }
                | EventKind::ChildUsageReported { .. }
                | EventKind::FinalValue { .. }
                | EventKind::ToolValue { .. }
                | EventKind::PlanUpdated { .. }
                | EventKind::TurnEnd { .. }
                | EventKind::LoopEnd { .. } => {}
            }
        }
        calls.into_iter().filter_map(|(.., done)| done).collect()
    }

    /// What its child sessions spent: the last figure of each session, added up by purpose and model,
    /// sorted (LASH-103, I6).
    #[must_use]
    pub fn children_usage(&self) -> Vec<UsageRow> {
        children_usage(self.loops.iter().map(|record| &**record))
    }

    /// Everything that was spent on it, by purpose and model: its turns, child sessions, candidates, the judge and
    /// summaries.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        UsageReport::of(self.loops.iter().map(|record| &**record))
    }

    /// With its child sessions (I7).
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

/// A prompt that has no result: an error of the host, never an outcome (S8, LASH-33).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Another process or handle is at work in the session; it did not begin.
    #[error("the session is busy: {holder} is at work in it; try again when it is done")]
    Busy {
        /// Who.
        holder: String,
    },
    /// Its last loop could not be stored, and left nothing behind.
    #[error(transparent)]
    Lost(#[from] CommitFault),
    /// There is no such model; it did not begin.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// Money is limited, and it is not known what a model costs; it did not begin.
    #[error(transparent)]
    Price(#[from] UnknownPrice),
    /// The session cannot be continued like that; it did not begin.
    #[error(transparent)]
    Continue(#[from] ContinueError),
    /// It was taken back; it did not begin.
    #[error("the prompt was taken back before it began")]
    Withdrawn,
    /// An MCP server was to write it, and did not; it did not begin.
    #[error("the prompt could not be written: {0}")]
    Server(String),
}

/// Why a session cannot be continued as asked (UP-15).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// The loop is not one of this session.
    #[error("this session has no loop {0}; take one of its own")]
    NoSuchLoop(LoopId),
    /// Nothing has run yet.
    #[error("nothing has run in this session yet; prompt it first")]
    NothingToRerun,
    /// The model would be given nothing.
    #[error("the conversation is empty, so there is nothing to go on from; prompt it first")]
    ContextEmpty,
    /// The model has had the last word.
    #[error("the model has already answered; say something new, or rerun the loop")]
    Answered,
}

/// Tells whether something said to a running prompt reached its model.
pub struct DeliveryReceipt {
    pub(super) heard: oneshot::Receiver<()>,
}

impl DeliveryReceipt {
    /// Waits until the model gets to hear it, or a filter has dropped it; [`SayError::Idle`] if the prompt
    /// ended before. Then it is gone, and nothing is run.
    pub async fn result(self) -> Result<(), SayError> {
        self.heard.await.map_err(|_| SayError::Idle)
    }
}

/// A prompt that was accepted. Awaiting it gives the result, after every event of the prompt has
/// been pushed and the commit has succeeded. Dropping it does not cancel the prompt.
pub struct Ticket {
    pub(super) result: oneshot::Receiver<Result<PromptResult, PromptError>>,
    pub(super) inserted: oneshot::Receiver<MessageId>,
    pub(super) place: Place,
    /// What cancels it: its own token, and that of all prompts started when it was.
    pub(super) cancels: (CancellationToken, CancellationToken),
    /// It was taken back, and its place in the queue is empty.
    pub(super) withdrawn: bool,
}

impl Ticket {
    /// The message that the prompt became, once that is part of the conversation; long before the
    /// prompt's end. `None` if it became none, and never will: the result says why. A cancel that comes
    /// before the prompt has begun takes it back at once, whatever runs before it.
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

    /// The end of the prompt.
    pub async fn result(self) -> Result<PromptResult, PromptError> {
        if self.withdrawn {
            return Err(PromptError::Withdrawn);
        }
        self.result.await.unwrap_or_else(|_| {
            Err(PromptError::Lost(CommitFault::Store(
                "the session ended unexpectedly; open it again".to_owned(),
            )))
        })
    }
}
