//! Ending: the outcome is sealed, stored, and only then published (C-11, R4).

use super::{CommitFault, Effect, Finish, Loop, Stage};
use crate::{Detail, EventKind, Outcome, Timestamp};
use std::mem;

impl Loop {
    /// Seal the outcome. A cancel seen before this has won already; one seen later comes too late.
    pub(super) fn commit(
        &mut self,
        now: Timestamp,
        outcome: Outcome,
        detail: Option<Detail>,
        out: &mut Vec<Effect>,
    ) {
        let kind = EventKind::LoopEnd {
            outcome,
            detail,
            usage: self.usage,
            rejection: None,
        };
        let event = self.mint.event(now, kind);
        out.push(Effect::Commit(event.clone()));
        if faulty!(self, CommitTwice) {
            out.push(Effect::Commit(event.clone()));
        }
        if faulty!(self, PublishBeforeCommit) {
            out.push(Effect::Publish(event.clone()));
        }
        self.stage = Stage::Committing(Box::new(event));
    }

    pub(super) fn committed(&mut self, out: &mut Vec<Effect>) {
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
                    out.push(Effect::Publish(*event));
                    if faulty!(self, EventAfterLoopEnd) {
                        out.push(Effect::Publish(self.mint.event(
                            Timestamp::default(),
                            EventKind::TurnStart {
                                trigger: crate::TurnTrigger::User,
                            },
                        )));
                    }
                    out.push(Effect::Finish(finish));
                }
            }
            other => self.stage = other,
        }
    }

    /// Nothing was stored, so no `LoopEnd` is published.
    pub(super) fn commit_failed(&mut self, fault: CommitFault, out: &mut Vec<Effect>) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Committing(_) => out.push(Effect::Finish(Finish::Lost(fault))),
            other => self.stage = other,
        }
    }
}
