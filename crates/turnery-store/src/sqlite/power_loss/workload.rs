//! Operations of a busy store.

use super::samples::*;
use crate::{
    Commit, Lane, LoopBeginning, NextEffect, PendingEffect, RememberedApproval, SessionPatch,
    Store, StoreError, TakenEffect, TranscriptNote,
};
use serde_json::json;
use std::{collections::HashMap, sync::Arc};
use turnery_engine::LoopRecord;

/// One operation, which is done as a whole or not at all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Create(&'static str),
    /// Claims the session, and journals this many events of a loop in the same step.
    Begin(&'static str, u32, usize),
    /// Journals the events of a loop up to this one, and waits until they are written.
    Journal(&'static str, u32, usize),
    /// Commits a loop, with this many effects.
    Commit(&'static str, u32, usize),
    /// Commits a loop with a long question, and releases the session.
    CommitLong(&'static str, u32),
    /// Remembers an approval.
    Approve(&'static str),
    Rename(&'static str),
    Note(&'static str),
    Release(&'static str),
    Delete(&'static str),
    TakeEffect(&'static str),
    FinishEffect,
    /// Copies the log to the database. Changes nothing that can be seen.
    Checkpoint,
    /// Frees the space of deleted sessions, and empties the log.
    CleanUp,
    /// Closes the store and opens it again.
    Reopen,
}

use Op::*;

/// Everything that a store does, with several checkpoints in between.
pub(super) const BUSY: &[Op] = &[
    Create("s1"),
    Approve("s1"),
    Begin("s1", 1, 4),
    Journal("s1", 1, 6),
    Journal("s1", 1, 8),
    Commit("s1", 1, 2),
    Note("s1"),
    Begin("s1", 2, 4),
    Create("s2"),
    Rename("s2"),
    Begin("s2", 1, 3),
    Journal("s1", 2, 7),
    Checkpoint,
    Commit("s1", 2, 0),
    TakeEffect("s1"),
    CommitLong("s2", 1),
    FinishEffect,
    Checkpoint,
    Begin("s2", 2, 4),
    Journal("s2", 2, 6),
    Reopen,
    Begin("s1", 3, 4),
    Journal("s1", 3, 5),
    Commit("s1", 3, 1),
    Create("s3"),
    Release("s1"),
    Delete("s1"),
    CleanUp,
    Begin("s3", 1, 4),
    Commit("s3", 1, 0),
    Commit("s2", 2, 0),
    Note("s2"),
];

/// Fewer operations, for tests that run them many times.
pub(super) const SHORT: &[Op] = &[
    Create("s1"),
    Approve("s1"),
    Begin("s1", 1, 4),
    Journal("s1", 1, 6),
    Commit("s1", 1, 1),
    Checkpoint,
    Begin("s1", 2, 4),
    Commit("s1", 2, 0),
    Create("s2"),
    Release("s1"),
    Checkpoint,
    Delete("s1"),
    Begin("s2", 1, 4),
    CleanUp,
    Commit("s2", 1, 0),
];

/// Returns the record of a loop. A long one has a text that is stored in pieces of its own.
pub(super) fn record_of(session: &str, number: u32, is_long: bool) -> Arc<LoopRecord> {
    let text = match is_long {
        true => "Well?\n".repeat(12_000),
        false => "Well?".to_owned(),
    };
    Arc::new(record(session, number, &text))
}

/// Returns the effects of a commit.
pub(super) fn effects_of(id: &str, number: u32, count: usize) -> Vec<PendingEffect> {
    let effect = |index| PendingEffect {
        session_id: id.into(),
        key: format!("{}/{index}", loop_id(id, number)),
        tool_name: "order".into(),
        effect: json!({"number": index}),
    };
    (0..count).map(effect).collect()
}

/// What the caller of a store knows.
#[derive(Default)]
pub(super) struct Caller {
    lanes: HashMap<&'static str, Lane>,
    heads: HashMap<&'static str, u64>,
    taken: Option<TakenEffect>,
    notes: u64,
}

impl Caller {
    /// Runs an operation; those of the test's own are left to the caller.
    pub(super) async fn run(&mut self, store: &dyn Store, op: Op) -> Result<(), StoreError> {
        match op {
            Create(id) => store.create(new_session(id)).await.map(drop),
            Begin(id, number, count) => {
                let record = record_of(id, number, false);
                let events = record.events[..count].to_vec();
                let beginning = LoopBeginning {
                    expected_head: self.head(id),
                    loop_id: record.loop_id.clone(),
                    events: events.clone(),
                };
                let begun = store
                    .claim_and_journal(&id.into(), &owner("a"), beginning.into())
                    .await?;
                let lane = begun.claimed_lane.lane;
                self.lanes.insert(id, lane.clone());
                match begun.is_journalled {
                    true => Ok(()),
                    false => store.append_now(&lane, &record.loop_id, events).await,
                }
            }
            Journal(id, number, count) => {
                let record = record_of(id, number, false);
                // From the first event, as after a failure. The first half is written with the second.
                let (first, second) = record.events[..count].split_at(count / 2);
                store.append(self.lane(id), &record.loop_id, first.to_vec());
                let written = store.append_now(self.lane(id), &record.loop_id, second.to_vec());
                written.await
            }
            Commit(id, number, effects) => {
                let committed = self.commit(store, id, number, effects, false);
                committed.await
            }
            CommitLong(id, number) => self.commit(store, id, number, 0, true).await,
            Approve(id) => {
                let patch = SessionPatch {
                    always: Some(RememberedApproval::Allow("shell(cargo test:*)".into())),
                    ..SessionPatch::default()
                };
                store.patch(&id.into(), patch).await.map(drop)
            }
            Rename(id) => {
                let patch = SessionPatch {
                    title: Some(Some("Renamed".into())),
                    ..SessionPatch::default()
                };
                store.patch(&id.into(), patch).await.map(drop)
            }
            Note(id) => {
                self.notes += 1;
                let message = message(&loop_id(id, 9), "note", user("/help"));
                let note = TranscriptNote {
                    at: at(self.notes),
                    message: (*message).clone(),
                };
                store.add_notes(&id.into(), vec![note]).await
            }
            Release(id) => store.release(self.lane(id)).await,
            Delete(id) => match store.delete(&id.into()).await {
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            },
            TakeEffect(id) => {
                if let NextEffect::Taken(taken) = store.take_effect(&id.into(), &owner("a")).await?
                {
                    self.taken = Some(taken);
                }
                Ok(())
            }
            FinishEffect => match &self.taken {
                Some(taken) => store.finish_effect(taken).await,
                None => Ok(()),
            },
            Checkpoint | CleanUp | Reopen => Ok(()),
        }
    }

    async fn commit(
        &mut self,
        store: &dyn Store,
        id: &'static str,
        number: u32,
        effects: usize,
        is_long: bool,
    ) -> Result<(), StoreError> {
        let record = record_of(id, number, is_long);
        let commit = Commit {
            title: Some("Well?".into()),
            effects: effects_of(id, number, effects),
            release: is_long,
            ..commit_of(self.lane(id), self.head(id), &record)
        };
        let version = store.commit(commit).await?;
        self.heads.insert(id, version);
        Ok(())
    }

    fn lane(&self, id: &str) -> &Lane {
        &self.lanes[id]
    }

    fn head(&self, id: &str) -> u64 {
        self.heads.get(id).copied().unwrap_or_default()
    }
}
