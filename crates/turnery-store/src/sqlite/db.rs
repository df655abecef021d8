//! Db: a connection, what it promises, and what it knows of the journal.

use super::{
    fault::{Fault, PATIENCE},
    journal::{self, Append},
    open::open,
};
use crate::StoreError;
use rusqlite::Connection;
use std::{collections::HashMap, path::Path, time::Duration};
use turnery_engine::SessionId;

/// What a job promises when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Other processes see it; it survives the end of this process.
    Visible,
    /// It survives a power cut.
    Durable,
}

/// A connection.
pub(super) struct Db {
    pub(super) sql: Connection,
    /// Sessions whose journal is empty for as long as a lane of this fence is held: it was emptied when
    /// the lane was claimed here, and nothing has been journalled here since.
    pub(super) clean: HashMap<SessionId, u64>,
    promise: Promise,
    /// Something has been done since the last checkpoint.
    pub(super) dirty: bool,
}

impl Db {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut db = Self {
            sql: open(path)?,
            clean: HashMap::new(),
            promise: Promise::Visible,
            dirty: false,
        };
        db.set("NORMAL").map_err(|fault| fault.at(path))?;
        Ok(db)
    }

    pub(super) fn journal(&mut self, path: &Path, appends: &mut Vec<Append>) {
        if appends.is_empty() {
            return;
        }
        let written = match self.keep(Promise::Visible) {
            Ok(()) => journal::write(self, appends),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = written {
            // Evidence is lost, nothing else: the commit will tell if the store is broken.
            tracing::warn!(error = %fault.at(path), "failed to journal");
        }
        appends.clear();
    }

    /// Do it, unless another process is writing: then nothing is done.
    pub(super) fn impatiently<T>(
        &mut self,
        promise: Promise,
        work: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        if let Err(fault) = self.keep(promise) {
            return Some(Err(fault));
        }
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

    /// Switch between waiting for the disk and not, where the last job wanted it otherwise.
    pub(super) fn keep(&mut self, promise: Promise) -> Result<(), Fault> {
        if self.promise == promise {
            return Ok(());
        }
        self.set(match promise {
            Promise::Visible => "NORMAL",
            Promise::Durable => "FULL",
        })?;
        self.promise = promise;
        Ok(())
    }

    fn set(&mut self, synchronous: &str) -> Result<(), Fault> {
        Ok(self.sql.pragma_update(None, "synchronous", synchronous)?)
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
