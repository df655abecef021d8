//! Flushes the write-ahead log to disk after the jobs that require it.
//!
//! With [`Durability::Power`], SQLite flushes each commit before it is answered. Otherwise the log is flushed here:
//! switching SQLite's `synchronous` mode before each commit takes longer than the commit, and callers would wait for
//! the disk.
//!
//! After a failed flush, the system may have dropped what was written, while later flushes succeed. SQLite would then
//! copy pages to the database that are not safely in the log, and a power cut would leave half of them. So before the
//! next checkpoint, and before the next commit that must be flushed, the log is written again.

use super::{disk, job_error::JobError, open_files::wal_path, transaction::write};
use crate::Durability;
use rusqlite::Connection;
use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// Pages in the log from which on it is checkpointed between two jobs; an idle writer checkpoints earlier.
const MAX_WAL_PAGES: u32 = 500;

/// Time at which a commit is flushed to disk with [`Durability::Process`]. In both cases other processes see the
/// commit, and it survives the end of this process, once the job is answered.
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
    durability: Durability,
    /// Handle used for flushing. The log is not removed while a connection exists.
    file: OnceLock<File>,
    /// A commit since the last flush must be flushed.
    is_pending: AtomicBool,
    /// A flush failed, so the log must be written again.
    has_failed: AtomicBool,
    /// The folder of the log must be flushed too: this process or another one may have begun the log without that.
    has_unflushed_name: AtomicBool,
    /// Pages in the log after the last commit of this connection.
    pages: AtomicU32,
    #[cfg(test)]
    flushes: std::sync::atomic::AtomicUsize,
    /// Simulates a failing disk.
    #[cfg(test)]
    disk_fails: AtomicBool,
}

impl WriteAheadLog {
    pub(super) fn new(database: &Path, durability: Durability) -> Self {
        Self {
            database: database.to_owned(),
            path: wal_path(database),
            durability,
            file: OnceLock::new(),
            is_pending: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            has_unflushed_name: AtomicBool::new(durability == Durability::Process),
            pages: AtomicU32::new(0),
            #[cfg(test)]
            flushes: std::sync::atomic::AtomicUsize::new(0),
            #[cfg(test)]
            disk_fails: AtomicBool::new(false),
        }
    }

    pub(super) fn durability(&self) -> Durability {
        self.durability
    }

    /// SQLite's mode for flushing its own commits.
    pub(super) fn synchronous_mode(&self) -> &'static str {
        match self.durability {
            // SQLite flushes what it checkpoints.
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        }
    }

    /// Returns true if the log has no header yet.
    pub(super) fn is_empty(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(log) => log.len() == 0,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Records the number of pages in the log after a commit.
    pub(super) fn note_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    /// Returns true if the log has so many pages that reading gets slower.
    pub(super) fn is_long(&self) -> bool {
        self.pages.load(Ordering::Relaxed) >= MAX_WAL_PAGES
    }

    /// Records that SQLite could not flush the log or the database.
    pub(super) fn note_failed_checkpoint(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Writes the log again if a flush failed; otherwise does nothing.
    pub(super) fn recover_from_failed_flush(&self, sql: &Connection) -> Result<(), JobError> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        // The transaction only keeps other writers away from the log.
        write(sql, |_| Ok(self.write_again()?))?;
        tracing::info!("{} is kept again", self.database.display());
        self.has_failed.store(false, Ordering::Release);
        Ok(())
    }

    fn write_again(&self) -> io::Result<()> {
        #[cfg(test)]
        if self.disk_fails.load(Ordering::Relaxed) {
            return Err(no_space());
        }
        match self.open_file() {
            Ok(file) => {
                disk::rewrite(file, &self.path)?;
                self.flush_name()
            }
            // Nothing has been written yet.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Requests a flush after a job that needs one.
    pub(super) fn request_flush(&self) {
        if self.durability == Durability::Process {
            self.is_pending.store(true, Ordering::Release);
        }
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
        disk::sync_data(self.open_file()?, &self.path)?;
        self.flush_name()
    }

    fn flush_name(&self) -> io::Result<()> {
        if !self.has_unflushed_name.load(Ordering::Relaxed) {
            return Ok(());
        }
        let flushed = self.path.parent().map_or(Ok(()), disk::sync_folder);
        flushed.or_else(|error| match error.kind() {
            // Not every file system can, nor may every folder be opened. SQLite does without it, too.
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied => {
                tracing::debug!(%error, "failed to flush a folder");
                Ok(())
            }
            _ => Err(error),
        })?;
        self.has_unflushed_name.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns true if the last flush succeeded.
    #[cfg(test)]
    pub(super) fn is_flushed(&self) -> bool {
        !self.has_failed.load(Ordering::Acquire)
    }

    /// Takes the name of the log for flushed.
    #[cfg(test)]
    pub(super) fn forget_name(&self) {
        self.has_unflushed_name.store(false, Ordering::Relaxed);
    }

    /// Takes a failed flush for a successful one.
    #[cfg(test)]
    pub(super) fn forget_failure(&self) {
        self.has_failed.store(false, Ordering::Release);
    }

    fn open_file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::options().read(true).write(true).open(&self.path)?;
        Ok(self.file.get_or_init(|| file))
    }
}

#[cfg(test)]
fn no_space() -> io::Error {
    ErrorKind::StorageFull.into()
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
    async fn flushing_resumes_once_the_log_is_written_again() {
        let (folder, worker) = worker();
        set_disk_fails(&worker, true).await;
        let make = worker.call_flushed(|db| Ok(db.sql.execute_batch("CREATE TABLE kept (n)")?));
        make.await.unwrap();
        wait_for_round(&worker).await;
        let refused = worker.call_flushed(|_| Ok(()));
        assert!(refused.await.is_err());
        set_disk_fails(&worker, false).await;
        let log = folder.path().join("sessions.db-wal");
        let before = fs::read(&log).unwrap();
        assert!(!before.is_empty());
        let accepted = worker.call_flushed(|_| Ok(()));
        assert_eq!(accepted.await, Ok(()));
        assert_eq!(fs::read(&log).unwrap(), before);
    }
}
