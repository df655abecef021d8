//! Ending: the outcome is sealed, stored, and only then published (C-11, R4).

use super::{CommitFault, Effect, Finish, Loop, Stage};
use crate::{Detail, EventKind, Outcome};
use std::mem;

impl Loop {
    /// Seal the outcome. A cancel seen before this has won already; one seen later comes too late.
    pub(super) fn commit(&mut self, outcome: Outcome, detail: Option<Detail>) {
        self.seal();
        let detail = detail.or_else(|| self.limit_passed_by(&outcome));
        let rejection = match &detail {
            Some(Detail::Rejection { reason }) => Some(reason.clone()),
            Some(
                Detail::Limit { .. }
                | Detail::Provider { .. }
                | Detail::Refusal
                | Detail::Runtime { .. }
                | Detail::Continued { .. },
            )
            | None => None,
        };
        let event = self.mint.event(EventKind::LoopEnd {
            outcome,
            detail,
            usage: self.usage,
            rejection,
        });
        self.give(Effect::Commit(event.clone()));
        if faulty!(self, CommitTwice) {
            self.give(Effect::Commit(event.clone()));
        }
        if faulty!(self, PublishBeforeCommit) {
            self.give(Effect::Publish(event.clone()));
        }
        self.stage = Stage::Committing(Box::new(event));
    }

    /// Nothing may be stored any more: there is no outcome (LASH-33).
    pub(super) fn lose(&mut self, fault: CommitFault) {
        self.seal();
        self.stage = Stage::Over;
        self.give(Effect::Finish(Finish::Lost(fault)));
    }

    pub(super) fn committed(&mut self) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Committing(event) => {
                if let EventKind::LoopEnd {
                    outcome, detail, ..
                } = &event.kind
                {
                    let finish = Finish::Done {
                        outcome: outcome.clone(),
                        detail: detail.clone(),
                        usage: self.usage,
                    };
                    self.give(Effect::Publish(*event));
                    if faulty!(self, EventAfterLoopEnd) {
                        let trigger = crate::TurnTrigger::User;
                        let late = self.mint.event(EventKind::TurnStart { trigger });
                        self.give(Effect::Publish(late));
                    }
                    self.give(Effect::Finish(finish));
                }
            }
            other => self.stage = other,
        }
    }

    /// Nothing was stored, so no `LoopEnd` is published.
    pub(super) fn commit_failed(&mut self, fault: CommitFault) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Committing(_) => self.lose(fault),
            other => self.stage = other,
        }
    }
}
