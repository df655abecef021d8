//! Runs the tool calls of a turn (C-6, JIDO-47).
//!
//! Every call gets one start event, one end event, and one result for the model, even if it does not run
//! (R2). Permission is decided for one call at a time; parallel calls run concurrently, all others alone.
//! Start events and results are in call order (R3).

use super::call_batch::{CallBatch, CallPhase, CallResult};
use super::call_end::CallEnd;
use super::stage::LoopFailure;
use super::{CallAnnouncement, Effect, Halt, Loop, Stage};
use crate::{
    CallDetail, CallId, ChildUsage, EventKind, HookRequest, HookVerdict, ToolEnvelope,
    ToolErrorKind, TurnStop, Verdict,
};
use std::mem;

impl Loop {
    /// Announces all calls before any of them runs (ACP-22, C-25), then starts with the first.
    pub(super) fn start_calls(&mut self, batch: CallBatch, announced: Vec<CallAnnouncement>) {
        let mut announced = announced.into_iter();
        for call in batch.calls() {
            let call = call.clone();
            let detail = announced.next().map_or_else(
                || CallDetail::with_title(&call.name),
                |announced| announced.detail,
            );
            self.emitter
                .emit(EventKind::ToolCallRequested { call, detail });
        }
        self.advance_calls(batch);
    }

    /// Delivers results, runs hooks and starts calls as far as possible. When no call is left, returns the
    /// results of nested calls, or ends the turn.
    pub(super) fn advance_calls(&mut self, mut batch: CallBatch) {
        loop {
            self.deliver_results(&mut batch);
            self.ask_before_tool_hook(&mut batch);
            if !self.start_next_call(&mut batch) {
                break;
            }
        }
        if batch.next_to_deliver < batch.len() || batch.hook_call.is_some() {
            self.stage = Stage::RunningCalls(batch);
            return;
        }
        if let Some(outer) = batch.outer.take() {
            return self.return_results(batch, *outer);
        }
        match self.decide_next(&mut batch) {
            Ok(next) => self.finish_turn(batch.usage, batch.results, next),
            Err(message) => self.fail_loop(LoopFailure {
                usage: batch.usage,
                tool_results: batch.results,
                stop: TurnStop::RuntimeError { message },
            }),
        }
    }

    /// Adds the results of ended calls to history or, if they are nested, to the results for their parent, in
    /// call order (R3), until the next call in that order has
    /// not ended, or an after-tool hook was requested, whose verdict must come first.
    fn deliver_results(&mut self, batch: &mut CallBatch) {
        while batch.hook_call.is_none() && batch.next_to_deliver < batch.len() {
            let at = batch.next_to_deliver;
            match batch.phase(at) {
                CallPhase::Ended { .. } | CallPhase::Delivered => {}
                CallPhase::Running if faulty!(DeliverResultsOutOfOrder) => {}
                _ => return,
            }
            match batch.set_phase(at, CallPhase::Delivered) {
                CallPhase::Ended { result, hook } => {
                    match *result {
                        CallResult::Message(message) => {
                            batch.results.push(self.emit_message(message));
                        }
                        CallResult::Nested(envelope) => batch.nested_results.push(envelope),
                    }
                    if let Some(hook) = hook.filter(|_| self.should_notify_hook(true)) {
                        batch.hook_call = Some(batch.next_to_deliver);
                        self.push_effect(Effect::RunHook(*hook));
                        if self.halt.is_some() {
                            self.start_grace();
                        }
                    }
                }
                phase @ CallPhase::Running => {
                    batch.set_phase(at, phase);
                }
                _ => {}
            }
            batch.next_to_deliver += 1;
        }
    }

    /// Runs the before-tool hook for the permitted call, unless another hook is running.
    fn ask_before_tool_hook(&mut self, batch: &mut CallBatch) {
        let cleared = batch
            .undecided()
            .filter(|at| matches!(batch.phase(*at), CallPhase::Permitted));
        if let Some(at) = cleared.filter(|_| batch.hook_call.is_none()) {
            batch.hook_call = Some(at);
            let call = batch.call(at).clone();
            self.push_effect(Effect::RunHook(HookRequest::BeforeTool(call)));
        }
    }

    /// Requests permission for the next call, or ends it as skipped if no more calls may start. Returns false
    /// if the call has to wait, or if there is none.
    fn start_next_call(&mut self, batch: &mut CallBatch) -> bool {
        let at = batch.next_to_start;
        if at >= batch.len() || batch.hook_call.is_some() || batch.undecided().is_some() {
            return false;
        }
        if let Some(why) = self.skip_result() {
            // Wait for the running calls first, so that start and end events nest more readably.
            if batch.running().next().is_some() {
                return false;
            }
            batch.next_to_start += 1;
            self.end_call(batch, at, CallEnd::not_executed(why));
            return true;
        }
        if !batch.can_start_next(self.spec.max_parallel_calls) && !faulty!(RunAllInParallel) {
            return false;
        }
        let call = batch.call(at).clone();
        self.push_effect(Effect::Gate(call.clone()));
        if faulty!(RunBeforeVerdict) {
            self.push_effect(Effect::RunTool(call));
        }
        batch.next_to_start += 1;
        batch.set_phase(at, CallPhase::Gating);
        true
    }

    /// Returns the result for skipped calls, if no more calls may start.
    fn skip_result(&self) -> Option<ToolEnvelope> {
        let skipped = |why: &str| Some(ToolEnvelope::failed(ToolErrorKind::Skipped, why));
        if let Some(halt) = self.halt.filter(|_| !faulty!(RunAfterCancel)) {
            Some(halt.cancelled_envelope(false))
        } else if self.last_reply_limit.is_some() {
            skipped("skipped: no tool can be used any more")
        } else if !self.input_queues.steering.is_empty() && !faulty!(RunWhenSteered) {
            skipped(
                "skipped: a new message of the user came first; read it, then call again if need be",
            )
        } else {
            None
        }
    }

    /// Handles the start of a permission request to the user.
    pub(super) fn handle_permission_request(&mut self, call_id: CallId, detail: CallDetail) {
        let Stage::RunningCalls(batch) = &mut self.stage else {
            return;
        };
        let Some((at, CallPhase::Gating)) = batch.find(&call_id) else {
            return;
        };
        batch.set_phase(at, CallPhase::AwaitingPermission);
        self.permission_asked_at = Some(self.emitter.now);
        self.emitter
            .emit(EventKind::PermissionRequested { call_id, detail });
    }

    /// Handles a permission verdict: run (PERM-3), deny, or cancel the prompt (PERM-4).
    pub(super) fn handle_verdict(&mut self, call_id: &CallId, verdict: Verdict) {
        let Some((mut batch, at)) = self.take_call(call_id, |phase| {
            matches!(phase, CallPhase::Gating | CallPhase::AwaitingPermission)
        }) else {
            return;
        };
        self.resolve_permission(&batch, at, verdict.clone());
        match verdict {
            Verdict::Allow if self.spec.hooks.before_tool => {
                batch.set_phase(at, CallPhase::Permitted);
            }
            Verdict::Allow => self.run_call(&mut batch, at),
            Verdict::Deny(why) => {
                let envelope = ToolEnvelope::failed(ToolErrorKind::Denied, why);
                self.end_call(&mut batch, at, CallEnd::not_executed(envelope));
            }
            Verdict::Cancelled => {
                let envelope = Halt::Cancelled.cancelled_envelope(false);
                self.end_call(&mut batch, at, CallEnd::not_executed(envelope));
                self.stage = Stage::RunningCalls(batch);
                return self.halt(Halt::Cancelled);
            }
        }
        self.advance_calls(batch);
    }

    fn run_call(&mut self, batch: &mut CallBatch, at: usize) {
        self.emit_execution_start(batch, at, true);
        batch.set_phase(at, CallPhase::Running);
        let call = batch.call(at).clone();
        self.push_effect(Effect::RunTool(call));
    }

    /// Handles the verdict of a tool hook.
    pub(super) fn handle_call_hook_verdict(&mut self, mut batch: CallBatch, verdict: HookVerdict) {
        let Some(at) = batch.hook_call.take() else {
            self.stage = Stage::RunningCalls(batch);
            return;
        };
        match (batch.phase(at), verdict) {
            (CallPhase::Permitted, HookVerdict::Stop(why)) => {
                let envelope = ToolEnvelope::failed(ToolErrorKind::Skipped, why);
                self.end_call(&mut batch, at, CallEnd::not_executed(envelope));
            }
            (CallPhase::Permitted, _) => self.run_call(&mut batch, at),
            // An after-tool hook, whose verdict is ignored.
            _ => {}
        }
        self.advance_calls(batch);
    }

    /// Handles the end of a call that ran, or that failed before it could run.
    pub(super) fn handle_tool_end(&mut self, call_id: &CallId, envelope: ToolEnvelope) {
        self.end_calls_within(call_id);
        let Some((mut batch, at)) = self.take_call(call_id, |phase| {
            matches!(
                phase,
                CallPhase::Gating | CallPhase::AwaitingPermission | CallPhase::Running
            )
        }) else {
            return;
        };
        let closing = if matches!(batch.phase(at), CallPhase::Running) {
            CallEnd::executed(envelope)
        } else {
            self.resolve_permission(&batch, at, Verdict::Cancelled);
            CallEnd::not_executed(envelope)
        };
        self.end_call(&mut batch, at, closing);
        self.advance_calls(batch);
    }

    /// Emits an event of a running call.
    pub(super) fn emit_from_call(
        &mut self,
        call_id: CallId,
        kind: impl FnOnce(CallId) -> EventKind,
    ) {
        if self.is_call_running(&call_id) {
            self.emitter.emit(kind(call_id));
        }
    }

    /// Counts the usage of a child session: not part of the loop's own usage (C-17), but subject to its
    /// limits.
    pub(super) fn handle_child_usage(&mut self, call_id: CallId, child: ChildUsage) {
        if !self.is_call_running(&call_id) {
            return;
        }
        ChildUsage::update_totals(&mut self.children_usage, &child);
        self.emitter
            .emit(EventKind::ChildUsageReported { call_id, child });
    }

    fn is_call_running(&self, call_id: &CallId) -> bool {
        let Stage::RunningCalls(batch) = &self.stage else {
            return false;
        };
        faulty!(AcceptLateUpdates)
            || batch
                .levels()
                .any(|level| matches!(level.find(call_id), Some((_, CallPhase::Running))))
    }

    /// Resolves the permission request to the user, if there was one.
    pub(super) fn resolve_permission(&mut self, batch: &CallBatch, at: usize, verdict: Verdict) {
        if matches!(batch.phase(at), CallPhase::AwaitingPermission) {
            if let Some(asked_at) = self.permission_asked_at.take() {
                self.time_base += self.emitter.now - asked_at;
            }
            let call_id = batch.call(at).call_id.clone();
            self.emitter
                .emit(EventKind::PermissionResolved { call_id, verdict });
        }
    }

    /// Takes the batch and the index of a call if the call is in a phase that `fits`; otherwise leaves the
    /// stage unchanged. The caller sets the next stage.
    pub(super) fn take_call(
        &mut self,
        call_id: &CallId,
        fits: impl Fn(&CallPhase) -> bool,
    ) -> Option<(CallBatch, usize)> {
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::RunningCalls(batch) => match batch.find(call_id) {
                Some((at, phase)) if fits(phase) => Some((batch, at)),
                _ => {
                    self.stage = Stage::RunningCalls(batch);
                    None
                }
            },
            other => {
                self.stage = other;
                None
            }
        }
    }
}
