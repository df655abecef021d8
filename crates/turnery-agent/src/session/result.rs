//! Defines the result of a prompt.

use super::errors::PromptError;
use crate::usage_report::{UsageReport, UsageRow, child_usage_rows};
use std::{collections::HashMap, path::PathBuf, sync::Arc};
use turnery_engine::{
    CallId, Disposition, EventKind, LlmMessage, LoopId, LoopRecord, Outcome, Timestamp, ToolCall,
    ToolEnvelope, TurnStop, Usage,
};

/// Result of a prompt, or the error of one that left nothing behind.
pub(crate) type PromptEnd = Result<PromptResult, PromptError>;

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
    /// Changes that the winner of an evaluation made in a folder of its own, applied or kept; `None` if it made none.
    pub changes: Option<WinnerChanges>,
    /// False if the prompt was cancelled and the store does not respond: the last loop is being stored in the
    /// background, or is lost. The session's next prompt waits for that.
    pub is_stored: bool,
}

/// Changes that the winner of an evaluation made in a folder of its own, and whether they were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WinnerChanges {
    /// All were applied to the session's folder.
    Applied {
        /// Changed files, relative to the folder.
        files: Vec<PathBuf>,
    },
    /// The session's folder has none of them.
    NotApplied {
        /// Files that would have changed, relative to the folder; empty if they could not be collected.
        files: Vec<PathBuf>,
        /// Reason: a rejection, files that have changed meanwhile, a cancel.
        reason: String,
        /// Folder in which the changes are kept: `changes.diff`, and the new files below `files`.
        kept: Option<PathBuf>,
    },
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
            changes: None,
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
        child_usage_rows(self.loops.iter().map(|record| &**record))
    }

    /// Returns all usage of the prompt by purpose and model: turns, child sessions, candidates, judge and
    /// summaries.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        UsageReport::from_records(&self.loops)
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

/// Returns the outcome to report for a record that has none: a runtime error, because this is a bug.
pub(crate) fn missing_outcome() -> Outcome {
    let message = "the loop ended without an outcome; this is a bug in turnery".to_owned();
    Outcome::Stopped(TurnStop::RuntimeError { message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::StopClass;

    // proves: LASH-24
    #[test]
    fn missing_outcome_is_fatal_runtime_error() {
        let Outcome::Stopped(stop) = missing_outcome() else {
            panic!("the loop did not stop");
        };
        assert!(matches!(stop, TurnStop::RuntimeError { .. }));
        assert_eq!(stop.class(), StopClass::Fatal);
    }
}
