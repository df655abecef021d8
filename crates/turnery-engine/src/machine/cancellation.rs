//! Stops a loop from outside in two tiers: first request, then force (LASH-90, R1).

use super::call_batch::{CallBatch, CallPhase};
use super::call_end::CallEnd;
use super::pending_turn::{NextStep, PendingTurn};
use super::{Effect, Halt, Loop, ResponseDraft, Stage};
use crate::{CommitError, MessageStop, Outcome, ToolEnvelope, TurnStop, Verdict};
use std::mem;

impl Loop {
    /// First tier: starts nothing new and requests running work to stop. No effect once the outcome is
    /// sealed; the store then reports whether the record was stored.
    pub(super) fn halt(&mut self, halt: Halt) {
        let outranked = self.halt >= Some(halt) && !faulty!(LastHaltWins);
        if outranked || self.is_sealed() {
            return;
        }
        self.halt = Some(halt);
        self.is_grace_over |= halt == Halt::LaneLost;
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::AwaitingHook(pending) => {
                self.cancel_hook();
                self.resume_without_hook(*pending);
            }
            Stage::Compacting(_) => {
                self.stop_compaction(halt.cause().to_owned());
                self.abandon_model_call();
            }
            Stage::AwaitingModel(draft) => {
                if !faulty!(ForgetStopModel) {
                    self.push_effect(Effect::StopModel);
                }
                self.end_cut_off_turn(draft);
            }
            Stage::RunningCalls(batch) => self.stop_calls(batch, halt),
            sealed @ (Stage::Committing(_) | Stage::Finished) => self.stage = sealed,
        }
    }

    /// Requests running calls to stop and cancels all others.
    fn stop_calls(&mut self, mut batch: CallBatch, halt: Halt) {
        self.end_undecided_call(&mut batch, halt.cancelled_envelope(false));
        if !self.grace_started {
            for level in batch.levels() {
                if faulty!(ForgetStopOfParent) && level.outer.is_none() && batch.outer.is_some() {
                    continue;
                }
                for at in level.running() {
                    self.push_effect(Effect::StopTool(level.call(at).call_id.clone()));
                }
            }
        }
        if self.is_grace_over {
            return self.kill_calls(batch, halt);
        }
        if batch.levels().any(|level| level.running().next().is_some()) {
            self.start_grace();
        }
        self.advance_calls(batch);
    }

    /// Cancels the tool hook, and the permission check of the undecided call, which ends with `envelope`.
    pub(super) fn end_undecided_call(&mut self, batch: &mut CallBatch, envelope: ToolEnvelope) {
        if batch.hook_call.take().is_some() {
            self.cancel_hook();
        }
        let Some(at) = batch.undecided() else { return };
        if !matches!(batch.phase(at), CallPhase::Permitted) && !faulty!(ForgetCancelGate) {
            self.push_effect(Effect::CancelGate(batch.call(at).call_id.clone()));
        }
        self.resolve_permission(batch, at, Verdict::Cancelled);
        self.end_call(batch, at, CallEnd::not_executed(envelope));
    }

    /// Second tier: kills running calls and ends them at once.
    pub(super) fn handle_grace_over(&mut self) {
        let Some(halt) = self.halt else {
            return;
        };
        if self.is_sealed() || faulty!(IgnoreGraceOver) {
            return;
        }
        self.is_grace_over = true;
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::AwaitingHook(pending) => {
                self.cancel_hook();
                self.resume_without_hook(*pending);
            }
            Stage::RunningCalls(mut batch) => {
                if batch.hook_call.take().is_some() {
                    self.cancel_hook();
                }
                self.kill_calls(batch, halt);
            }
            other => self.stage = other,
        }
    }

    pub(super) fn kill_calls(&mut self, mut batch: CallBatch, halt: Halt) {
        self.abort_running_calls(&mut batch, &halt.cancelled_envelope(true));
        self.advance_calls(batch);
    }

    /// Kills the running calls, which end with `envelope`.
    pub(super) fn abort_running_calls(&mut self, batch: &mut CallBatch, envelope: &ToolEnvelope) {
        let running: Vec<usize> = batch.running().collect();
        for at in running {
            if !faulty!(ForgetAbort) {
                self.push_effect(Effect::AbortTool(batch.call(at).call_id.clone()));
            }
            if faulty!(OmitEndOnAbort) {
                batch.set_phase(at, CallPhase::Delivered);
            } else {
                self.end_call(batch, at, CallEnd::executed(envelope.clone()));
            }
        }
    }

    pub(super) fn start_grace(&mut self) {
        if !self.grace_started && !self.is_grace_over {
            self.grace_started = true;
            self.push_effect(Effect::StartGrace);
        }
    }

    fn cancel_hook(&mut self) {
        if !faulty!(ForgetCancelHook) {
            self.push_effect(Effect::CancelHook);
        }
    }

    /// Ends a turn whose response was cut off; output already shown is kept.
    fn end_cut_off_turn(&mut self, draft: ResponseDraft) {
        self.settle_draft(draft, MessageStop::Aborted, None);
        if faulty!(ReportErrorOnCancel) {
            let message = String::new();
            self.push_effect(Effect::RunHook(crate::HookRequest::OnError { message }));
            self.push_effect(Effect::CancelHook);
        }
        self.finish_turn(
            None,
            Vec::new(),
            NextStep::Turn(PendingTurn::continuation(None)),
        );
    }

    /// Ends a turn whose model call will not be made.
    pub(super) fn abandon_model_call(&mut self) {
        if self.emitter.turn_index.is_some() {
            self.end_cut_off_turn(ResponseDraft::default());
        } else {
            self.stop_before_next_turn();
        }
    }

    /// Ends a halted loop, after all its calls have ended.
    pub(super) fn end_halted_loop(&mut self, halt: Halt) {
        match halt {
            Halt::Cancelled if faulty!(CancelReportsEndTurn) => {
                let text = "".into();
                let finish = crate::TurnFinish::AssistantMessage { text };
                self.commit(Outcome::Finished(finish, None));
            }
            Halt::LaneLost if faulty!(CommitAfterLaneLost) => {
                self.commit(Outcome::Stopped(TurnStop::Cancelled));
            }
            Halt::TimeUp => self.stop_at_time_limit(),
            Halt::Cancelled => self.commit(Outcome::Stopped(TurnStop::Cancelled)),
            Halt::LaneLost => self.finish_uncommitted(CommitError::LaneLost),
        }
    }
}
