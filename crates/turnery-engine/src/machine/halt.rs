//! Halt: how a loop is stopped from outside, in two tiers: ask, then force (section 6.5).

use super::batch::{Batch, Phase};
use super::closing::Closing;
use super::opening::{Next, Opening};
use super::{Draft, Effect, Loop, Stage};
use crate::{CommitFault, FailureKind, MessageStop, Outcome, ToolEnvelope, TurnStop, Verdict};
use std::mem;

/// Why a loop is stopped from outside. A later one outranks an earlier one, never the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Halt {
    TimeUp,
    Cancelled,
    LaneLost,
}

impl Halt {
    fn cause(self) -> &'static str {
        match self {
            Self::TimeUp => "the time limit was reached",
            Self::Cancelled => "the prompt was cancelled",
            Self::LaneLost => "another process took over the session",
        }
    }

    /// What the model is told of a call that this cut short.
    pub(super) fn envelope(self, ran: bool) -> ToolEnvelope {
        let cause = self.cause();
        let when = if ran {
            "while this call ran; part of its work may be done"
        } else {
            "before this call ran"
        };
        ToolEnvelope::failed(FailureKind::Cancelled, format!("cancelled: {cause} {when}"))
    }

    pub(super) fn is_time_up(self) -> bool {
        match self {
            Self::TimeUp => true,
            Self::Cancelled | Self::LaneLost => false,
        }
    }
}

impl Loop {
    /// The first tier: nothing new starts, what runs is asked to stop. Once the outcome is sealed,
    /// this changes nothing; whether the record was stored is then the store's to say.
    pub(super) fn halt(&mut self, why: Halt) {
        let outranked = self.halt >= Some(why) && !faulty!(self, LastHaltWins);
        if outranked || self.is_sealed() {
            return;
        }
        self.halt = Some(why);
        self.killed |= why == Halt::LaneLost;
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Asking(question) => {
                self.stop_hook();
                self.unasked(*question);
            }
            Stage::Compacting(_) => {
                self.stop_compaction(why.cause().to_owned());
                self.cut_short();
            }
            Stage::Modelling(draft) => {
                if !faulty!(self, ForgetStopModel) {
                    self.give(Effect::StopModel);
                }
                self.cut_off(draft);
            }
            Stage::Calling(batch) => self.stop_calls(batch, why),
            sealed @ (Stage::Committing(_) | Stage::Over) => self.stage = sealed,
        }
    }

    /// What runs is asked to stop, what does not yet run never will.
    fn stop_calls(&mut self, mut batch: Batch, why: Halt) {
        if batch.hook.take().is_some() {
            self.stop_hook();
        }
        if let Some(at) = batch.undecided() {
            if !matches!(batch.phase(at), Phase::Cleared) && !faulty!(self, ForgetWithdraw) {
                self.give(Effect::Withdraw(batch.call(at).call_id.clone()));
            }
            self.resolve(&batch, at, Verdict::Cancelled);
            self.close_call(&mut batch, at, Closing::unrun(why.envelope(false)));
        }
        if !self.grace {
            for at in batch.running() {
                self.give(Effect::StopTool(batch.call(at).call_id.clone()));
            }
        }
        if self.killed {
            return self.kill_calls(batch, why);
        }
        if batch.running().next().is_some() {
            self.start_grace();
        }
        self.advance(batch);
    }

    /// The second tier: what still runs is killed, and closed at once.
    pub(super) fn grace_over(&mut self) {
        let Some(halt) = self.halt else {
            return;
        };
        if self.is_sealed() || faulty!(self, IgnoreGraceOver) {
            return;
        }
        self.killed = true;
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Asking(question) => {
                self.stop_hook();
                self.unasked(*question);
            }
            Stage::Calling(mut batch) => {
                if batch.hook.take().is_some() {
                    self.stop_hook();
                }
                self.kill_calls(batch, halt);
            }
            other @ (Stage::Compacting(_)
            | Stage::Modelling(_)
            | Stage::Committing(_)
            | Stage::Over) => self.stage = other,
        }
    }

    fn kill_calls(&mut self, mut batch: Batch, halt: Halt) {
        let running: Vec<usize> = batch.running().collect();
        for at in running {
            if !faulty!(self, ForgetAbort) {
                self.give(Effect::AbortTool(batch.call(at).call_id.clone()));
            }
            if faulty!(self, NoEndOnAbort) {
                batch.set_phase(at, Phase::Told);
            } else {
                self.close_call(&mut batch, at, Closing::ran(halt.envelope(true)));
            }
        }
        self.advance(batch);
    }

    pub(super) fn start_grace(&mut self) {
        if !self.grace && !self.killed {
            self.grace = true;
            self.give(Effect::StartGrace);
        }
    }

    fn stop_hook(&mut self) {
        if !faulty!(self, ForgetStopHook) {
            self.give(Effect::StopHook);
        }
    }

    /// There will be no answer, or no more of it: what was shown stays.
    fn cut_off(&mut self, draft: Draft) {
        self.settle_draft(draft, MessageStop::Aborted, None);
        if faulty!(self, TellErrorOfCancel) {
            let message = String::new();
            self.give(Effect::Hook(crate::Hook::OnError { message }));
            self.give(Effect::StopHook);
        }
        self.close_turn(None, Vec::new(), Next::Turn(Opening::continuation(None)));
    }

    /// Room was being made for an answer that will not be asked for.
    pub(super) fn cut_short(&mut self) {
        if self.mint.turn_index.is_some() {
            self.cut_off(Draft::default());
        } else {
            self.go_on_halted();
        }
    }

    /// The end of a loop that was halted. All its brackets are closed by now.
    pub(super) fn conclude(&mut self, halt: Halt) {
        match halt {
            Halt::Cancelled if faulty!(self, CancelReportsEndTurn) => {
                let text = "".into();
                let finish = crate::TurnFinish::AssistantMessage { text };
                self.commit(Outcome::Finished(finish), None);
            }
            Halt::LaneLost if faulty!(self, CommitAfterLaneLost) => {
                self.commit(Outcome::Stopped(TurnStop::Cancelled), None);
            }
            Halt::TimeUp => self.stop_at_time(),
            Halt::Cancelled => self.commit(Outcome::Stopped(TurnStop::Cancelled), None),
            Halt::LaneLost => self.lose(CommitFault::LaneLost),
        }
    }
}
