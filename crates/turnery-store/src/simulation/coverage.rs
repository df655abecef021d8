//! Counts what happens in schedules, so that a simulation in which nothing goes wrong is noticed.

use super::{
    history::History,
    request::{Request, Response},
};
use crate::{NextEffect, StoreError};
use std::collections::BTreeMap;

/// Something that must happen in some of the schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Situation {
    /// A lane is claimed whose holder runs, and whose lease is over.
    LaneOfLivingHolder,
    /// A lane is claimed whose holder is dead.
    LaneOfDeadHolder,
    /// A holder claims again.
    ClaimRepeated,
    /// A claim is refused.
    ClaimRefused,
    /// A claim finds a journal.
    JournalFound,
    /// A claim journals the beginning of a loop.
    BeginningJournalled,
    /// A commit of several loops is stored.
    GroupCommitted,
    /// A commit is repeated after it was stored.
    CommitRepeated,
    /// A commit is refused because its lane is lost.
    CommitUnderLostLane,
    /// A commit is refused because of its head.
    CommitOnOtherHead,
    /// A commit is refused because its loop is stored with other content.
    CommitOfOtherContent,
    /// Events arrive under a lost lane.
    AppendUnderLostLane,
    /// A renewal is refused.
    RenewalOfLostLane,
    /// A lost lane is released while somebody else has it.
    ReleaseOfLostLane,
    /// A session in use is not deleted.
    DeletionRefused,
    /// A session in use is deleted by force.
    DeletionForced,
    /// An effect is taken again.
    EffectTakenAgain,
    /// An effect is refused, because another process has it or because it is postponed.
    EffectRefused,
}

impl Situation {
    pub(crate) const ALL: [Self; 18] = [
        Self::LaneOfLivingHolder,
        Self::LaneOfDeadHolder,
        Self::ClaimRepeated,
        Self::ClaimRefused,
        Self::JournalFound,
        Self::BeginningJournalled,
        Self::GroupCommitted,
        Self::CommitRepeated,
        Self::CommitUnderLostLane,
        Self::CommitOnOtherHead,
        Self::CommitOfOtherContent,
        Self::AppendUnderLostLane,
        Self::RenewalOfLostLane,
        Self::ReleaseOfLostLane,
        Self::DeletionRefused,
        Self::DeletionForced,
        Self::EffectTakenAgain,
        Self::EffectRefused,
    ];
}

/// Numbers of situations.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<Situation, u64>);

impl Coverage {
    fn count(&mut self, situation: Situation, happens: bool) {
        if happens {
            *self.0.entry(situation).or_default() += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (situation, count) in &other.0 {
            *self.0.entry(*situation).or_default() += count;
        }
    }

    /// Returns the situations that have not happened.
    pub(crate) fn missing(&self) -> Vec<Situation> {
        let missing = Situation::ALL.iter();
        let missing = missing.filter(|it| !self.0.contains_key(it));
        missing.copied().collect()
    }

    /// Counts a claim that has turned a journal into loops.
    pub(crate) fn note_journal(&mut self) {
        self.count(Situation::JournalFound, true);
    }

    /// Counts the situations of a request, given the history before it.
    pub(crate) fn note(&mut self, history: &History, request: &Request, response: &Response) {
        let session = request.session();
        let current = history.lane(session);
        let is_held = current.is_some();
        match (request, response) {
            (Request::Claim { owner, .. }, Response::Claimed(Ok(outcome))) => {
                let is_own = current.is_some_and(|lane| lane.owner_id == owner.id);
                let is_running = history.is_holder_running(session);
                self.count(Situation::ClaimRepeated, is_own);
                let is_taken = is_held && !is_own;
                self.count(Situation::LaneOfLivingHolder, is_taken && is_running);
                self.count(Situation::LaneOfDeadHolder, is_taken && !is_running);
                let has_journal = history
                    .journal(session)
                    .is_some_and(|(_, it)| !it.is_empty());
                self.count(Situation::JournalFound, has_journal);
                self.count(Situation::BeginningJournalled, outcome.is_journalled);
            }
            (Request::Claim { .. }, Response::Claimed(Err(StoreError::Busy { .. }))) => {
                self.count(Situation::ClaimRefused, true);
            }
            (Request::Commit(commit), Response::Committed(result)) => match result {
                Ok(_) => {
                    let is_stored = history.is_stored(commit);
                    let is_group = commit.records.len() > 1;
                    self.count(Situation::CommitRepeated, is_stored);
                    self.count(Situation::GroupCommitted, is_group && !is_stored);
                }
                Err(StoreError::LaneLost(_)) => {
                    self.count(Situation::CommitUnderLostLane, true);
                }
                Err(StoreError::HeadConflict { .. }) => {
                    self.count(Situation::CommitOnOtherHead, true);
                }
                Err(StoreError::CommitMismatch(_)) => {
                    self.count(Situation::CommitOfOtherContent, true);
                }
                Err(_) => {}
            },
            (Request::Append { lane, .. }, _) => {
                let is_lost = current.as_ref() != Some(lane);
                self.count(Situation::AppendUnderLostLane, is_lost && is_held);
            }
            (Request::Renew(_), Response::Done(result)) => {
                self.count(Situation::RenewalOfLostLane, result.is_err());
            }
            (Request::Release(lane), _) => {
                let is_lost = current.as_ref() != Some(lane);
                self.count(Situation::ReleaseOfLostLane, is_lost && is_held);
            }
            (Request::Delete { is_forced, .. }, Response::Deleted(result)) => {
                self.count(Situation::DeletionRefused, result.is_err());
                self.count(Situation::DeletionForced, *is_forced && is_held);
            }
            (Request::TakeEffect { .. }, Response::Effect(Ok(next))) => match next {
                NextEffect::Taken(taken) => {
                    self.count(Situation::EffectTakenAgain, taken.attempt > 1);
                }
                NextEffect::Later(_) => self.count(Situation::EffectRefused, true),
                NextEffect::Empty => {}
            },
            _ => {}
        }
    }
}
