//! Runs operations on a store whose disk is simulated.

use super::{
    samples::at,
    temp_folder,
    workload::{Caller, Op},
};
use crate::{Clock, Durability, SqliteStore, StoreError, sqlite::cleanup::CleanupTrigger};
use faulty_disk::Disk;
use std::{path::PathBuf, sync::Arc};

/// A store on a simulated disk.
pub(super) struct Driver {
    pub(super) disk: Arc<Disk>,
    pub(super) store: SqliteStore,
    durability: Durability,
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
        match op {
            Op::Checkpoint => {
                let work = self.store.writer.call(|db| {
                    db.checkpoint();
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
        let is_promised = match self.durability {
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
    SqliteStore::with_clock(path, Clock::new(move || at(seconds))).with_durability(durability)
}
