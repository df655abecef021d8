//! Runs the calls that a running call requests. They are judged, run and stopped like those of the model, but
//! their results go to the call that requested them (LASH-71).

use super::call_batch::{CallBatch, CallPhase, OuterBatch};
use super::call_end::CallEnd;
use super::{CallAnnouncement, Effect, Loop, Stage};
use crate::{CallId, ToolCall, ToolEnvelope, ToolErrorKind};
use std::mem;

const RUNS_BESIDE_OTHERS: &str =
    "a call that runs beside others cannot call tools; call this one alone";

const PARENT_ENDED: &str = "cancelled: the call that requested this one has ended";

impl Loop {
    /// Starts nested calls of a running call. Refuses them if other calls are running, so that permission is
    /// decided for one call at a time.
    pub(super) fn start_nested_calls(
        &mut self,
        parent: CallId,
        mut calls: Vec<ToolCall>,
        announced: Vec<CallAnnouncement>,
    ) {
        let Some((batch, at)) = self.take_call(&parent, CallPhase::is_running) else {
            return;
        };
        let runs_alone = batch.running().count() == 1
            && batch.undecided().is_none()
            && batch.hook_call.is_none();
        if !runs_alone || calls.is_empty() {
            self.stage = Stage::RunningCalls(batch);
            let refusal = ToolEnvelope::failed(ToolErrorKind::Skipped, RUNS_BESIDE_OTHERS);
            let results = vec![refusal; calls.len()];
            self.push_effect(Effect::ReturnResults { parent, results });
            return;
        }
        if !faulty!(OmitParentId) {
            for call in &mut calls {
                call.parent_call_id = Some(parent.clone());
            }
        }
        let mut nested = CallBatch::new(calls, None, &announced);
        nested.outer = Some(Box::new(OuterBatch { batch, parent: at }));
        self.start_calls(nested, announced);
    }

    /// Returns the results of nested calls, all of which have ended, and continues with the calls around them.
    pub(super) fn return_results(&mut self, mut nested: CallBatch, outer: OuterBatch) {
        let OuterBatch { mut batch, parent } = outer;
        move_decision(&mut nested, &mut batch, parent);
        if faulty!(ForgetNestedDecision) {
            batch.controls.clear();
        }
        if !faulty!(ForgetResults) {
            self.push_effect(Effect::ReturnResults {
                parent: batch.call(parent).call_id.clone(),
                results: nested.nested_results,
            });
        }
        match self.halt {
            Some(halt) if self.is_grace_over && !faulty!(ForgetAbortOfParent) => {
                self.kill_calls(batch, halt);
            }
            _ => self.advance_calls(batch),
        }
    }

    /// Ends all calls that were requested by this call or by its nested calls, without returning results.
    pub(super) fn end_calls_within(&mut self, call_id: &CallId) {
        while let Stage::RunningCalls(batch) = &self.stage
            && batch.find(call_id).is_none()
            && batch.levels().any(|level| {
                level
                    .find(call_id)
                    .is_some_and(|(_, phase)| phase.is_running())
            })
        {
            let Stage::RunningCalls(mut batch) = mem::replace(&mut self.stage, Stage::Finished)
            else {
                return;
            };
            let cancelled = ToolEnvelope::failed(ToolErrorKind::Cancelled, PARENT_ENDED);
            self.end_undecided_call(&mut batch, cancelled.clone());
            if !faulty!(KeepNestedCalls) {
                self.abort_running_calls(&mut batch, &cancelled);
            }
            for at in batch.next_to_start..batch.len() {
                if !faulty!(OmitEndOfWaitingNestedCall) {
                    self.end_call(&mut batch, at, CallEnd::not_executed(cancelled.clone()));
                }
            }
            if let Some(outer) = batch.outer.take() {
                let OuterBatch {
                    batch: mut around,
                    parent,
                } = *outer;
                move_decision(&mut batch, &mut around, parent);
                self.stage = Stage::RunningCalls(around);
            }
        }
    }
}

/// Makes the first decision of the nested calls that of their parent.
fn move_decision(nested: &mut CallBatch, outer: &mut CallBatch, parent: usize) {
    if let Some((_, decision)) = nested.controls.pop_first() {
        outer.controls.entry(parent).or_insert(decision);
    }
}
