//! Calls: the tools of a turn, in the order of the answer (C-6, JIDO-47).
//!
//! Each call gets one Start/End pair and one result for the model, whatever becomes of it (R2). It is
//! decided for one call after the other whether it may run; those that may run beside each other do,
//! the rest one by one. Brackets open in call order, and results are told in call order (R3).

use super::batch::{Batch, Phase};
use super::closing::Closing;
use super::hooks::Failed;
use super::{Announced, Effect, Halt, Loop, Stage};
use crate::{
    CallDetail, CallId, ChildUsage, Detail, EventKind, FailureKind, Hook, HookVerdict, Outcome,
    PlanEntry, ToolEnvelope, TurnStop, Verdict,
};
use std::mem;

impl Loop {
    /// Announce all calls before any runs (ACP-22, C-25), then begin with the first.
    pub(super) fn start_calls(&mut self, batch: Batch, announced: Vec<Announced>) {
        let mut announced = announced.into_iter();
        for call in batch.calls() {
            let call = call.clone();
            let detail = announced.next().map_or_else(
                || CallDetail {
                    title: call.name.clone(),
                    ..CallDetail::default()
                },
                |announced| announced.detail,
            );
            self.mint
                .emit(EventKind::ToolCallRequested { call, detail });
        }
        self.advance(batch);
    }

    /// Do all that can be done now: tell results, ask hooks, begin calls. When nothing is left, the
    /// turn ends.
    pub(super) fn advance(&mut self, mut batch: Batch) {
        loop {
            self.tell(&mut batch);
            self.ask_about(&mut batch);
            if !self.begin_next(&mut batch) {
                break;
            }
        }
        if batch.untold < batch.len() || batch.hook.is_some() {
            self.stage = Stage::Calling(batch);
            return;
        }
        match self.decide(&mut batch) {
            Ok(next) => self.close_turn(batch.usage, batch.results, next),
            Err(message) => {
                let failed = Failed {
                    usage: batch.usage,
                    tool_results: batch.results,
                    outcome: Outcome::Stopped(TurnStop::RuntimeError),
                    detail: Detail::Runtime {
                        message: message.clone(),
                    },
                };
                self.fail(failed, message);
            }
        }
    }

    /// Tell the model what came of the calls, in call order (R3).
    fn tell(&mut self, batch: &mut Batch) {
        while batch.hook.is_none() {
            let at = batch.untold;
            if at >= batch.len() {
                return;
            }
            match batch.phase(at) {
                Phase::Ended { .. } | Phase::Told => {}
                Phase::Running if faulty!(self, TellAsTheyEnd) => {}
                Phase::Waiting | Phase::Gating | Phase::Asked | Phase::Cleared | Phase::Running => {
                    return;
                }
            }
            match batch.set_phase(at, Phase::Told) {
                Phase::Ended { message, hook } => {
                    let message_id = self.say(*message);
                    batch.results.push(message_id);
                    if let Some(hook) = hook.filter(|_| self.asks_after(true)) {
                        batch.hook = Some(batch.untold);
                        self.give(Effect::Hook(*hook));
                        if self.halt.is_some() {
                            self.start_grace();
                        }
                    }
                }
                phase @ Phase::Running => {
                    batch.set_phase(at, phase);
                }
                Phase::Waiting | Phase::Gating | Phase::Asked | Phase::Cleared | Phase::Told => {}
            }
            batch.untold += 1;
        }
    }

    /// Ask the hook about the call that may run, unless it is busy.
    fn ask_about(&mut self, batch: &mut Batch) {
        let cleared = batch
            .undecided()
            .filter(|at| matches!(batch.phase(*at), Phase::Cleared));
        if let Some(at) = cleared.filter(|_| batch.hook.is_none()) {
            batch.hook = Some(at);
            let call = batch.call(at).clone();
            self.give(Effect::Hook(Hook::BeforeTool(call)));
        }
    }

    /// Decide about the next call, or begin to. False if it has to wait, or there is none.
    fn begin_next(&mut self, batch: &mut Batch) -> bool {
        let at = batch.next;
        if at >= batch.len() || batch.hook.is_some() || batch.undecided().is_some() {
            return false;
        }
        if let Some(why) = self.unwanted() {
            // What runs comes first: brackets that are never open together are read more easily.
            if batch.running().next().is_some() {
                return false;
            }
            batch.next += 1;
            self.close_call(batch, at, Closing::unrun(why));
            return true;
        }
        if !batch.has_room(self.spec.parallel) && !faulty!(self, RunAllBeside) {
            return false;
        }
        let call = batch.call(at).clone();
        self.give(Effect::Gate(call.clone()));
        if faulty!(self, RunBeforeVerdict) {
            self.give(Effect::Run(call));
        }
        batch.next += 1;
        batch.set_phase(at, Phase::Gating);
        true
    }

    /// Why no more calls begin, as the model is told.
    fn unwanted(&self) -> Option<ToolEnvelope> {
        let skipped = |why: &str| Some(ToolEnvelope::failed(FailureKind::Skipped, why));
        if let Some(halt) = self.halt.filter(|_| !faulty!(self, RunAfterCancel)) {
            Some(halt.envelope(false))
        } else if self.last_reply.is_some() {
            skipped("skipped: no tool can be used any more")
        } else if self.queues.is_steered() && !faulty!(self, RunWhenSteered) {
            skipped(
                "skipped: a new message of the user came first; read it, then call again if need be",
            )
        } else {
            None
        }
    }

    /// A person is being asked.
    pub(super) fn asking(&mut self, call_id: CallId, detail: CallDetail) {
        let Stage::Calling(batch) = &mut self.stage else {
            return;
        };
        let Some((at, Phase::Gating)) = batch.find(&call_id) else {
            return;
        };
        batch.set_phase(at, Phase::Asked);
        self.asked_at = Some(self.mint.now);
        self.mint
            .emit(EventKind::PermissionRequested { call_id, detail });
    }

    /// The call may run, or not (PERM-3), or the whole prompt is cancelled (PERM-4).
    pub(super) fn verdict(&mut self, call_id: &CallId, verdict: Verdict) {
        let Some((mut batch, at)) = self.take_call(call_id, |phase| match phase {
            Phase::Gating | Phase::Asked => true,
            Phase::Waiting
            | Phase::Cleared
            | Phase::Running
            | Phase::Ended { .. }
            | Phase::Told => false,
        }) else {
            return;
        };
        self.resolve(&batch, at, verdict.clone());
        match verdict {
            Verdict::Allow if self.spec.hooks.before_tool => {
                batch.set_phase(at, Phase::Cleared);
            }
            Verdict::Allow => self.run(&mut batch, at),
            Verdict::Deny(why) => {
                let envelope = ToolEnvelope::failed(FailureKind::Denied, why);
                self.close_call(&mut batch, at, Closing::unrun(envelope));
            }
            Verdict::Cancelled => {
                let envelope = Halt::Cancelled.envelope(false);
                self.close_call(&mut batch, at, Closing::unrun(envelope));
                self.stage = Stage::Calling(batch);
                return self.halt(Halt::Cancelled);
            }
        }
        self.advance(batch);
    }

    fn run(&mut self, batch: &mut Batch, at: usize) {
        self.open_bracket(batch, at, true);
        batch.set_phase(at, Phase::Running);
        let call = batch.call(at).clone();
        self.give(Effect::Run(call));
    }

    /// A hook's answer about a call.
    pub(super) fn hooked_call(&mut self, mut batch: Batch, verdict: HookVerdict) {
        let Some(at) = batch.hook.take() else {
            self.stage = Stage::Calling(batch);
            return;
        };
        match (batch.phase(at), verdict) {
            (Phase::Cleared, HookVerdict::Stop(why)) => {
                let envelope = ToolEnvelope::failed(FailureKind::Skipped, why);
                self.close_call(&mut batch, at, Closing::unrun(envelope));
            }
            (Phase::Cleared, HookVerdict::Go | HookVerdict::Warn(_) | HookVerdict::Inject(_)) => {
                self.run(&mut batch, at)
            }
            (
                Phase::Waiting
                | Phase::Gating
                | Phase::Asked
                | Phase::Running
                | Phase::Ended { .. }
                | Phase::Told,
                _,
            ) => {}
        }
        self.advance(batch);
    }

    /// The call is over: it ran, or failed before it could.
    pub(super) fn ended(&mut self, call_id: &CallId, envelope: ToolEnvelope) {
        let Some((mut batch, at)) = self.take_call(call_id, |phase| match phase {
            Phase::Gating | Phase::Asked | Phase::Running => true,
            Phase::Waiting | Phase::Cleared | Phase::Ended { .. } | Phase::Told => false,
        }) else {
            return;
        };
        let closing = if matches!(batch.phase(at), Phase::Running) {
            Closing::ran(envelope)
        } else {
            self.resolve(&batch, at, Verdict::Cancelled);
            Closing::unrun(envelope)
        };
        self.close_call(&mut batch, at, closing);
        self.advance(batch);
    }

    /// Show what a running call says.
    pub(super) fn said_by_call(&mut self, call_id: CallId, kind: impl FnOnce(CallId) -> EventKind) {
        if self.is_running(&call_id) {
            self.mint.emit(kind(call_id));
        }
    }

    /// Count what a child has spent: it is not the loop's own usage (C-17), but its limits hold for both.
    pub(super) fn child_spent(&mut self, call_id: CallId, child: ChildUsage) {
        if !self.is_running(&call_id) {
            return;
        }
        let same = |it: &&mut ChildUsage| {
            it.session_id == child.session_id
                && it.source == child.source
                && it.model == child.model
        };
        match self.children.iter_mut().find(same) {
            Some(last) => last.cumulative = child.cumulative,
            None => self.children.push(child.clone()),
        }
        self.mint
            .emit(EventKind::ChildUsageReported { call_id, child });
    }

    pub(super) fn planned(&mut self, call_id: &CallId, entries: Vec<PlanEntry>) {
        if self.is_running(call_id) {
            self.mint.emit(EventKind::PlanUpdated { entries });
        }
    }

    fn is_running(&self, call_id: &CallId) -> bool {
        match &self.stage {
            Stage::Calling(batch) => {
                faulty!(self, AcceptLateWords)
                    || matches!(batch.find(call_id), Some((_, Phase::Running)))
            }
            Stage::Asking(_)
            | Stage::Compacting(_)
            | Stage::Modelling(_)
            | Stage::Committing(_)
            | Stage::Over => false,
        }
    }

    /// Settle the question that was put to a person, if there was one.
    pub(super) fn resolve(&mut self, batch: &Batch, at: usize, verdict: Verdict) {
        if matches!(batch.phase(at), Phase::Asked) {
            if let Some(asked_at) = self.asked_at.take() {
                self.counts_from += self.mint.now - asked_at;
            }
            let call_id = batch.call(at).call_id.clone();
            self.mint
                .emit(EventKind::PermissionResolved { call_id, verdict });
        }
    }

    /// The batch, if it has this call in a phase that fits. The caller sets the next stage.
    fn take_call(
        &mut self,
        call_id: &CallId,
        fits: impl Fn(&Phase) -> bool,
    ) -> Option<(Batch, usize)> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Calling(batch) => match batch.find(call_id) {
                Some((at, phase)) if fits(phase) => Some((batch, at)),
                _ => {
                    self.stage = Stage::Calling(batch);
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
