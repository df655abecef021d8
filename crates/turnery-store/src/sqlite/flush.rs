//! Flush: which jobs are flushed to the disk, and the log that holds what they committed.
//!
//! SQLite could wait for the disk itself. But to be told so before each commit, and not to after it,
//! takes it longer than the commit, and it would keep whoever commits waiting.

use super::{fault::Fault, identity::log_of};
use rusqlite::Connection;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// When the disk is told to keep what a job has committed. Once the job is answered, other processes
/// see it and it survives the end of this one, in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// With the next job that is flushed, or when the log is copied back.
    Later,
    /// At once: as soon as the disk can, it survives a power cut too.
    Now,
}

/// The database's log, where a commit is once SQLite has made it. It can be flushed while the connection is
/// in use.
pub(super) struct Log {
    database: PathBuf,
    path: PathBuf,
    /// Opened to be flushed. Nobody removes it while there is a connection.
    file: OnceLock<File>,
    /// Something has been committed since the last flush that is to be flushed.
    owed: AtomicBool,
    /// The last flush failed, so a power cut may undo what was committed.
    failed: AtomicBool,
    #[cfg(test)]
    flushes: std::sync::atomic::AtomicUsize,
    /// The disk fails while this is set.
    #[cfg(test)]
    disk_fails: AtomicBool,
}

impl Log {
    pub(super) fn of(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            path: log_of(database),
            file: OnceLock::new(),
            owed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            #[cfg(test)]
            flushes: std::sync::atomic::AtomicUsize::new(0),
            #[cfg(test)]
            disk_fails: AtomicBool::new(false),
        }
    }

    /// Before a job: whether the disk keeps what it is given. After a flush that failed, a later one
    /// may succeed although the system has dropped what was written. So everything is first copied
    /// from the log into the database and flushed there.
    pub(super) fn ready(&self, flush: Flush, sql: &Connection) -> Result<(), Fault> {
        match flush {
            Flush::Now if self.failed.load(Ordering::Acquire) => {
                self.copy_back(sql)?;
                tracing::info!("{} is kept again", self.database.display());
                self.failed.store(false, Ordering::Release);
                Ok(())
            }
            Flush::Now | Flush::Later => Ok(()),
        }
    }

    fn copy_back(&self, sql: &Connection) -> Result<(), Fault> {
        #[cfg(test)]
        if self.disk_fails.load(Ordering::Relaxed) {
            return Err(Fault::Disk(no_space()));
        }
        let is_busy: bool =
            sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy {
            let error = "another program is reading an earlier state of it";
            return Err(Fault::Disk(io::Error::other(error)));
        }
        Ok(())
    }

    /// After a job that is to be flushed.
    pub(super) fn owe(&self) {
        self.owed.store(true, Ordering::Release);
    }

    pub(super) fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Acquire)
    }

    /// Flush what is owed: once for all jobs that were done since the last time.
    pub(super) fn pay(&self) {
        if !self.owed.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.flush() {
            tracing::error!("{}", Fault::Disk(error).at(&self.database));
            self.failed.store(true, Ordering::Release);
        }
    }

    fn flush(&self) -> io::Result<()> {
        #[cfg(test)]
        {
            self.flushes.fetch_add(1, Ordering::Relaxed);
            if self.disk_fails.load(Ordering::Relaxed) {
                return Err(no_space());
            }
        }
        if let Some(file) = self.file.get() {
            return file.sync_data();
        }
        let file = File::options().write(true).open(&self.path)?;
        self.file.get_or_init(|| file).sync_data()
    }
}

#[cfg(test)]
fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

#[cfg(test)]
mod tests {
    use super::{
        super::worker::{Settles, Worker},
        *,
    };
    use crate::StoreError;

    fn worker(folder: &tempfile::TempDir) -> Worker {
        Worker::new(folder.path().join("sessions.db"), "writer")
    }

    /// All that is owed is flushed after this: the thread flushes between two rounds.
    async fn came_round(worker: &Worker) {
        let nothing = worker.call(Flush::Later, Settles::new(), |db| {
            Ok(db.sql.execute_batch("BEGIN IMMEDIATE; COMMIT")?)
        });
        nothing.await.unwrap();
    }

    async fn flushes(worker: &Worker) -> usize {
        let asked = worker.call(Flush::Later, Settles::new(), |db| {
            Ok(db.log.flushes.load(Ordering::Relaxed))
        });
        asked.await.unwrap()
    }

    async fn set_disk_fails(worker: &Worker, fails: bool) {
        let set = worker.call(Flush::Later, Settles::new(), move |db| {
            db.log.disk_fails.store(fails, Ordering::Relaxed);
            Ok(())
        });
        set.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_to_be_flushed_is_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        came_round(&worker).await;
        assert_eq!(flushes(&worker).await, 0);
        for done in 1..10 {
            let queued = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
            queued.await.unwrap();
            came_round(&worker).await;
            assert_eq!(flushes(&worker).await, done);
        }
    }

    #[tokio::test]
    async fn nothing_is_promised_once_the_disk_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        set_disk_fails(&worker, true).await;
        let lost = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
        assert_eq!(lost.await, Ok(()), "nobody waits for the disk");
        came_round(&worker).await;
        for _ in 0..2 {
            let job = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
            let StoreError::Broken(text) = job.await.unwrap_err() else {
                panic!("another error");
            };
            assert!(
                text.contains("the disk did not confirm that it is kept"),
                "{text}"
            );
        }
        came_round(&worker).await;
    }

    #[tokio::test]
    async fn disk_with_room_again_is_trusted_once_the_log_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        set_disk_fails(&worker, true).await;
        let make = worker.call(Flush::Now, Settles::new(), |db| {
            Ok(db.sql.execute_batch("CREATE TABLE kept (n)")?)
        });
        make.await.unwrap();
        came_round(&worker).await;
        let refused = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
        assert!(refused.await.is_err());
        set_disk_fails(&worker, false).await;
        let log = folder.path().join("sessions.db-wal");
        assert!(std::fs::metadata(&log).unwrap().len() > 0);
        let accepted = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
        assert_eq!(accepted.await, Ok(()));
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    }
}
