//! Halt: how a loop is stopped from outside, in two tiers: ask, then force (section 6.5).

use super::calls::Phase;
use super::closing::Closing;
use super::{Effect, Finish, Loop, Stage};
use crate::{
    CommitFault, FailureKind, LimitKind, MessageStop, Outcome, Timestamp, ToolEnvelope, TurnStop,
    Verdict,
};

/// Why a loop is stopped from outside. A later one outranks an earlier one, never the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Halt {
    TimeUp,
    Cancelled,
    LaneLost,
}

impl Halt {
    /// What the model is told of a call that this cut short.
    pub(super) fn envelope(self, ran: bool) -> ToolEnvelope {
        let cause = match self {
            Self::TimeUp => "the time limit was reached",
            Self::Cancelled => "the prompt was cancelled",
            Self::LaneLost => "another process took over the session",
        };
        let when = if ran {
            "while this call ran; part of its work may be done"
        } else {
            "before this call ran"
        };
        ToolEnvelope::failed(FailureKind::Cancelled, format!("cancelled: {cause} {when}"))
    }
}

impl Loop {
    /// The first tier: nothing new starts, what runs is asked to stop. Once the outcome is sealed,
    /// this changes nothing; whether the record was stored is then the store's to say.
    pub(super) fn halt(&mut self, now: Timestamp, why: Halt, out: &mut Vec<Effect>) {
        let outranked = self.halt >= Some(why) && !faulty!(self, LastHaltWins);
        if outranked || self.is_sealed() {
            return;
        }
        let earlier = self.halt.replace(why);
        if let Some(draft) = self.take_draft() {
            if !faulty!(self, ForgetStopModel) {
                out.push(Effect::StopModel);
            }
            self.settle_draft(now, draft, MessageStop::Aborted, None, out);
            return self.conclude(now, why, out);
        }
        let Some((mut batch, current)) = self.take_current() else {
            return;
        };
        match current.phase {
            Phase::Gating | Phase::Asked => {
                if !faulty!(self, ForgetWithdraw) {
                    out.push(Effect::Withdraw(current.call.call_id.clone()));
                }
                self.resolve(now, &current, Verdict::Cancelled, out);
                let closing = Closing::unrun(why.envelope(false));
                self.close_call(now, &mut batch, current.call, closing, out);
                self.next_call(now, batch, out);
            }
            Phase::Running => {
                if earlier.is_none() {
                    out.push(Effect::StopTool(current.call.call_id.clone()));
                    if why != Halt::LaneLost {
                        out.push(Effect::StartGrace);
                    }
                }
                batch.current = Some(current);
                self.stage = Stage::Calling(batch);
                if why == Halt::LaneLost {
                    self.grace_over(now, out);
                }
            }
        }
    }

    /// The second tier: what still runs is killed, and closed at once.
    pub(super) fn grace_over(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        let Some(halt) = self.halt else {
            return;
        };
        if faulty!(self, IgnoreGraceOver) {
            return;
        }
        let Some((mut batch, current)) = self.take_current() else {
            return;
        };
        if !faulty!(self, ForgetAbort) {
            out.push(Effect::AbortTool(current.call.call_id.clone()));
        }
        let closing = Closing::ran(halt.envelope(true));
        if !faulty!(self, NoEndOnAbort) {
            self.close_call(now, &mut batch, current.call, closing, out);
        }
        self.next_call(now, batch, out);
    }

    /// The end of a loop that was halted. All its brackets are closed by now.
    pub(super) fn conclude(&mut self, now: Timestamp, halt: Halt, out: &mut Vec<Effect>) {
        match halt {
            Halt::Cancelled if faulty!(self, CancelReportsEndTurn) => {
                let text = String::new();
                let finish = crate::TurnFinish::AssistantMessage { text };
                self.commit(now, Outcome::Finished(finish), None, out);
            }
            Halt::LaneLost if faulty!(self, CommitAfterLaneLost) => {
                self.commit(now, Outcome::Stopped(TurnStop::Cancelled), None, out);
            }
            Halt::TimeUp => self.stop_at_limit(now, LimitKind::Duration, out),
            Halt::Cancelled => self.commit(now, Outcome::Stopped(TurnStop::Cancelled), None, out),
            Halt::LaneLost => {
                self.stage = Stage::Over;
                out.push(Effect::Finish(Finish::Lost(CommitFault::LaneLost)));
            }
        }
    }
}
