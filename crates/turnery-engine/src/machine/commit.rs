//! Seals the outcome, requests the commit, and publishes the end only after the commit (C-11, R4).

use super::{CommitError, Effect, Loop, LoopFinish, Stage};
use crate::{EventKind, Outcome, TurnStop};
use std::mem;

impl Loop {
    /// Seals the outcome and requests the commit. Cancels received earlier have already won; later ones have
    /// no effect.
    pub(super) fn commit(&mut self, outcome: Outcome) {
        self.return_queued_input();
        let outcome = outcome.or_limit(|| self.exceeded_limit());
        let rejection = match &outcome {
            Outcome::Stopped(TurnStop::InvalidInput { reason }) => Some(reason.clone()),
            Outcome::Finished(..) | Outcome::FrameSwitch { .. } | Outcome::Stopped(_) => None,
        };
        let event = self.emitter.next_event(EventKind::LoopEnd {
            outcome,
            usage: self.usage,
            rejection,
        });
        self.push_effect(Effect::Commit(event.clone()));
        if faulty!(CommitTwice) {
            self.push_effect(Effect::Commit(event.clone()));
        }
        if faulty!(PublishBeforeCommit) {
            self.push_effect(Effect::Publish(event.clone()));
        }
        self.stage = Stage::Committing(Box::new(event));
    }

    /// Finishes without a commit, because nothing may be stored any more: there is no outcome (LASH-33).
    pub(super) fn finish_uncommitted(&mut self, error: CommitError) {
        self.return_queued_input();
        self.stage = Stage::Finished;
        self.push_effect(Effect::Finish(LoopFinish::CommitFailed(error)));
    }

    pub(super) fn handle_committed(&mut self) {
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Committing(event) => {
                if let EventKind::LoopEnd { outcome, .. } = &event.kind {
                    let finish = LoopFinish::Committed {
                        outcome: outcome.clone(),
                        usage: self.usage,
                    };
                    self.push_effect(Effect::Publish(*event));
                    if faulty!(EventAfterLoopEnd) {
                        let trigger = crate::TurnTrigger::User;
                        let late = self.emitter.next_event(EventKind::TurnStart { trigger });
                        self.push_effect(Effect::Publish(late));
                    }
                    self.push_effect(Effect::Finish(finish));
                }
            }
            other => self.stage = other,
        }
    }

    /// Handles a failed commit: nothing was stored, so no `LoopEnd` is published.
    pub(super) fn handle_commit_error(&mut self, error: CommitError) {
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Committing(_) => self.finish_uncommitted(error),
            other => self.stage = other,
        }
    }
}
