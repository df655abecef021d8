//! Returns the space of deleted sessions to the disk, in steps, while the store is idle.

use super::{db::Db, job_error::JobError, search_index::SearchIndex};
use rusqlite::Connection;
use std::{collections::HashSet, path::Path, time::Duration};
use turnery_engine::SessionId;

/// Pages freed in one transaction, which blocks other writers.
const PAGES_PER_STEP: u32 = 64;

/// Free pages kept for new sessions, unless this store deleted a session.
const SPARE_PAGES: u64 = 256;

/// Size of the largest database that is rewritten as a whole, which databases of earlier versions need once
/// before they can shrink in steps. Unit: bytes.
const REWRITE_LIMIT: u64 = 1 << 30;

/// Like [`REWRITE_LIMIT`], at shutdown. Unit: bytes.
const REWRITE_LIMIT_AT_SHUTDOWN: u64 = 64 << 20;

/// SQLite virtual machine operations between two checks for waiting jobs.
const INTERRUPT_CHECK_STEPS: std::ffi::c_int = 10_000;

/// Longest wait for other connections that still use the log.
const READER_TIMEOUT: Duration = Duration::from_millis(200);

/// Like [`READER_TIMEOUT`], at shutdown, where there is no second attempt.
const READER_TIMEOUT_AT_SHUTDOWN: Duration = Duration::from_secs(2);

/// Longest time spent freeing space at shutdown. The rest is freed by the next idle process.
pub(super) const TIME_AT_SHUTDOWN: Duration = Duration::from_secs(1);

/// Consecutive attempts before cleanup is postponed to the next deletion.
const MAX_TRIES: u32 = 30;

/// Pending cleanup work.
#[derive(Debug, Default)]
pub(super) struct Cleanup {
    /// True once this connection has written, which makes it responsible for cleanup.
    has_written: bool,
    /// True after a deletion whose space or text in the log is still there.
    has_deleted: bool,
    /// Deleted sessions whose words may be in the index of the search.
    indexed: HashSet<SessionId>,
    /// Number of failed attempts.
    tries: u32,
}

impl Cleanup {
    /// Records that a session was deleted.
    pub(super) fn note_deleted_session(&mut self, id: SessionId) {
        self.indexed.insert(id);
        self.note_deletion();
    }

    /// Records that something was deleted.
    pub(super) fn note_deletion(&mut self) {
        self.has_deleted = true;
        self.tries = 0;
    }

    /// Records a commit.
    pub(super) fn note_commit(&mut self) {
        self.has_written = true;
    }

    /// Returns true if cleanup is worth an attempt.
    pub(super) fn is_due(&self) -> bool {
        self.has_deleted && self.tries < MAX_TRIES
    }
}

/// Occasion of a cleanup, which decides how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CleanupTrigger {
    /// No job has arrived for a while.
    Idle,
    /// The store is about to be closed.
    Shutdown,
}

impl Db {
    /// Cleans up until nothing is left to do or `should_stop` returns true: because jobs are waiting, or at
    /// shutdown because the time is over.
    pub(super) fn clean_up(
        &mut self,
        path: &Path,
        trigger: CleanupTrigger,
        should_stop: impl Fn() -> bool + Send + 'static,
    ) {
        if !self.cleanup.has_written && !self.cleanup.has_deleted {
            return;
        }
        match self.try_clean_up(path, trigger, should_stop) {
            Ok(true) => self.cleanup = Cleanup::default(),
            Ok(false) => self.cleanup.tries += 1,
            Err(error) if error.is_interrupted() || error.is_busy() => self.cleanup.tries += 1,
            Err(error) => {
                tracing::warn!(error = %error.into_store_error(path), "failed to free the space of deleted sessions");
                self.cleanup = Cleanup::default();
            }
        }
    }

    /// Cleans up without a limit of time, as the user has asked for it. Returns true once nothing is left to do.
    pub(super) fn vacuum(&mut self, path: &Path) -> Result<bool, JobError> {
        self.cleanup.note_deletion();
        let is_done = self.try_clean_up(path, CleanupTrigger::Idle, || false)?;
        if is_done {
            self.cleanup = Cleanup::default();
        }
        Ok(is_done)
    }

    /// Removes the words of a deleted session before a session with the same id is created: the index knows them by
    /// that id. Only imports use one again.
    pub(super) fn forget_words_of(&mut self, id: &SessionId) -> Result<(), JobError> {
        if !self.cleanup.indexed.contains(id) {
            return Ok(());
        }
        if !SearchIndex::forget_deleted(&self.sql, READER_TIMEOUT)? {
            SearchIndex::remove(&self.sql)?;
        }
        self.cleanup.indexed.clear();
        Ok(())
    }

    /// Returns true once nothing is left to do.
    fn try_clean_up(
        &mut self,
        path: &Path,
        trigger: CleanupTrigger,
        should_stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<bool, JobError> {
        self.check_files()?;
        self.wal.recover_from_failed_flush(&self.sql)?;
        let is_forgotten =
            !self.cleanup.has_deleted || SearchIndex::forget_deleted(&self.sql, READER_TIMEOUT)?;
        let free = pragma_number(&self.sql, "freelist_count")?;
        if !self.cleanup.has_deleted && free <= SPARE_PAGES {
            return Ok(true);
        }
        self.set_lock_timeout(match trigger {
            CleanupTrigger::Idle => READER_TIMEOUT,
            CleanupTrigger::Shutdown => READER_TIMEOUT_AT_SHUTDOWN,
        })?;
        if pragma_number(&self.sql, "auto_vacuum")? == 0 {
            if free > 0 && has_space_to_rewrite(&self.sql, path, trigger)? {
                match rewrite(&mut self.sql, should_stop) {
                    Err(error) if error.is_interrupted() && trigger == CleanupTrigger::Shutdown => {
                    }
                    done => done?,
                }
            }
        } else {
            while pragma_number(&self.sql, "freelist_count")? > 0 {
                if should_stop() {
                    match trigger {
                        CleanupTrigger::Idle => return Ok(false),
                        // The log is truncated all the same, because it contains deleted text.
                        CleanupTrigger::Shutdown => break,
                    }
                }
                free_pages(&self.sql)?;
            }
        }
        // The log holds pages from before the deletion.
        let truncated = "PRAGMA wal_checkpoint(TRUNCATE)";
        let checkpointed = self.sql.query_row(truncated, [], |row| row.get(0));
        let is_busy: bool = checkpointed.inspect_err(|_| self.wal.note_failed_checkpoint())?;
        Ok(!is_busy && is_forgotten)
    }
}

fn pragma_number(sql: &Connection, pragma: &str) -> Result<u64, JobError> {
    Ok(sql.pragma_query_value(None, pragma, |row| row.get(0))?)
}

/// Frees pages at the end of the file. Each row of the statement is one page.
fn free_pages(sql: &Connection) -> Result<(), JobError> {
    let mut freeing = sql.prepare(&format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
    let mut rows = freeing.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Rewrites the database without gaps, so that it can shrink in steps from then on.
fn rewrite(
    sql: &mut Connection,
    should_stop: impl Fn() -> bool + Send + 'static,
) -> Result<(), JobError> {
    sql.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    sql.progress_handler(INTERRUPT_CHECK_STEPS, Some(should_stop))?;
    let done = sql.execute_batch("VACUUM");
    sql.progress_handler(0, None::<fn() -> bool>)?;
    Ok(done?)
}

/// Returns true if the database is small enough to be rewritten now and the disk has space: the copy and the
/// log each take as much as the database.
fn has_space_to_rewrite(
    sql: &Connection,
    path: &Path,
    trigger: CleanupTrigger,
) -> Result<bool, JobError> {
    let size = pragma_number(sql, "page_count")? * pragma_number(sql, "page_size")?;
    let limit = match trigger {
        CleanupTrigger::Idle => REWRITE_LIMIT,
        CleanupTrigger::Shutdown => REWRITE_LIMIT_AT_SHUTDOWN,
    };
    Ok(size <= limit && free_space(path).is_none_or(|free| free / 3 > size))
}

/// Returns the free space of the disk that holds a file. Unit: bytes.
#[cfg(unix)]
fn free_space(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free_space(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::{super::worker::Worker, *};
    use std::{fs, sync::mpsc};

    /// Text that occurs nowhere else in the database.
    const MARKER: &str = "the-password-is-swordfish";

    fn worker() -> (tempfile::TempDir, Worker) {
        let folder = tempfile::tempdir().unwrap();
        let worker = Worker::new(folder.path().join("sessions.db"), "writer");
        (folder, worker)
    }

    /// Fills a table with short and long rows, and removes long ones without recording a deletion.
    async fn fill_database(worker: &Worker) {
        let fill = worker.call_flushed(|db| {
            let long = format!("{MARKER}{}", "x".repeat(100)).repeat(2000);
            db.sql.execute_batch("CREATE TABLE said (body TEXT)")?;
            for body in [MARKER, &long, MARKER, &long] {
                db.sql.execute("INSERT INTO said VALUES (?1)", [body])?;
            }
            Ok(())
        });
        fill.await.unwrap();
    }

    async fn delete_all(worker: &Worker) {
        let delete = worker.call_flushed(|db| {
            db.sql.execute_batch("DELETE FROM said")?;
            db.cleanup.note_deletion();
            Ok(())
        });
        delete.await.unwrap();
    }

    /// Cleans up like an idle thread. Returns true if nothing is left to do.
    async fn clean_up_when_idle(
        worker: &Worker,
        folder: &tempfile::TempDir,
        should_stop: fn() -> bool,
    ) -> bool {
        let path = folder.path().join("sessions.db");
        let idle = worker.call(move |db| {
            db.clean_up(&path, CleanupTrigger::Idle, should_stop);
            Ok(!db.cleanup.is_due())
        });
        idle.await.unwrap()
    }

    /// Returns the names of the files that contain the marker.
    fn files_with_marker(folder: &tempfile::TempDir) -> Vec<String> {
        let files = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let found = files.filter(|file| {
            let bytes = fs::read(file.path()).unwrap();
            let mut windows = bytes.windows(MARKER.len());
            windows.any(|window| window == MARKER.as_bytes())
        });
        found
            .map(|file| file.file_name().into_string().unwrap())
            .collect()
    }

    fn database_size(folder: &tempfile::TempDir) -> u64 {
        let file = fs::metadata(folder.path().join("sessions.db"));
        file.unwrap().len()
    }

    #[tokio::test]
    async fn deleted_text_and_its_space_are_gone_when_idle() {
        let (folder, worker) = worker();
        fill_database(&worker).await;
        assert_ne!(files_with_marker(&folder), [""; 0]);
        delete_all(&worker).await;
        assert!(clean_up_when_idle(&worker, &folder, || false).await);
        assert_eq!(files_with_marker(&folder), [""; 0]);
        assert!(
            database_size(&folder) < 300_000,
            "{}",
            database_size(&folder)
        );
    }

    #[tokio::test]
    async fn database_of_an_earlier_version_shrinks_too() {
        let (folder, worker) = worker();
        fill_database(&worker).await;
        let as_before = worker.call(|db| {
            db.sql.pragma_update(None, "auto_vacuum", "NONE")?;
            db.sql.execute_batch("VACUUM")?;
            // Text deleted by earlier versions is still readable.
            db.sql.pragma_update(None, "secure_delete", false)?;
            db.sql.execute_batch("DELETE FROM said WHERE rowid > 2")?;
            db.sql.pragma_update(None, "secure_delete", true)?;
            pragma_number(&db.sql, "auto_vacuum")
        });
        assert_eq!(as_before.await, Ok(0));
        delete_all(&worker).await;
        assert!(clean_up_when_idle(&worker, &folder, || false).await);
        assert_eq!(files_with_marker(&folder), [""; 0]);
        assert!(
            database_size(&folder) < 300_000,
            "{}",
            database_size(&folder)
        );
        let mode = worker.call(|db| pragma_number(&db.sql, "auto_vacuum"));
        assert_eq!(mode.await, Ok(2));
    }

    #[tokio::test]
    async fn cleaning_up_makes_way_for_a_job() {
        let (folder, worker) = worker();
        fill_database(&worker).await;
        delete_all(&worker).await;
        let before = database_size(&folder);
        assert!(!clean_up_when_idle(&worker, &folder, || true).await);
        assert!(database_size(&folder) >= before);
        assert!(clean_up_when_idle(&worker, &folder, || false).await);
        assert_eq!(files_with_marker(&folder), [""; 0]);
    }

    #[tokio::test]
    async fn end_without_time_left_empties_the_log() {
        let (folder, worker) = worker();
        fill_database(&worker).await;
        delete_all(&worker).await;
        let path = folder.path().join("sessions.db");
        let ended = worker.call(move |db| {
            db.clean_up(&path, CleanupTrigger::Shutdown, || true);
            pragma_number(&db.sql, "freelist_count")
        });
        assert!(ended.await.unwrap() > 0);
        assert_eq!(files_with_marker(&folder), [""; 0]);
    }

    #[tokio::test]
    async fn reader_of_an_old_state_delays_cleaning_up() {
        let (folder, worker) = worker();
        fill_database(&worker).await;
        let (go, gone) = mpsc::sync_channel::<()>(1);
        let (begun, begins) = mpsc::sync_channel(1);
        let path = folder.path().join("sessions.db");
        let reader = std::thread::spawn(move || {
            let sql = Connection::open(path).unwrap();
            sql.execute_batch("BEGIN; SELECT count(*) FROM said")
                .unwrap();
            begun.send(()).unwrap();
            gone.recv().unwrap();
        });
        begins.recv().unwrap();
        delete_all(&worker).await;
        assert!(!clean_up_when_idle(&worker, &folder, || false).await);
        go.send(()).unwrap();
        reader.join().unwrap();
        assert!(clean_up_when_idle(&worker, &folder, || false).await);
        assert_eq!(files_with_marker(&folder), [""; 0]);
    }
}
