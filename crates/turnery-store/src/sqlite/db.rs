//! Wraps a connection with its cached state.

use super::{
    cleanup::Cleanup,
    flush::WriteAheadLog,
    job_error::JobError,
    loop_numbers::LoopNumbers,
    open::{open, write_version_again},
    open_files::{DatabaseIdentity, OpenFiles},
    sessions,
    transaction::write,
};
use crate::{Durability, ListQuery, NewSession, StoreError};
use rusqlite::{Connection, config::DbConfig};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use turnery_engine::{SessionId, Timestamp};

/// A connection with its cached state.
pub(super) struct Db {
    pub(super) sql: Connection,
    /// Sessions whose `journal` has no rows while a lane with this fence is held: it was emptied by a claim on
    /// this connection, and nothing was journalled here since.
    pub(super) empty_journals: HashMap<SessionId, u64>,
    /// Loop numbers of sessions claimed on this connection.
    pub(super) loop_numbers: HashMap<SessionId, LoopNumbers>,
    /// True after a write since the last checkpoint.
    pub(super) needs_checkpoint: bool,
    pub(super) wal: Arc<WriteAheadLog>,
    pub(super) cleanup: Cleanup,
    files: OpenFiles,
}

impl Db {
    /// Opens the database like `open`, unless it is another file than that of `identity`.
    pub(super) fn open_same(
        path: &Path,
        durability: Durability,
        identity: &DatabaseIdentity,
        begins_log: bool,
    ) -> Result<Self, StoreError> {
        let to_store_error = |error: JobError| error.into_store_error(path);
        identity.check(path).map_err(to_store_error)?;
        let opened = Self::open(path, durability, begins_log)?;
        identity.record(&opened.files).map_err(to_store_error)?;
        Ok(opened)
    }

    /// Opens the database. With `begins_log`, the first job that writes need not begin the log.
    pub(super) fn open(
        path: &Path,
        durability: Durability,
        begins_log: bool,
    ) -> Result<Self, StoreError> {
        // SQLite keeps the log beside the file that a link names.
        let database = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let wal = Arc::new(WriteAheadLog::new(&database, durability));
        let (sql, files) = open(path, &wal, begins_log)?;
        Ok(Self {
            sql,
            files,
            empty_journals: HashMap::new(),
            loop_numbers: HashMap::new(),
            needs_checkpoint: false,
            wal,
            cleanup: Cleanup::default(),
        })
    }

    /// Sets the longest time that later statements wait for another writing process; waits for nothing itself.
    pub(super) fn set_lock_timeout(&self, timeout: Duration) -> Result<(), JobError> {
        Ok(self.sql.busy_timeout(timeout)?)
    }

    /// Fails if the database was moved, removed or replaced since it was opened.
    pub(super) fn check_files(&mut self) -> Result<(), JobError> {
        self.files.check()
    }

    /// Writes the first page of a log that is empty or completely copied. SQLite flushes the header of the log then, so
    /// the next job that writes need not wait for that.
    pub(super) fn begin_log(&self) {
        self.try_at_once("begin the log", |sql| write(sql, write_version_again));
    }

    /// Compiles the statements of the first requests and reads the pages that they need. Changes nothing.
    pub(super) fn warm_up(&self) {
        let here = ListQuery {
            folder: Some(PathBuf::new()),
            limit: 1,
            ..ListQuery::default()
        };
        let unstored = NewSession {
            id: SessionId::from(""),
            cwd: PathBuf::new(),
            folder: None,
            roots: Vec::new(),
            model: String::new(),
            mode: String::new(),
            at: Timestamp::default(),
            spawned_by: None,
        };
        self.try_at_once("warm up", |sql| {
            sessions::list(sql, &here)?;
            let undone = sql.unchecked_transaction()?;
            sessions::create(&undone, unstored)?;
            Ok(undone.rollback()?)
        });
    }

    /// Does work that may be left out: fails at once if another process is writing, and only logs errors.
    fn try_at_once(&self, work: &str, run: impl FnOnce(&Connection) -> Result<(), JobError>) {
        let done = self.set_lock_timeout(Duration::ZERO);
        if let Err(error) = done.and_then(|()| run(&self.sql)) {
            tracing::debug!(%error, "failed to {work}");
        }
    }

    /// Copies the log to the database, as far as no reader needs it. The log must not be copied after a failed flush
    /// before it is written again. Returns true if all of it was copied.
    pub(super) fn checkpoint(&mut self) -> bool {
        self.wal.note_pages(0);
        let ready = self.wal.recover_from_failed_flush(&self.sql);
        let done = ready.and_then(|()| {
            let done = self
                .sql
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                    let (pages, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
                    Ok(pages == copied)
                });
            done.inspect_err(|_| self.wal.note_failed_checkpoint())
                .map_err(JobError::from)
        });
        self.needs_checkpoint = false;
        done.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to checkpoint");
            false
        })
    }

    /// Prepares for closing the connection, which checkpoints if it is the last one.
    pub(super) fn prepare_close(&self) {
        let ready = self.wal.recover_from_failed_flush(&self.sql);
        if let Err(error) = ready {
            tracing::debug!(%error, "the log stays beside the database");
            let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            if let Err(error) = self.sql.set_db_config(option, true) {
                tracing::debug!(%error, "failed to keep the log");
            }
        }
    }
}
