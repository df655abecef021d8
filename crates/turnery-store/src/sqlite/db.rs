//! Db: a connection, and what it knows of the journal.

use super::{
    fault::{Fault, PATIENCE},
    journal::{self, Append},
    lanes::Numbers,
    open::open,
};
use crate::StoreError;
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, time::Duration};
use turnery_engine::SessionId;

/// A connection.
pub(super) struct Db {
    pub(super) sql: Connection,
    /// Sessions whose journal is empty for as long as a lane of this fence is held: it was emptied when
    /// the lane was claimed here, and nothing has been journalled here since.
    pub(super) clean: HashMap<SessionId, u64>,
    /// The numbers of the loops of sessions that were claimed here.
    pub(super) numbers: HashMap<SessionId, Numbers>,
    /// Something has been done since the last checkpoint.
    pub(super) dirty: bool,
}

impl Db {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            sql: open(path)?,
            clean: HashMap::new(),
            numbers: HashMap::new(),
            dirty: false,
        })
    }

    pub(super) fn journal(&mut self, path: &Path, appends: &mut Vec<Append>) {
        if appends.is_empty() {
            return;
        }
        if let Err(fault) = journal::write(self, appends) {
            // Evidence is lost, nothing else: the commit will tell if the store is broken.
            tracing::warn!(error = %fault.at(path), "failed to journal");
        }
        appends.clear();
    }

    /// Do it, unless another process is writing: then nothing is done.
    pub(super) fn impatiently<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        let done = match self.sql.busy_timeout(Duration::ZERO) {
            Ok(()) => work(self),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = self.sql.busy_timeout(PATIENCE) {
            return Some(Err(error.into()));
        }
        match done {
            Err(fault) if fault.is_busy() => None,
            done => Some(done),
        }
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
