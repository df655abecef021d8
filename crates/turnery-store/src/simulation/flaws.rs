//! Flaws that tests seed below the simulated processes, to check that the simulation finds them.

use super::{
    backend::{Backend, ProcessTime},
    history::History,
    machine::SimulatedMachine,
    request::{Progress, Request, Response},
};
use crate::{StoreError, TakenEffect};
use std::{sync::Arc, time::Duration};
use turnery_engine::{LoopId, LoopRecord};

/// Flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "some are of PostgreSQL only")
)]
pub(crate) enum Flaw {
    /// Every committer counts as the holder of the lane.
    CommitWithoutFence,
    /// Everybody who journals counts as the holder of the lane.
    AppendWithoutFence,
    /// Events that are dropped since the lane is lost are confirmed.
    LostAppendConfirmed,
    /// Everybody who releases counts as the holder of the lane: a newer holder is evicted.
    ReleaseWithoutFence,
    /// Every expected head counts as the current one.
    CommitWithoutHead,
    /// Only the first loop of a commit is stored.
    PartialCommit,
    /// The effects of a commit are not stored.
    CommitWithoutEffects,
    /// A commit is acknowledged and not stored.
    CommitForgotten,
    /// A repeated commit is refused.
    RetryRefused,
    /// A repeated commit of a loop stores it again, under another id.
    RetryStoredTwice,
    /// A refused commit stores its loops.
    RefusedCommitStored,
    /// The lease of a holder is over too early.
    LeaseTooShort,
    /// The lease of a holder is never over.
    LeaseNeverOver,
    /// Renewals are acknowledged and not written.
    HeartbeatIgnored,
    /// Living processes count as gone.
    LifeIgnored,
    /// Processes that are gone count as living.
    DeathIgnored,
    /// A claim gets the generation of the last one.
    GenerationRepeated,
    /// A claim drops the journal of the last holder.
    JournalDropped,
    /// A claim reports a smaller number than the last one.
    NumberForgotten,
    /// A session in use is deleted.
    DeletedInUse,
    /// Two processes get the same effect.
    EffectTakenTwice,
    /// An effect that was delivered is not removed.
    EffectNotFinished,
    /// A claim does not compare the holder that it replaces with the one whose lease is over. Of the model of PostgreSQL.
    ReplacedWithoutComparison,
    /// An effect is taken without comparing its attempts. Of the model of PostgreSQL.
    TakenWithoutComparison,
}

/// Longer than any lease.
const LATER: Duration = Duration::from_secs(300);

impl Flaw {
    /// Executes a request like the backend does, with the flaw.
    pub(super) fn perform(
        self,
        backend: &mut dyn Backend,
        history: &History,
        mut time: ProcessTime,
        request: &Request,
        progress: &mut Progress,
    ) -> Option<Response> {
        let mut request = request.clone();
        let current = history.lane(request.session());
        let head = history.head(request.session());
        match (self, &mut request) {
            (Self::CommitWithoutFence, Request::Commit(commit)) if !history.is_stored(commit) => {
                commit.lane = current.unwrap_or(commit.lane.clone());
            }
            (Self::AppendWithoutFence, Request::Append { lane, .. })
            | (Self::ReleaseWithoutFence, Request::Release(lane)) => {
                *lane = current.unwrap_or(lane.clone());
            }
            (Self::CommitWithoutHead, Request::Commit(commit)) => commit.expected_head = head,
            (Self::PartialCommit, Request::Commit(commit)) => commit.records.truncate(1),
            (Self::CommitWithoutEffects, Request::Commit(commit)) => commit.effects.clear(),
            (Self::CommitForgotten, Request::Commit(commit))
                if Some(&commit.lane) == current.as_ref() && commit.expected_head == head =>
            {
                return Some(Response::Committed(Ok(head + 1)));
            }
            (Self::RetryRefused, Request::Commit(commit)) if history.is_stored(commit) => {
                let loop_id = commit.records[0].loop_id.clone();
                let refusal = StoreError::CommitMismatch(loop_id);
                return Some(Response::Committed(Err(refusal)));
            }
            (Self::RetryStoredTwice, Request::Commit(commit)) => {
                if history.is_stored(commit)
                    && let Some(lane) = current
                {
                    commit.lane = lane;
                    commit.expected_head = head;
                    for record in &mut commit.records {
                        *record = with_new_id(record);
                    }
                }
            }
            (Self::RefusedCommitStored, Request::Commit(commit)) => {
                let expected = commit.expected_head;
                let is_holder = Some(&commit.lane) == current.as_ref();
                if expected != head && is_holder && !history.is_stored(commit) {
                    commit.expected_head = head;
                    perform_whole(backend, time, &request);
                    let conflict = StoreError::HeadConflict {
                        expected,
                        actual: head,
                    };
                    return Some(Response::Committed(Err(conflict)));
                }
            }
            (Self::LeaseTooShort, Request::Claim { .. }) => {
                time.wall += LATER;
                time.monotonic += LATER;
            }
            (Self::LeaseNeverOver, Request::Renew(_)) => {
                time.wall += LATER * 100;
                time.monotonic += LATER * 100;
            }
            (Self::HeartbeatIgnored, Request::Renew(lane)) if Some(&*lane) == current.as_ref() => {
                return Some(Response::Done(Ok(())));
            }
            (Self::LifeIgnored, Request::Claim { .. } | Request::Recover(_))
            | (Self::EffectTakenTwice, Request::TakeEffect { .. }) => {
                if let Some(here) = SimulatedMachine::here() {
                    SimulatedMachine::new(here.place).enter();
                }
            }
            (Self::JournalDropped, Request::Claim { .. }) => {
                if let Some((owner, loops)) = history.journal(request.session()) {
                    for loop_id in loops {
                        let forget = Request::ForgetJournal {
                            session: request.session().clone(),
                            owner: owner.clone(),
                            loop_id,
                        };
                        perform_whole(backend, time, &forget);
                    }
                }
            }
            (Self::DeletedInUse, Request::Delete { is_forced, .. }) => *is_forced = true,
            (Self::EffectNotFinished, Request::FinishEffect(TakenEffect { .. })) => {
                return Some(Response::Done(Ok(())));
            }
            _ => {}
        }
        let mut response = backend.perform(time, &request, progress)?;
        if self == Self::LostAppendConfirmed && matches!(request, Request::Append { .. }) {
            response = Response::Done(Ok(()));
        }
        if let Response::Claimed(Ok(outcome)) = &mut response {
            let claimed = &mut outcome.claimed_lane;
            match self {
                Self::GenerationRepeated => {
                    claimed.lane.fence = claimed.lane.fence.saturating_sub(1).max(1);
                }
                Self::NumberForgotten => {
                    claimed.last_number = claimed.last_number.saturating_sub(1);
                }
                _ => {}
            }
        }
        Some(response)
    }
}

/// Returns the same loop under another id.
fn with_new_id(record: &LoopRecord) -> Arc<LoopRecord> {
    let loop_id = LoopId::from(format!("{}99", record.loop_id));
    let mut record = record.clone();
    for event in &mut record.events {
        event.loop_id = loop_id.clone();
    }
    for turn in &mut record.turns {
        turn.turn_id.loop_id = loop_id.clone();
    }
    Arc::new(LoopRecord { loop_id, ..record })
}

fn perform_whole(backend: &mut dyn Backend, time: ProcessTime, request: &Request) {
    let mut progress = Progress::Start;
    while backend.perform(time, request, &mut progress).is_none() {}
}
