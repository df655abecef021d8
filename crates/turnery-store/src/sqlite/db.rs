//! Wraps a connection with its cached state.

use super::{
    cleanup::Cleanup,
    flush::WriteAheadLog,
    job_error::JobError,
    journal::{self, JournalAppend},
    lanes::LoopNumbers,
    open::open,
    open_files::OpenFiles,
    worker::TruncatedJournals,
};
use crate::StoreError;
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};
use turnery_engine::SessionId;

/// A connection with its cached state.
pub(super) struct Db {
    pub(super) sql: Connection,
    /// Sessions whose `journal` has no rows while a lane with this fence is held: it was emptied by a claim on
    /// this connection, and nothing was journalled here since.
    pub(super) clean: HashMap<SessionId, u64>,
    /// Loop numbers of sessions claimed on this connection.
    pub(super) numbers: HashMap<SessionId, LoopNumbers>,
    /// True after a write since the last checkpoint.
    pub(super) dirty: bool,
    pub(super) log: Arc<WriteAheadLog>,
    pub(super) tidy: Cleanup,
    files: OpenFiles,
}

impl Db {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let (sql, files) = open(path)?;
        Ok(Self {
            sql,
            files,
            clean: HashMap::new(),
            numbers: HashMap::new(),
            dirty: false,
            log: Arc::new(WriteAheadLog::of(path)),
            tidy: Cleanup::default(),
        })
    }

    /// Writes events to the journal and removes them from `appends`. After a transient error, such as a full
    /// disk or a lock held for longer than `patience`, they remain there for the next attempt; after any other,
    /// they are dropped and their loops are added to `cut`. Logs the error that it returns.
    pub(super) fn write_journal(
        &mut self,
        path: &Path,
        appends: &mut Vec<JournalAppend>,
        cut: &TruncatedJournals,
        patience: Duration,
    ) -> Result<(), StoreError> {
        if appends.is_empty() {
            return Ok(());
        }
        let written = self
            .set_lock_timeout(patience)
            .and_then(|()| self.files.check())
            .and_then(|()| journal::write_appends(self, appends));
        let Err(error) = written else {
            appends.clear();
            return Ok(());
        };
        let may_pass = error.is_transient();
        let error = error.into_store_error(path);
        if may_pass {
            tracing::warn!(%error, "failed to journal; trying again later");
        } else {
            for append in appends.drain(..) {
                cut.cut(append.loop_id().clone(), &error.to_string());
            }
        }
        Err(error)
    }

    /// Sets the longest time that later statements wait for another writing process; waits for nothing itself.
    pub(super) fn set_lock_timeout(&self, patience: Duration) -> Result<(), JobError> {
        Ok(self.sql.busy_timeout(patience)?)
    }

    /// Fails if the database was moved, removed or replaced since it was opened.
    pub(super) fn check_files(&mut self) -> Result<(), JobError> {
        self.files.check()
    }

    pub(super) fn checkpoint(&mut self) {
        let done = self
            .sql
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done {
            tracing::debug!(%error, "failed to checkpoint");
        }
        self.dirty = false;
    }
}

/// Runs a write transaction: other writers wait, and an error rolls everything back.
pub(super) fn write<T>(
    sql: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, JobError>,
) -> Result<T, JobError> {
    let undo = RollbackOnDrop(sql);
    sql.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = work(undo.0)?;
    sql.prepare_cached("COMMIT")?.execute([])?;
    Ok(done)
}

/// Like rusqlite's transaction, but without re-parsing its statements each time.
struct RollbackOnDrop<'a>(&'a Connection);

impl Drop for RollbackOnDrop<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "failed to roll back");
        }
    }
}
