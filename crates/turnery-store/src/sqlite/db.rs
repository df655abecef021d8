//! Db: a connection, what it promises, and what it knows of the journal.

use super::{
    fault::{Fault, PATIENCE},
    journal::{self, Append},
    open::open,
};
use crate::StoreError;
use rusqlite::Connection;
use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};
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
    /// The database's log, where a commit is once SQLite has made it.
    log: PathBuf,
    /// The same, opened to be flushed. Nobody removes it while the connection is open.
    flushed: Option<File>,
    /// Something has been done since the last checkpoint.
    pub(super) dirty: bool,
}

impl Db {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self {
            sql: open(path)?,
            clean: HashMap::new(),
            log: log.into(),
            flushed: None,
            dirty: false,
        })
    }

    /// Do it, and wait for the disk where that was promised.
    pub(super) fn work<T>(
        &mut self,
        promise: Promise,
        work: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let done = work(self)?;
        match promise {
            Promise::Visible => {}
            Promise::Durable => self.flush()?,
        }
        Ok(done)
    }

    /// SQLite could wait for the disk itself, but to be told so before each commit, and not to after
    /// it, takes it longer than the commit.
    fn flush(&mut self) -> io::Result<()> {
        if self.flushed.is_none() {
            self.flushed = Some(File::options().write(true).open(&self.log)?);
        }
        self.flushed.as_ref().map_or(Ok(()), File::sync_data)
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
        promise: Promise,
        work: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        let done = match self.sql.busy_timeout(Duration::ZERO) {
            Ok(()) => self.work(promise, work),
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
