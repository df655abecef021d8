//! `SqliteStore` keeps sessions in one SQLite file, shared by all processes of one machine.
//!
//! One thread writes and another reads, so that lists and loads do not wait behind writes; a third one searches.
//! They start on first use; callers never read or write themselves, except through [`InlineRuntime`].
//! [`Durability`] says which writes survive a power cut.

mod check;
mod checksum;
mod claim;
mod cleanup;
mod columns;
mod commit;
mod db;
mod deadlines;
mod deletion;
mod disk;
mod execution;
mod flush;
mod follow;
mod inline_runtime;
mod job_error;
mod journal;
mod lane_columns;
mod lanes;
mod long_texts;
mod loop_numbers;
mod loops;
mod notes;
mod open;
mod open_files;
mod pending_effects;
#[cfg(test)]
mod power_loss;
mod queue;
mod repair;
mod replay;
mod search;
mod search_index;
mod search_postings;
mod sessions;
#[cfg(test)]
mod simulation;
mod stored_loop;
mod survey;
mod transaction;
mod upkeep;
mod worker;

use crate::{
    ChangeMark, ClaimOutcome, ClaimedLane, Clock, Commit, DailyUsage, Damage, Durability,
    FollowFrom, FollowPage, History, Lane, ListPage, ListQuery, LoopBeginning, NewSession,
    NextEffect, Owner, PromptRemoval, QueuedPrompt, RepairReport, ReplayCursor, ReplayPage,
    SearchPage, SearchQuery, SessionInfo, SessionPatch, SpaceReport, Store, StoreDescription,
    StoreFuture, TakenEffect, TranscriptNote, clock::ClockReading, encoding::loop_row::LoopRow,
    journal_append::JournalAppend, lease::COMMIT_TIMEOUT,
};
use db::Db;
use flush::Flush;
pub use inline_runtime::{InlineRuntime, yield_to_ready_tasks};
use job_error::{CHECK_TIMEOUT, JobError};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use turnery_engine::{Event, LoopId, LoopRecord, PromptId, SessionId, Timestamp};
use worker::Worker;

/// Sessions in one SQLite file. Dropping the store writes everything that was queued.
pub struct SqliteStore {
    // Dropped in this order: the last connection to close truncates the log.
    searcher: Worker,
    reader: Worker,
    writer: Worker,
    clock: Clock,
}

impl SqliteStore {
    /// Creates a store for this file. Nothing is read or created before first use.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self::with_clock(path, Clock::system())
    }

    /// Creates a store that takes the time for leases from `clock`.
    #[must_use]
    pub fn with_clock(path: PathBuf, clock: Clock) -> Self {
        let identity = Arc::default();
        let worker = |name| Worker::new(path.clone(), name).with_identity(&identity);
        Self {
            searcher: worker("store-search"),
            reader: worker("store-reader"),
            writer: worker("store-writer"),
            clock,
        }
    }

    /// Runs claims and commits on this runtime while they are quick, instead of on a thread of the store.
    #[must_use]
    pub fn with_inline_runtime(mut self, inline: InlineRuntime) -> Self {
        self.writer.set_inline_runtime(inline);
        self
    }

    /// Flushes writes before or after their answer. The default is [`Durability::Process`].
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.writer.set_durability(durability);
        self
    }

    /// Returns the files that hold the sessions of a store at `path`, whether they exist or not: the database and those
    /// beside it.
    pub fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
        upkeep::files(path)
    }

    /// Reads with the writer's connection while it is idle and the reader has none: opening one takes longer than a short
    /// read, and memory.
    fn read_shortly<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Db) -> Result<T, JobError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        if !self.reader.is_started() && self.writer.is_idle() {
            self.writer.call_short(read)
        } else {
            self.reader.call(read)
        }
    }

    fn queue_deletion<T: Send + 'static>(
        &self,
        id: &SessionId,
        delete: fn(&Connection, &SessionId, ClockReading) -> Result<T, JobError>,
    ) -> StoreFuture<'static, T> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer.call_flushed(move |db| {
            let deleted = delete(&db.sql, &id, clock.reading())?;
            db.loop_numbers.clear();
            db.cleanup.note_deleted_session(id);
            Ok(deleted)
        })
    }

    fn queue_claim(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> StoreFuture<'static, ClaimOutcome> {
        let (id, owner, clock) = (id.clone(), owner.clone(), self.clock.clone());
        self.writer.call_for_lane(&id.clone(), move |db| {
            let mut claim = |beginning| claim::claim(db, &id, &owner, beginning, clock.reading());
            match claim(beginning.as_deref()) {
                // The journal only serves recovery: the claim succeeds without it.
                Err(error) if beginning.is_some() && error.can_retry_without_journal() => {
                    claim(None)
                }
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
    fn prepare(&self) {
        // The reader is opened by the first call that reads, so that it takes no memory before.
        self.writer.prepare();
    }

    fn create(&self, new: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.writer.call_short_flushed(move |db| {
            db.forget_words_of(&new.id)?;
            sessions::create(&db.sql, new)
        })
    }

    fn info(&self, id: &SessionId) -> StoreFuture<'_, SessionInfo> {
        let id = id.clone();
        self.read_shortly(move |db| sessions::get(&db.sql, &id))
    }

    fn list(&self, query: ListQuery) -> StoreFuture<'_, ListPage> {
        self.read_shortly(move |db| sessions::list(&db.sql, &query))
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, SearchPage> {
        let work = move |db: &mut Db| search::search(&db.sql, &query);
        self.searcher
            .call_with_timeout(CHECK_TIMEOUT, Flush::Later, work)
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<'_, bool> {
        self.queue_deletion(id, deletion::delete)
    }

    fn delete_in_use(&self, id: &SessionId) -> StoreFuture<'_, Option<Vec<String>>> {
        self.queue_deletion(id, deletion::force_delete)
    }

    fn loops(&self, id: &SessionId, after: u64) -> StoreFuture<'_, Vec<Arc<LoopRecord>>> {
        let id = id.clone();
        self.reader
            .call(move |db| loops::read_loops(&mut db.sql, &id, after))
    }

    fn history(&self, id: &SessionId) -> StoreFuture<'_, History> {
        let id = id.clone();
        self.reader.call(move |db| loops::history(&mut db.sql, &id))
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> StoreFuture<'_, ReplayPage> {
        let id = id.clone();
        self.reader
            .call(move |db| replay::read_page(&mut db.sql, &id, cursor))
    }

    fn follow_page(&self, id: &SessionId, from: FollowFrom) -> StoreFuture<'_, FollowPage> {
        let id = id.clone();
        self.reader
            .call(move |db| follow::read_page(&mut db.sql, &id, from))
    }

    fn wait_for_change(
        &self,
        _id: &SessionId,
        since: Option<ChangeMark>,
    ) -> StoreFuture<'_, ChangeMark> {
        Box::pin(follow::wait_for_change(&self.reader, since))
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, ClaimedLane> {
        let claimed = self.queue_claim(id, owner, None);
        Box::pin(async move { Ok(claimed.await?.claimed_lane) })
    }

    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> StoreFuture<'_, ClaimOutcome> {
        self.queue_claim(id, owner, Some(beginning))
    }

    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        let (id, owner, loop_id) = (id.clone(), owner.clone(), loop_id.clone());
        // The job runs even though nobody awaits it.
        drop(
            self.writer
                .call_with_timeout(COMMIT_TIMEOUT, Flush::Later, move |db| {
                    journal::discard_loop(&db.sql, &id, &owner, &loop_id).inspect_err(|error| {
                        tracing::warn!(%error, "failed to drop a journal");
                    })
                }),
        );
    }

    fn recover(&self, id: &SessionId) -> StoreFuture<'_, Vec<Damage>> {
        let (key, id) = (id.clone(), id.clone());
        let journalled = self
            .reader
            .call(move |db| journal::has_journal(&db.sql, &key));
        Box::pin(async move {
            if !journalled.await? {
                return Ok(Vec::new());
            }
            let clock = self.clock.clone();
            let recovered = self.writer.call_for_lane(&id.clone(), move |db| {
                claim::recover(db, &id, clock.reading())
            });
            recovered.await
        })
    }

    fn renew(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        let (lane, clock) = (lane.clone(), self.clock.clone());
        self.writer
            .call(move |db| lane_columns::renew(&db.sql, &lane, clock.reading()))
    }

    fn release(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        let lane = lane.clone();
        self.writer
            .call_for_lane(&lane.session_id.clone(), move |db| {
                lane_columns::release(&db.sql, &lane)
            })
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        if let Some(append) = JournalAppend::new(lane, loop_id, events) {
            self.writer.append(append);
        }
    }

    fn append_now(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> StoreFuture<'_, ()> {
        let Some(append) = JournalAppend::new(lane, loop_id, events) else {
            return Box::pin(std::future::ready(Ok(())));
        };
        self.writer.append_and_wait(append)
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, u64> {
        let records = commit.records.iter();
        let checked = commit.check().and_then(|()| {
            records
                .clone()
                .try_for_each(|record| LoopRow::validate(record))
        });
        if let Err(error) = checked {
            return Box::pin(std::future::ready(Err(error)));
        }
        let settles = records.map(|record| (commit.lane.clone(), record.loop_id.clone()));
        self.writer.commit(settles.collect(), move |db| {
            let version = commit::commit(db, &commit)?;
            // A commit to a moved or removed file would be lost.
            db.check_files()?;
            Ok(version)
        })
    }

    fn take_effect(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, NextEffect> {
        let (id, owner, clock) = (id.clone(), owner.clone(), self.clock.clone());
        self.writer
            .call(move |db| pending_effects::take(&db.sql, &id, &owner, clock.reading()))
    }

    fn finish_effect(&self, taken: &TakenEffect) -> StoreFuture<'_, ()> {
        let taken = taken.clone();
        self.writer
            .call(move |db| pending_effects::finish(&db.sql, &taken))
    }

    fn postpone_effect(&self, taken: &TakenEffect, delay: Duration) -> StoreFuture<'_, ()> {
        let (taken, clock) = (taken.clone(), self.clock.clone());
        self.writer
            .call(move |db| pending_effects::postpone(&db.sql, &taken, delay, clock.reading()))
    }

    fn queue_prompt(&self, id: &SessionId, prompt: QueuedPrompt) -> StoreFuture<'_, ()> {
        let id = id.clone();
        self.writer
            .call_flushed(move |db| pending_effects::queue_prompt(&db.sql, &id, prompt))
    }

    fn queued_prompts(&self, id: &SessionId) -> StoreFuture<'_, Vec<QueuedPrompt>> {
        let id = id.clone();
        self.read_shortly(move |db| pending_effects::prompts(&db.sql, &id))
    }

    fn start_queued_prompt(&self, id: &SessionId, prompt: &PromptId) -> StoreFuture<'_, bool> {
        let (id, prompt) = (id.clone(), prompt.clone());
        self.writer
            .call(move |db| pending_effects::start_prompt(&db.sql, &id, &prompt))
    }

    fn remove_queued_prompt(
        &self,
        id: &SessionId,
        prompt: &PromptId,
        removal: PromptRemoval,
    ) -> StoreFuture<'_, bool> {
        let (id, prompt) = (id.clone(), prompt.clone());
        // A prompt that is withdrawn stays so, also after a power cut.
        self.writer
            .call_flushed(move |db| pending_effects::remove_prompt(&db.sql, &id, &prompt, removal))
    }

    fn patch(&self, id: &SessionId, patch: SessionPatch) -> StoreFuture<'_, SessionInfo> {
        let id = id.clone();
        self.writer
            .call(move |db| sessions::patch(&mut db.sql, &id, patch))
    }

    fn add_notes(&self, id: &SessionId, notes: Vec<TranscriptNote>) -> StoreFuture<'_, ()> {
        let id = id.clone();
        self.writer
            .call(move |db| notes::add(&mut db.sql, &id, &notes))
    }

    fn notes(&self, id: &SessionId) -> StoreFuture<'_, Vec<TranscriptNote>> {
        let id = id.clone();
        self.reader
            .call(move |db| notes::read_all(&mut db.sql, &id))
    }

    fn check(&self, id: Option<&SessionId>) -> StoreFuture<'_, Vec<Damage>> {
        let id = id.cloned();
        let work = move |db: &mut Db| check::check(&mut db.sql, id.as_ref());
        self.reader
            .call_with_timeout(CHECK_TIMEOUT, Flush::Later, work)
    }

    fn repair(&self, id: &SessionId) -> StoreFuture<'_, RepairReport> {
        let (id, clock) = (id.clone(), self.clock.clone());
        let work = move |db: &mut Db| repair::repair(&mut db.sql, &id, clock.reading());
        self.writer
            .call_with_timeout(CHECK_TIMEOUT, Flush::Now, work)
    }

    fn daily_usage(&self, since: Option<Timestamp>) -> StoreFuture<'_, Vec<DailyUsage>> {
        let work = move |db: &mut Db| upkeep::daily_usage(&db.sql, since);
        self.reader
            .call_with_timeout(CHECK_TIMEOUT, Flush::Later, work)
    }

    fn session_size(&self, id: &SessionId) -> StoreFuture<'_, u64> {
        let id = id.clone();
        self.reader
            .call(move |db| upkeep::session_size(&db.sql, &id))
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        let path = self.reader.path().to_owned();
        self.reader.call(move |db| upkeep::describe(&db.sql, &path))
    }

    fn vacuum(&self) -> StoreFuture<'_, SpaceReport> {
        let path = self.writer.path().to_owned();
        let work = move |db: &mut Db| {
            let bytes_before = upkeep::size_on_disk(&path);
            let is_done = db.vacuum(&path)?;
            Ok(SpaceReport {
                bytes_before,
                bytes_after: upkeep::size_on_disk(&path),
                is_incomplete: !is_done,
            })
        };
        self.writer
            .call_with_timeout(CHECK_TIMEOUT, Flush::Later, work)
    }

    fn backups(&self) -> StoreFuture<'_, Vec<PathBuf>> {
        self.reader.call(|db| Ok(repair::list_backups(&db.sql)?))
    }
}
