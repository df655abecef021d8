//! `SqliteStore`: sessions in one SQLite file, for all processes of one machine.
//!
//! One thread writes, another reads, so that lists and loads do not wait behind writes. Both start
//! when first needed; no caller ever reads or writes itself. Commits are flushed to the disk at once;
//! claims and journals are not, since a claim that a power cut undoes has no holder any more, and a
//! journal is evidence only.

mod check;
mod checksum;
mod commit;
mod db;
mod deadlines;
mod fault;
mod fields;
mod flush;
mod identity;
mod inline;
mod journal;
mod lanes;
mod log;
mod loops;
mod open;
mod queue;
mod remarks;
mod repair;
mod rows;
mod sessions;
mod shown;
mod survey;
mod texts;
mod tidy;
mod worker;

use crate::{
    COMMIT_PATIENCE, ClaimOutcome, Clock, Commit, Damage, History, Lane, ListPage, ListQuery,
    LoopBeginning, NewSession, Opened, Owner, Page, Remark, Repair, Rest, SessionInfo,
    SessionPatch, Store, StoreError,
};
use db::Db;
use fault::CHECK_PATIENCE;
use flush::Flush;
use futures_util::future::BoxFuture;
pub use inline::Inline;
use rows::Row;
use std::{path::PathBuf, sync::Arc};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId};
use worker::{Settles, Worker};

/// Sessions in one SQLite file. When it is dropped, all that was queued has been written.
pub struct SqliteStore {
    // Dropped in this order: the last connection to close tidies the log.
    reader: Worker,
    writer: Worker,
    clock: Clock,
}

impl SqliteStore {
    /// A store in this file. Nothing is read or made until it is first used.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self::with_clock(path, Clock::system())
    }

    /// A store that takes the time of its lanes from `clock`.
    #[must_use]
    pub fn with_clock(path: PathBuf, clock: Clock) -> Self {
        Self {
            reader: Worker::new(path.clone(), "store-reader"),
            writer: Worker::new(path, "store-writer"),
            clock,
        }
    }

    /// Has claims and commits done by this runtime while they are quick, rather than by a thread of the store.
    #[must_use]
    pub fn inline(mut self, inline: Inline) -> Self {
        self.writer.inline(inline);
        self
    }

    fn queue_claim(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> BoxFuture<'static, Result<ClaimOutcome, StoreError>> {
        let (id, owner, clock) = (id.clone(), owner.clone(), self.clock.clone());
        self.writer.settle(&id.clone(), move |db| {
            let mut claim = |beginning| lanes::claim(db, &id, &owner, beginning, clock.moment());
            match claim(beginning.as_deref()) {
                // The journal is evidence only: a claim succeeds without it.
                Err(fault) if beginning.is_some() && fault.may_spare_journal() => claim(None),
                claimed => claimed,
            }
        })
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    fn create(&self, new: NewSession) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        self.writer.call(Flush::Now, Settles::new(), move |db| {
            sessions::create(&mut db.sql, new)
        })
    }

    fn info(&self, id: &SessionId) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        let id = id.clone();
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            sessions::info(&mut db.sql, &id)
        })
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<ListPage, StoreError>> {
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            sessions::list(&mut db.sql, &query)
        })
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer.call(Flush::Now, Settles::new(), move |db| {
            let deleted = sessions::delete(&db.sql, &id, clock.moment())?;
            db.numbers.clear();
            db.tidy.note_deletion();
            Ok(deleted)
        })
    }

    fn delete_in_use(
        &self,
        id: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Vec<String>>, StoreError>> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer.call(Flush::Now, Settles::new(), move |db| {
            let deleted = sessions::delete_in_use(&db.sql, &id, clock.moment())?;
            db.numbers.clear();
            db.tidy.note_deletion();
            Ok(deleted)
        })
    }

    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>> {
        let id = id.clone();
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            loops::read(&mut db.sql, &id, after)
        })
    }

    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>> {
        let id = id.clone();
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            loops::history(&mut db.sql, &id)
        })
    }

    fn shown(&self, id: &SessionId, rest: Option<Rest>) -> BoxFuture<'_, Result<Page, StoreError>> {
        let id = id.clone();
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            shown::shown(&mut db.sql, &id, rest)
        })
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> BoxFuture<'_, Result<Opened, StoreError>> {
        let claimed = self.queue_claim(id, owner, None);
        Box::pin(async move { Ok(claimed.await?.opened) })
    }

    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> BoxFuture<'_, Result<ClaimOutcome, StoreError>> {
        self.queue_claim(id, owner, Some(beginning))
    }

    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        let (id, owner, loop_id) = (id.clone(), owner.clone(), loop_id.clone());
        // Work that nobody waits for is done all the same.
        drop(
            self.writer
                .call_within(COMMIT_PATIENCE, Flush::Later, Settles::new(), move |db| {
                    journal::forget(&db.sql, &id, &owner, &loop_id).inspect_err(|fault| {
                        tracing::warn!(error = fault.in_words(), "failed to drop a journal");
                    })
                }),
        );
    }

    fn recover(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        let (key, id) = (id.clone(), id.clone());
        let journalled = self.reader.call(Flush::Later, Settles::new(), move |db| {
            journal::is_there(&db.sql, &key)
        });
        Box::pin(async move {
            if !journalled.await? {
                return Ok(Vec::new());
            }
            let clock = self.clock.clone();
            let recovered = self.writer.settle(&id.clone(), move |db| {
                lanes::recover(db, &id, clock.moment())
            });
            recovered.await
        })
    }

    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        let (lane, clock) = (lane.clone(), self.clock.clone());
        self.writer.call(Flush::Later, Settles::new(), move |db| {
            lanes::renew(&mut db.sql, &lane, clock.moment())
        })
    }

    fn release(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        let lane = lane.clone();
        self.writer.settle(&lane.session_id.clone(), move |db| {
            lanes::release(&db.sql, &lane)
        })
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        if let Some(append) = journal::Append::new(lane, loop_id, events) {
            self.writer.append(append);
        }
    }

    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let Some(append) = journal::Append::new(lane, loop_id, events) else {
            return Box::pin(std::future::ready(Ok(())));
        };
        self.writer.append_now(append)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        let records = commit.records.iter();
        let checked = commit
            .check()
            .and_then(|()| records.clone().try_for_each(|record| Row::check(record)));
        if let Err(error) = checked {
            return Box::pin(std::future::ready(Err(error)));
        }
        let settles = records.map(|record| (commit.lane.clone(), record.loop_id.clone()));
        self.writer.commit(settles.collect(), move |db| {
            let version = commit::commit(db, &commit)?;
            // Nobody would find a commit in a file that was taken away meanwhile.
            db.check_files()?;
            Ok(version)
        })
    }

    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        let id = id.clone();
        self.writer.call(Flush::Later, Settles::new(), move |db| {
            sessions::patch(&mut db.sql, &id, patch)
        })
    }

    fn remark(&self, id: &SessionId, said: Vec<Remark>) -> BoxFuture<'_, Result<(), StoreError>> {
        let id = id.clone();
        self.writer.call(Flush::Later, Settles::new(), move |db| {
            remarks::add(&mut db.sql, &id, &said)
        })
    }

    fn remarks(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Remark>, StoreError>> {
        let id = id.clone();
        self.reader.call(Flush::Later, Settles::new(), move |db| {
            remarks::all(&mut db.sql, &id)
        })
    }

    fn check(&self, id: Option<&SessionId>) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        let id = id.cloned();
        let work = move |db: &mut Db| check::check(&mut db.sql, id.as_ref());
        self.reader
            .call_within(CHECK_PATIENCE, Flush::Later, Settles::new(), work)
    }

    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<Repair, StoreError>> {
        let (id, clock) = (id.clone(), self.clock.clone());
        let work = move |db: &mut Db| repair::repair(&mut db.sql, &id, clock.moment());
        self.writer
            .call_within(CHECK_PATIENCE, Flush::Now, Settles::new(), work)
    }

    fn copies(&self) -> BoxFuture<'_, Result<Vec<PathBuf>, StoreError>> {
        self.reader.call(Flush::Later, Settles::new(), |db| {
            Ok(repair::copies(&db.sql)?)
        })
    }
}
