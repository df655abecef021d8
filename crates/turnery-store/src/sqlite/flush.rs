//! Flushes the write-ahead log to disk after the jobs that require it.
//!
//! SQLite could flush by itself. But switching its `synchronous` mode before each commit takes longer than the
//! commit, and callers would wait for the disk.

use super::{job_error::JobError, open_files::wal_path};
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

/// Time at which a commit is flushed to disk. In both cases other processes see the commit, and it survives
/// the end of this process, once the job is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// With the next flushed job, or at the next checkpoint.
    Later,
    /// Immediately: as soon as the disk allows, the commit survives a power cut too.
    Now,
}

/// Write-ahead log of the database, which holds new commits. It can be flushed while the connection is in use.
pub(super) struct WriteAheadLog {
    database: PathBuf,
    path: PathBuf,
    /// Handle used for flushing. The log is not removed while a connection exists.
    file: OnceLock<File>,
    /// A commit since the last flush must be flushed.
    is_pending: AtomicBool,
    /// The last flush failed, so a power cut may undo commits.
    has_failed: AtomicBool,
    #[cfg(test)]
    flushes: std::sync::atomic::AtomicUsize,
    /// Simulates a failing disk.
    #[cfg(test)]
    disk_fails: AtomicBool,
}

impl WriteAheadLog {
    pub(super) fn new(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            path: wal_path(database),
            file: OnceLock::new(),
            is_pending: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            #[cfg(test)]
            flushes: std::sync::atomic::AtomicUsize::new(0),
            #[cfg(test)]
            disk_fails: AtomicBool::new(false),
        }
    }

    /// Recovers from a failed flush before a job that needs one; otherwise does nothing. A later flush may
    /// succeed although the system has dropped the written data, so the log is first checkpointed into the
    /// database, which flushes it there.
    pub(super) fn recover_from_failed_flush(
        &self,
        flush: Flush,
        sql: &Connection,
    ) -> Result<(), JobError> {
        match flush {
            Flush::Now if self.has_failed.load(Ordering::Acquire) => {
                self.checkpoint_and_truncate(sql)?;
                tracing::info!("{} is kept again", self.database.display());
                self.has_failed.store(false, Ordering::Release);
                Ok(())
            }
            Flush::Now | Flush::Later => Ok(()),
        }
    }

    fn checkpoint_and_truncate(&self, sql: &Connection) -> Result<(), JobError> {
        #[cfg(test)]
        if self.disk_fails.load(Ordering::Relaxed) {
            return Err(JobError::Disk(no_space()));
        }
        let is_busy: bool =
            sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy {
            let error = "another program is reading an earlier state of it";
            return Err(JobError::Disk(io::Error::other(error)));
        }
        Ok(())
    }

    /// Requests a flush after a job that needs one.
    pub(super) fn request_flush(&self) {
        self.is_pending.store(true, Ordering::Release);
    }

    pub(super) fn is_flush_pending(&self) -> bool {
        self.is_pending.load(Ordering::Acquire)
    }

    /// Flushes once for all jobs since the last flush.
    pub(super) fn flush_pending(&self) {
        if !self.is_pending.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.flush() {
            tracing::error!("{}", JobError::Disk(error).into_store_error(&self.database));
            self.has_failed.store(true, Ordering::Release);
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
    use super::{super::worker::Worker, *};
    use crate::StoreError;

    fn worker() -> (tempfile::TempDir, Worker) {
        let folder = tempfile::tempdir().unwrap();
        let worker = Worker::new(folder.path().join("sessions.db"), "writer");
        (folder, worker)
    }

    /// Returns once all pending commits are flushed: the thread flushes between two rounds.
    async fn wait_for_round(worker: &Worker) {
        let nothing = worker.call(|db| Ok(db.sql.execute_batch("BEGIN IMMEDIATE; COMMIT")?));
        nothing.await.unwrap();
    }

    async fn flush_count(worker: &Worker) -> usize {
        let asked = worker.call(|db| Ok(db.wal.flushes.load(Ordering::Relaxed)));
        asked.await.unwrap()
    }

    async fn set_disk_fails(worker: &Worker, fails: bool) {
        let set = worker.call(move |db| {
            db.wal.disk_fails.store(fails, Ordering::Relaxed);
            Ok(())
        });
        set.await.unwrap();
    }

    #[tokio::test]
    async fn only_jobs_with_flush_now_are_flushed() {
        let (_folder, worker) = worker();
        wait_for_round(&worker).await;
        assert_eq!(flush_count(&worker).await, 0);
        for done in 1..10 {
            let queued = worker.call_flushed(|_| Ok(()));
            queued.await.unwrap();
            wait_for_round(&worker).await;
            assert_eq!(flush_count(&worker).await, done);
        }
    }

    #[tokio::test]
    async fn jobs_fail_after_a_failed_flush() {
        let (_folder, worker) = worker();
        set_disk_fails(&worker, true).await;
        let lost = worker.call_flushed(|_| Ok(()));
        assert_eq!(lost.await, Ok(()), "nobody waits for the disk");
        wait_for_round(&worker).await;
        for _ in 0..2 {
            let job = worker.call_flushed(|_| Ok(()));
            let StoreError::Broken(text) = job.await.unwrap_err() else {
                panic!("another error");
            };
            assert!(
                text.contains("the disk did not confirm that it is kept"),
                "{text}"
            );
        }
        wait_for_round(&worker).await;
    }

    #[tokio::test]
    async fn flushing_resumes_once_the_wal_is_copied_back() {
        let (folder, worker) = worker();
        set_disk_fails(&worker, true).await;
        let make = worker.call_flushed(|db| Ok(db.sql.execute_batch("CREATE TABLE kept (n)")?));
        make.await.unwrap();
        wait_for_round(&worker).await;
        let refused = worker.call_flushed(|_| Ok(()));
        assert!(refused.await.is_err());
        set_disk_fails(&worker, false).await;
        let log = folder.path().join("sessions.db-wal");
        assert!(std::fs::metadata(&log).unwrap().len() > 0);
        let accepted = worker.call_flushed(|_| Ok(()));
        assert_eq!(accepted.await, Ok(()));
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    }
}
