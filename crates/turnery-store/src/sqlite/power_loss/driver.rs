//! Runs operations on a store whose disk is simulated.

use super::{
    samples::at,
    temp_folder,
    workload::{Caller, Op, effects_of},
};
use crate::{
    Clock, Durability, SqliteStore, StoreError,
    sqlite::{cleanup::CleanupTrigger, pending_effects},
};
use faulty_disk::Disk;
use std::{path::PathBuf, sync::Arc};

/// Flaw of the store, for tests that must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutation {
    /// Effects are stored after their loop, in a transaction of their own.
    SplitCommit,
    /// The database is not flushed by a checkpoint.
    NoCheckpointFlush,
    /// A failed flush is taken for a successful one.
    ForgottenFailure,
    /// The name of a log that was begun without a flush is never flushed.
    ForgottenName,
}

/// A store on a simulated disk.
pub(super) struct Driver {
    pub(super) disk: Arc<Disk>,
    pub(super) store: SqliteStore,
    durability: Durability,
    /// What the test takes for promised.
    pub(super) promise: Durability,
    pub(super) mutation: Option<Mutation>,
    caller: Caller,
    folder: tempfile::TempDir,
}

/// Mark in the log of the disk before operation `index`.
pub(super) fn begun(index: usize) -> usize {
    2 * index
}

/// Mark in the log of the disk once the store has promised that operation `index` survives a power cut.
pub(super) fn promised(index: usize) -> usize {
    2 * index + 1
}

impl Driver {
    pub(super) fn new(durability: Durability) -> Self {
        faulty_disk::install();
        let folder = temp_folder();
        Self {
            disk: Disk::new(folder.path()),
            store: open(folder.path().join("sessions.db"), durability, 0),
            durability,
            promise: durability,
            mutation: None,
            caller: Caller::default(),
            folder,
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("sessions.db")
    }

    /// Runs an operation and marks its beginning. Returns once it is answered.
    pub(super) async fn run(&mut self, index: usize, op: Op) -> Result<(), StoreError> {
        self.disk.mark(begun(index));
        if let Some(mutation) = self.mutation {
            self.apply(mutation).await;
        }
        match op {
            Op::Commit(id, number, count)
                if self.mutation == Some(Mutation::SplitCommit) && count > 0 =>
            {
                let commit = Op::Commit(id, number, 0);
                self.caller.run(&self.store, commit).await?;
                let effects = effects_of(id, number, count);
                let add = self
                    .store
                    .writer
                    .call_flushed(move |db| pending_effects::add(&db.sql, &effects));
                add.await
            }
            Op::Checkpoint => {
                let work = self.store.writer.call(|db| {
                    if db.checkpoint() {
                        db.begin_log();
                    }
                    Ok(())
                });
                work.await
            }
            Op::CleanUp => {
                let path = self.path();
                let work = self.store.writer.call(move |db| {
                    db.clean_up(&path, CleanupTrigger::Idle, || false);
                    Ok(())
                });
                work.await
            }
            Op::Reopen => {
                self.reopen();
                Ok(())
            }
            op => self.caller.run(&self.store, op).await,
        }
    }

    /// Marks what is promised once operation `index` is answered.
    pub(super) async fn mark_promised(&self, index: usize, op: Op) {
        let is_promised = match self.promise {
            Durability::Power => true,
            Durability::Process => match op {
                Op::Create(_) | Op::Commit(..) | Op::CommitLong(..) | Op::Delete(_) => {
                    // The thread flushes after the jobs that it has taken, before it takes the next ones.
                    let next = self.store.writer.call(|db| Ok(db.wal.is_flushed()));
                    next.await == Ok(true)
                }
                Op::Begin(..)
                | Op::Journal(..)
                | Op::Approve(_)
                | Op::Rename(_)
                | Op::Note(_)
                | Op::Release(_)
                | Op::TakeEffect(_)
                | Op::FinishEffect
                | Op::Checkpoint
                | Op::CleanUp
                | Op::Reopen => false,
            },
        };
        if is_promised {
            self.disk.mark(promised(index));
        }
    }

    async fn apply(&self, mutation: Mutation) {
        let work = self.store.writer.call(move |db| {
            match mutation {
                Mutation::SplitCommit => {}
                Mutation::NoCheckpointFlush => db.sql.pragma_update(None, "synchronous", "OFF")?,
                Mutation::ForgottenFailure => db.wal.forget_failure(),
                Mutation::ForgottenName => db.wal.forget_name(),
            }
            Ok(())
        });
        work.await.unwrap();
    }

    /// Closes the store and opens it again.
    pub(super) fn reopen(&mut self) {
        let elsewhere = self.folder.path().join("unused/sessions.db");
        drop(std::mem::replace(
            &mut self.store,
            SqliteStore::open(elsewhere),
        ));
        self.store = open(self.path(), self.durability, 0);
    }
}

/// Opens a store with a clock that stands at this time. Unit: seconds.
pub(super) fn open(path: PathBuf, durability: Durability, seconds: u64) -> SqliteStore {
    let store = SqliteStore::with_clock(path, Clock::new(move || at(seconds)));
    let store = store.with_durability(durability);
    // As an agent does.
    store.writer.prepare();
    store
}
