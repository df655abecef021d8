//! Flush: which jobs are flushed to the disk, and the log that holds what they committed.
//!
//! SQLite could wait for the disk itself. But to be told so before each commit, and not to after it,
//! takes it longer than the commit, and it would keep whoever commits waiting.

use super::fault::Fault;
use crate::StoreError;
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

/// The database's log, where a commit is once SQLite has made it.
pub(super) struct Log {
    database: PathBuf,
    path: PathBuf,
    /// Opened to be flushed. Nobody removes it while there is a connection.
    file: OnceLock<File>,
    /// Something has been committed since the last flush that is to be flushed.
    owed: AtomicBool,
    /// What has been written may be lost: nothing can be promised any more.
    failed: OnceLock<StoreError>,
    #[cfg(test)]
    paid: std::sync::atomic::AtomicUsize,
}

impl Log {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self {
            database: database.to_owned(),
            path: path.into(),
            file: OnceLock::new(),
            owed: AtomicBool::new(false),
            failed: OnceLock::new(),
            #[cfg(test)]
            paid: std::sync::atomic::AtomicUsize::default(),
        }
    }

    /// Whether a job can be done as it is to be.
    pub(super) fn may(&self, flush: Flush) -> Result<(), StoreError> {
        match (flush, self.failed.get()) {
            (Flush::Now, Some(error)) => Err(error.clone()),
            (Flush::Now, None) | (Flush::Later, _) => Ok(()),
        }
    }

    /// After a job: whether it has to be flushed.
    pub(super) fn owe(&self, flush: Flush) -> bool {
        match flush {
            Flush::Later => false,
            Flush::Now => {
                self.owed.store(true, Ordering::Release);
                true
            }
        }
    }

    /// Flush what is owed: once for all jobs that were done since the last time.
    pub(super) fn pay(&self) {
        if !self.owed.swap(false, Ordering::Acquire) {
            return;
        }
        #[cfg(test)]
        self.paid.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.flush() {
            let error = Fault::Disk(error).at(&self.database);
            tracing::error!("{error}");
            let _ = self.failed.set(error);
        }
    }

    fn flush(&self) -> io::Result<()> {
        if let Some(file) = self.file.get() {
            return file.sync_data();
        }
        let file = File::options().write(true).open(&self.path)?;
        self.file.get_or_init(|| file).sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::worker::{Settles, Worker},
        *,
    };

    fn worker(folder: &tempfile::TempDir) -> Worker {
        Worker::new(folder.path().join("sessions.db"), "writer")
    }

    /// All that is owed is flushed after this: the thread flushes between two rounds, and the first may
    /// be the one that takes notice of what is owed.
    async fn came_round(worker: &Worker) {
        for _ in 0..2 {
            let nothing = worker.call(Flush::Later, Settles::new(), |db| {
                Ok(db.sql.execute_batch("BEGIN IMMEDIATE; COMMIT")?)
            });
            nothing.await.unwrap();
        }
    }

    fn paid(worker: &Worker) -> usize {
        worker.log().unwrap().paid.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn what_is_to_be_flushed_is_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        came_round(&worker).await;
        assert_eq!(paid(&worker), 0);
        let queued = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
        queued.await.unwrap();
        came_round(&worker).await;
        assert_eq!(paid(&worker), 1);
        // By whoever asks, or by the thread if that was slow: either way it is flushed.
        for done in 2..10 {
            let here = worker.soon(Flush::Now, Settles::new(), |_| Ok(()));
            here.await.unwrap();
            came_round(&worker).await;
            assert_eq!(paid(&worker), done);
        }
    }

    #[tokio::test]
    async fn nothing_is_promised_once_the_disk_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        came_round(&worker).await;
        std::fs::remove_file(folder.path().join("sessions.db-wal")).unwrap();
        let lost = worker.call(Flush::Now, Settles::new(), |_| Ok(()));
        assert_eq!(lost.await, Ok(()), "nobody waits for the disk");
        came_round(&worker).await;
        let jobs = [
            worker.call(Flush::Now, Settles::new(), |_| Ok(())),
            worker.soon(Flush::Now, Settles::new(), |_| Ok(())),
        ];
        for job in jobs {
            let StoreError::Broken(text) = job.await.unwrap_err() else {
                panic!("another error");
            };
            assert!(
                text.contains("the disk does not say that it is kept"),
                "{text}"
            );
        }
        came_round(&worker).await;
    }
}
