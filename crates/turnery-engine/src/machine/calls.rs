//! Calls: the tools of a turn, one after the other in the order of the answer (C-6, JIDO-47).
//!
//! Each call gets one Start/End pair and one result for the model, whatever becomes of it (R2).

use super::closing::Closing;
use super::{Announced, Effect, Halt, Loop, Stage};
use crate::{
    CallDetail, CallId, ChildUsage, EventKind, FailureKind, MessageId, PlanEntry, Timestamp,
    ToolCall, ToolEnvelope, TurnTrigger, Usage, Verdict,
};
use std::{mem, vec};

/// The calls of one turn.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Of the answer that asked for them.
    usage: Option<Usage>,
    /// The one whose turn it is; `None` before the first and after the last.
    pub(super) current: Option<Current>,
    waiting: vec::IntoIter<ToolCall>,
    pub(super) results: Vec<MessageId>,
}

/// The call whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) call: ToolCall,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being decided whether it may run.
    Gating,
    /// The same, and a person has been asked.
    Asked,
    /// It runs.
    Running,
}

impl Batch {
    pub(super) fn new(calls: Vec<ToolCall>, usage: Option<Usage>) -> Self {
        Self {
            usage,
            current: None,
            results: Vec::with_capacity(calls.len()),
            waiting: calls.into_iter(),
        }
    }
}

impl Loop {
    /// Announce all calls before any runs (ACP-22, C-25), then begin with the first.
    pub(super) fn start_calls(
        &mut self,
        now: Timestamp,
        batch: Batch,
        announced: Vec<Announced>,
        out: &mut Vec<Effect>,
    ) {
        let mut announced = announced.into_iter();
        for call in batch.waiting.as_slice() {
            let detail = announced.next().map_or_else(
                || CallDetail {
                    title: call.name.clone(),
                    ..CallDetail::default()
                },
                |announced| announced.detail,
            );
            let call = call.clone();
            self.mint
                .emit(now, EventKind::ToolCallRequested { call, detail }, out);
        }
        self.next_call(now, batch, out);
    }

    /// Go on with the next call, or with the next turn. Once halted, nothing new starts.
    pub(super) fn next_call(&mut self, now: Timestamp, mut batch: Batch, out: &mut Vec<Effect>) {
        while let Some(call) = batch.waiting.next() {
            let halt = if faulty!(self, RunAfterCancel) {
                None
            } else {
                self.halt
            };
            let Some(halt) = halt else {
                out.push(Effect::Gate(call.clone()));
                if faulty!(self, RunBeforeVerdict) {
                    out.push(Effect::Run(call.clone()));
                }
                batch.current = Some(Current {
                    call,
                    phase: Phase::Gating,
                });
                self.stage = Stage::Calling(batch);
                return;
            };
            self.close_call(
                now,
                &mut batch,
                call,
                Closing::unrun(halt.envelope(false)),
                out,
            );
        }
        self.close_turn(now, batch.usage, batch.results, out);
        match self.halt {
            Some(halt) => self.conclude(now, halt, out),
            None => self.next_turn(now, TurnTrigger::Continuation, Vec::new(), out),
        }
    }

    /// A person is being asked.
    pub(super) fn asking(
        &mut self,
        now: Timestamp,
        call_id: CallId,
        detail: CallDetail,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(&call_id) != Some(Phase::Gating) {
            return;
        }
        if let Stage::Calling(Batch {
            current: Some(current),
            ..
        }) = &mut self.stage
        {
            current.phase = Phase::Asked;
            self.asked_at = Some(now);
        }
        let kind = EventKind::PermissionRequested { call_id, detail };
        self.mint.emit(now, kind, out);
    }

    /// The call may run, or not (PERM-3), or the whole prompt is cancelled (PERM-4).
    pub(super) fn verdict(
        &mut self,
        now: Timestamp,
        call_id: &CallId,
        verdict: Verdict,
        out: &mut Vec<Effect>,
    ) {
        let is_due = match self.phase_of(call_id) {
            Some(Phase::Gating | Phase::Asked) => true,
            Some(Phase::Running) | None => false,
        };
        if !is_due {
            return;
        }
        let Some((mut batch, mut current)) = self.take_current() else {
            return;
        };
        self.resolve(now, &current, verdict.clone(), out);
        let envelope = match verdict {
            Verdict::Allow => {
                self.open_bracket(now, &current.call, true, out);
                out.push(Effect::Run(current.call.clone()));
                current.phase = Phase::Running;
                batch.current = Some(current);
                self.stage = Stage::Calling(batch);
                return;
            }
            Verdict::Deny(why) => ToolEnvelope::failed(FailureKind::Denied, why),
            Verdict::Cancelled => {
                self.halt = Some(Halt::Cancelled);
                Halt::Cancelled.envelope(false)
            }
        };
        self.close_call(now, &mut batch, current.call, Closing::unrun(envelope), out);
        self.next_call(now, batch, out);
    }

    /// The call is over: it ran, or failed before it could.
    pub(super) fn ended(
        &mut self,
        now: Timestamp,
        call_id: &CallId,
        envelope: ToolEnvelope,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(call_id).is_none() {
            return;
        }
        let Some((mut batch, current)) = self.take_current() else {
            return;
        };
        let closing = match current.phase {
            Phase::Running => Closing::ran(envelope),
            Phase::Gating | Phase::Asked => {
                self.resolve(now, &current, Verdict::Cancelled, out);
                Closing::unrun(envelope)
            }
        };
        self.close_call(now, &mut batch, current.call, closing, out);
        self.next_call(now, batch, out);
    }

    pub(super) fn shows(
        &mut self,
        now: Timestamp,
        call_id: CallId,
        detail: CallDetail,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(&call_id) == Some(Phase::Running) {
            let kind = EventKind::ToolExecutionUpdate { call_id, detail };
            self.mint.emit(now, kind, out);
        }
    }

    pub(super) fn printed(
        &mut self,
        now: Timestamp,
        call_id: CallId,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(&call_id) == Some(Phase::Running) {
            let kind = EventKind::ToolExecutionOutput { call_id, text };
            self.mint.emit(now, kind, out);
        }
    }

    pub(super) fn planned(
        &mut self,
        now: Timestamp,
        call_id: &CallId,
        entries: Vec<PlanEntry>,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(call_id) == Some(Phase::Running) {
            self.mint.emit(now, EventKind::PlanUpdated { entries }, out);
        }
    }

    pub(super) fn progressed(
        &mut self,
        now: Timestamp,
        call_id: CallId,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(&call_id) == Some(Phase::Running) {
            let kind = EventKind::ToolProgress { call_id, text };
            self.mint.emit(now, kind, out);
        }
    }

    pub(super) fn child_spent(
        &mut self,
        now: Timestamp,
        call_id: CallId,
        child: ChildUsage,
        out: &mut Vec<Effect>,
    ) {
        if self.phase_of(&call_id) == Some(Phase::Running) {
            let kind = EventKind::ChildUsageReported { call_id, child };
            self.mint.emit(now, kind, out);
        }
    }

    /// Settle the question that was put to a person, if there was one.
    pub(super) fn resolve(
        &mut self,
        now: Timestamp,
        current: &Current,
        verdict: Verdict,
        out: &mut Vec<Effect>,
    ) {
        match current.phase {
            Phase::Asked => {
                if let Some(asked_at) = self.asked_at.take() {
                    self.counts_from += now - asked_at;
                }
                let call_id = current.call.call_id.clone();
                let kind = EventKind::PermissionResolved { call_id, verdict };
                self.mint.emit(now, kind, out);
            }
            Phase::Gating | Phase::Running => {}
        }
    }

    /// The phase of this call, if it is its turn.
    fn phase_of(&self, call_id: &CallId) -> Option<Phase> {
        match &self.stage {
            Stage::Calling(batch) => batch
                .current
                .as_ref()
                .filter(|current| {
                    current.call.call_id == *call_id || faulty!(self, AcceptLateWords)
                })
                .map(|current| current.phase),
            Stage::Modelling(_) | Stage::Committing(_) | Stage::Over => None,
        }
    }

    /// The call whose turn it is, taken out of its batch. The caller sets the next stage.
    pub(super) fn take_current(&mut self) -> Option<(Batch, Current)> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Calling(Batch {
                usage,
                current: Some(current),
                waiting,
                results,
            }) => {
                let batch = Batch {
                    usage,
                    current: None,
                    waiting,
                    results,
                };
                Some((batch, current))
            }
            other => {
                self.stage = other;
                None
            }
        }
    }
}
