//! Calls of a store, as values that can be delayed, lost and repeated.

use crate::{
    ClaimOutcome, Commit, Lane, LoopBeginning, NextEffect, Owner, StoreError, TakenEffect,
};
use std::{sync::Arc, time::Duration};
use turnery_engine::{Event, LoopId, SessionId, Timestamp};

/// A call of a store.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Claim {
        session: SessionId,
        owner: Owner,
        beginning: Option<Arc<LoopBeginning>>,
    },
    ForgetJournal {
        session: SessionId,
        owner: Owner,
        loop_id: LoopId,
    },
    Append {
        lane: Lane,
        loop_id: LoopId,
        events: Vec<Event>,
        /// True for `append_now`.
        is_awaited: bool,
    },
    Commit(Commit),
    Renew(Lane),
    Release(Lane),
    Recover(SessionId),
    Delete {
        session: SessionId,
        is_forced: bool,
    },
    TakeEffect {
        session: SessionId,
        owner: Owner,
    },
    FinishEffect(TakenEffect),
    PostponeEffect(TakenEffect, Duration),
}

/// Answer of a store.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "answers are not stored")]
pub(crate) enum Response {
    Claimed(Result<ClaimOutcome, StoreError>),
    Committed(Result<u64, StoreError>),
    Deleted(Result<bool, StoreError>),
    Effect(Result<NextEffect, StoreError>),
    /// Answer of every other call.
    Done(Result<(), StoreError>),
}

/// Part of a request that was executed, of one that takes several statements.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "some are of PostgreSQL only")
)]
pub(crate) enum Progress {
    #[default]
    Start,
    /// A claim found a holder with this fence and heartbeat, whose lease is over.
    FoundDead {
        fence: u64,
        heartbeat_at: Option<Timestamp>,
    },
    /// A claim found a journal.
    FoundJournal,
    /// A commit was refused, for a reason to be found out.
    Refused,
    /// The first free effect was found.
    FoundEffect {
        key: String,
        attempts: u32,
        held_until: Option<Timestamp>,
    },
}

impl Request {
    pub(crate) fn session(&self) -> &SessionId {
        match self {
            Self::Claim { session, .. }
            | Self::ForgetJournal { session, .. }
            | Self::Recover(session)
            | Self::Delete { session, .. }
            | Self::TakeEffect { session, .. } => session,
            Self::Append { lane, .. } | Self::Renew(lane) | Self::Release(lane) => &lane.session_id,
            Self::Commit(commit) => &commit.lane.session_id,
            Self::FinishEffect(taken) | Self::PostponeEffect(taken, _) => &taken.pending.session_id,
        }
    }

    /// Describes the request in a few words.
    pub(crate) fn describe(&self) -> String {
        let lane_of = |lane: &Lane| format!("{} with generation {}", lane.owner_id, lane.fence);
        let session = self.session();
        match self {
            Self::Claim {
                owner, beginning, ..
            } => match beginning {
                Some(it) => format!("{} claims {session} and journals {}", owner.id, it.loop_id),
                None => format!("{} claims {session}", owner.id),
            },
            Self::ForgetJournal { owner, loop_id, .. } => {
                format!("{} forgets the journal of {loop_id}", owner.id)
            }
            Self::Append {
                lane,
                loop_id,
                events,
                is_awaited,
            } => {
                let first = events.first().map_or(0, |event| event.seq);
                let last = events.last().map_or(0, |event| event.seq);
                let awaited = match is_awaited {
                    true => "",
                    false => ", not awaited",
                };
                let lane = lane_of(lane);
                format!("{lane} journals events {first} to {last} of {loop_id}{awaited}")
            }
            Self::Commit(commit) => {
                let loops = commit.records.iter().map(|record| record.loop_id.as_str());
                let loops: Vec<&str> = loops.collect();
                format!(
                    "{} commits {} on head {}, with {} effects{}",
                    lane_of(&commit.lane),
                    loops.join(" and "),
                    commit.expected_head,
                    commit.effects.len(),
                    match commit.release {
                        true => ", and releases",
                        false => "",
                    }
                )
            }
            Self::Renew(lane) => format!("{} renews {session}", lane_of(lane)),
            Self::Release(lane) => format!("{} releases {session}", lane_of(lane)),
            Self::Recover(_) => format!("journals of {session} are recovered"),
            Self::Delete { is_forced, .. } => match is_forced {
                true => format!("{session} is deleted by force"),
                false => format!("{session} is deleted"),
            },
            Self::TakeEffect { owner, .. } => format!("{} takes an effect of {session}", owner.id),
            Self::FinishEffect(taken) => format!("effect {} is finished", taken.pending.key),
            Self::PostponeEffect(taken, delay) => {
                let key = &taken.pending.key;
                format!("effect {key} is postponed by {} s", delay.as_secs())
            }
        }
    }
}

impl Response {
    /// Describes the answer in a few words.
    pub(crate) fn describe(&self) -> String {
        fn error<T>(result: &Result<T, StoreError>) -> Option<String> {
            result.as_ref().err().map(StoreError::to_string)
        }
        let done = || "done".to_owned();
        match self {
            Self::Claimed(Ok(outcome)) => {
                let claimed = &outcome.claimed_lane;
                let (fence, head) = (claimed.lane.fence, claimed.info.head_version);
                let last = claimed.last_number;
                format!("generation {fence}, head {head}, last number {last}")
            }
            Self::Committed(Ok(version)) => format!("version {version}"),
            Self::Deleted(Ok(existed)) => format!("it existed: {existed}"),
            Self::Effect(Ok(NextEffect::Taken(taken))) => {
                format!("{}, attempt {}", taken.pending.key, taken.attempt)
            }
            Self::Effect(Ok(other)) => format!("{other:?}"),
            Self::Claimed(result) => error(result).unwrap_or_else(done),
            Self::Committed(result) => error(result).unwrap_or_else(done),
            Self::Deleted(result) => error(result).unwrap_or_else(done),
            Self::Effect(result) => error(result).unwrap_or_else(done),
            Self::Done(result) => error(result).unwrap_or_else(done),
        }
    }
}
