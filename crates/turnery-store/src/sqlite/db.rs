//! Db: a connection, and what it knows of the journal.

use super::{
    fault::Fault,
    flush::Log,
    identity::OpenFiles,
    journal::{self, Append},
    lanes::Numbers,
    open::open,
    tidy::Tidy,
    worker::CutJournals,
};
use crate::StoreError;
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};
use turnery_engine::SessionId;

/// A connection.
pub(super) struct Db {
    pub(super) sql: Connection,
    /// Sessions without rows in the table `journal` for as long as a lane of this fence is held: it was emptied when
    /// the lane was claimed here, and nothing has been journalled here since.
    pub(super) clean: HashMap<SessionId, u64>,
    /// The numbers of the loops of sessions that were claimed here.
    pub(super) numbers: HashMap<SessionId, Numbers>,
    /// Something has been done since the last checkpoint.
    pub(super) dirty: bool,
    pub(super) log: Arc<Log>,
    pub(super) tidy: Tidy,
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
            log: Arc::new(Log::of(path)),
            tidy: Tidy::default(),
        })
    }

    /// Writes events to the journal and removes them from `appends`. They stay there for the next time if
    /// the disk is full or another process keeps the database locked for longer than `patience`. Logs
    /// the error that it returns.
    pub(super) fn journal(
        &mut self,
        path: &Path,
        appends: &mut Vec<Append>,
        cut: &CutJournals,
        patience: Duration,
    ) -> Result<(), StoreError> {
        if appends.is_empty() {
            return Ok(());
        }
        let written = self
            .wait_for_locks(patience)
            .and_then(|()| self.files.check())
            .and_then(|()| journal::write(self, appends));
        let Err(fault) = written else {
            appends.clear();
            return Ok(());
        };
        let may_pass = fault.may_pass();
        let error = fault.at(path);
        if may_pass {
            tracing::warn!(%error, "failed to journal; trying again later");
        } else {
            for append in appends.drain(..) {
                cut.cut(append.loop_id().clone(), &error.to_string());
            }
        }
        Err(error)
    }

    /// Makes statements wait at most so long for another process that writes.
    pub(super) fn wait_for_locks(&self, patience: Duration) -> Result<(), Fault> {
        Ok(self.sql.busy_timeout(patience)?)
    }

    /// Fails if the database is not where it was opened.
    pub(super) fn check_files(&mut self) -> Result<(), Fault> {
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

/// Write: nobody else does until it is done, and nothing is written if it fails.
pub(super) fn write<T>(
    sql: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let undo = Undo(sql);
    sql.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = work(undo.0)?;
    sql.prepare_cached("COMMIT")?.execute([])?;
    Ok(done)
}

/// What rusqlite's transaction does too, but that it has each of its statements parsed anew.
struct Undo<'a>(&'a Connection);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "failed to roll back");
        }
    }
}
