//! Gives the space of deleted sessions back to the disk, in steps, while there is nothing else to do.

use super::{db::Db, fault::Fault};
use rusqlite::Connection;
use std::{path::Path, time::Duration};

/// Pages freed in one transaction. Nobody else can write meanwhile.
const STEP: u32 = 64;

/// Free pages that are kept for the next sessions, unless a session was deleted here.
const SPARE: u64 = 256;

/// Largest database that is rewritten as a whole, so that from then on it can shrink in steps. Databases
/// made by earlier versions need that once. Unit: bytes.
const REWRITE_LIMIT: u64 = 1 << 30;

/// The same when the program is about to end and somebody waits for it.
const REWRITE_LIMIT_AT_END: u64 = 64 << 20;

/// Operations of SQLite's virtual machine between two looks at whether somebody waits.
const CHECK_EVERY: std::ffi::c_int = 10_000;

/// Waiting time for other connections that still need the log.
const READERS: Duration = Duration::from_millis(200);

/// The same at the end: there is no second try.
const READERS_AT_END: Duration = Duration::from_secs(2);

/// Longest time that space is freed at the end. What is left is freed by the next process that is idle.
pub(super) const TIME_AT_END: Duration = Duration::from_secs(1);

/// Tries in a row before a database is left as it is until the next deletion.
const TRIES: u32 = 30;

/// What is still to be cleaned up.
#[derive(Debug, Default)]
pub(super) struct Tidy {
    /// This connection has written, so that it is its business to clean up.
    writes: bool,
    /// A session was deleted here, and its space or its text in the log is still there.
    deleted: bool,
    /// Attempts that came to nothing.
    tries: u32,
}

impl Tidy {
    /// Notes that a session was deleted.
    pub(super) fn note_deletion(&mut self) {
        self.deleted = true;
        self.tries = 0;
    }

    /// Notes that something was committed.
    pub(super) fn note_commit(&mut self) {
        self.writes = true;
    }

    /// True if it is worth trying (again).
    pub(super) fn is_due(&self) -> bool {
        self.deleted && self.tries < TRIES
    }
}

/// When the cleaning up takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    Idle,
    /// The store is about to be closed.
    End,
}

impl Db {
    /// Cleans up until `is_wanted` says that there is something better to do.
    pub(super) fn clean_up(
        &mut self,
        path: &Path,
        occasion: Occasion,
        is_wanted: impl Fn() -> bool + Send + 'static,
    ) {
        if !self.tidy.writes && !self.tidy.deleted {
            return;
        }
        match self.try_clean_up(path, occasion, is_wanted) {
            Ok(true) => self.tidy = Tidy::default(),
            Ok(false) => self.tidy.tries += 1,
            Err(fault) if fault.is_interrupt() || fault.is_busy() => self.tidy.tries += 1,
            Err(fault) => {
                tracing::warn!(error = %fault.at(path), "failed to free the space of deleted sessions");
                self.tidy = Tidy::default();
            }
        }
    }

    /// True once nothing is left to do.
    fn try_clean_up(
        &mut self,
        path: &Path,
        occasion: Occasion,
        is_wanted: impl Fn() -> bool + Send + 'static,
    ) -> Result<bool, Fault> {
        self.check_files()?;
        let free = number(&self.sql, "freelist_count")?;
        if !self.tidy.deleted && free <= SPARE {
            return Ok(true);
        }
        self.wait_for_locks(match occasion {
            Occasion::Idle => READERS,
            Occasion::End => READERS_AT_END,
        })?;
        if number(&self.sql, "auto_vacuum")? == 0 {
            if free > 0 && has_room(&self.sql, path, occasion)? {
                match rewrite(&mut self.sql, is_wanted) {
                    Err(fault) if fault.is_interrupt() && occasion == Occasion::End => {}
                    done => done?,
                }
            }
        } else {
            while number(&self.sql, "freelist_count")? > 0 {
                if is_wanted() {
                    match occasion {
                        Occasion::Idle => return Ok(false),
                        // The log is emptied all the same: it has text in it.
                        Occasion::End => break,
                    }
                }
                step(&self.sql)?;
            }
        }
        // The log holds pages as they were before the deletion.
        let truncated = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy: bool = self.sql.query_row(truncated, [], |row| row.get(0))?;
        Ok(!is_busy)
    }
}

fn number(sql: &Connection, pragma: &str) -> Result<u64, Fault> {
    Ok(sql.pragma_query_value(None, pragma, |row| row.get(0))?)
}

/// Frees pages at the end of the file. Each row of the statement is one page.
fn step(sql: &Connection) -> Result<(), Fault> {
    let mut freeing = sql.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
    let mut rows = freeing.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Writes the database anew, without gaps, and able to shrink in steps from then on.
fn rewrite(
    sql: &mut Connection,
    is_wanted: impl Fn() -> bool + Send + 'static,
) -> Result<(), Fault> {
    sql.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    sql.progress_handler(CHECK_EVERY, Some(is_wanted))?;
    let done = sql.execute_batch("VACUUM");
    sql.progress_handler(0, None::<fn() -> bool>)?;
    Ok(done?)
}

/// The copy and the log take as much as the database each.
fn has_room(sql: &Connection, path: &Path, occasion: Occasion) -> Result<bool, Fault> {
    let size = number(sql, "page_count")? * number(sql, "page_size")?;
    let limit = match occasion {
        Occasion::Idle => REWRITE_LIMIT,
        Occasion::End => REWRITE_LIMIT_AT_END,
    };
    Ok(size <= limit && free_space(path).is_none_or(|free| free / 3 > size))
}

/// Free space of the disk that holds a file. Unit: bytes.
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
    use super::{
        super::{
            flush::Flush,
            worker::{Settles, Worker},
        },
        *,
    };
    use std::{fs, sync::mpsc};

    /// In no other text of a database.
    const MARKER: &str = "the-password-is-swordfish";

    fn worker(folder: &tempfile::TempDir) -> Worker {
        Worker::new(folder.path().join("sessions.db"), "writer")
    }

    /// A table with rows short and long, and long ones that were removed without being deleted by us.
    async fn fill(worker: &Worker) {
        let fill = worker.call(Flush::Now, Settles::new(), |db| {
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
        let delete = worker.call(Flush::Now, Settles::new(), |db| {
            db.sql.execute_batch("DELETE FROM said")?;
            db.tidy.note_deletion();
            Ok(())
        });
        delete.await.unwrap();
    }

    /// As the thread does once it has been idle for a while. Tells whether nothing is left to do.
    async fn idle(worker: &Worker, folder: &tempfile::TempDir, is_wanted: fn() -> bool) -> bool {
        let path = folder.path().join("sessions.db");
        let idle = worker.call(Flush::Later, Settles::new(), move |db| {
            db.clean_up(&path, Occasion::Idle, is_wanted);
            Ok(!db.tidy.is_due())
        });
        idle.await.unwrap()
    }

    /// Names of the files that hold the marker.
    fn found_in(folder: &tempfile::TempDir) -> Vec<String> {
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

    fn size(folder: &tempfile::TempDir) -> u64 {
        let file = fs::metadata(folder.path().join("sessions.db"));
        file.unwrap().len()
    }

    #[tokio::test]
    async fn deleted_text_and_its_space_are_gone_when_idle() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        fill(&worker).await;
        assert_ne!(found_in(&folder), [""; 0]);
        delete_all(&worker).await;
        assert!(idle(&worker, &folder, || false).await);
        assert_eq!(found_in(&folder), [""; 0]);
        assert!(size(&folder) < 300_000, "{}", size(&folder));
    }

    #[tokio::test]
    async fn database_of_an_earlier_version_shrinks_too() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        fill(&worker).await;
        let as_before = worker.call(Flush::Later, Settles::new(), |db| {
            db.sql.pragma_update(None, "auto_vacuum", "NONE")?;
            db.sql.execute_batch("VACUUM")?;
            // What earlier versions deleted is still readable.
            db.sql.pragma_update(None, "secure_delete", false)?;
            db.sql.execute_batch("DELETE FROM said WHERE rowid > 2")?;
            db.sql.pragma_update(None, "secure_delete", true)?;
            number(&db.sql, "auto_vacuum")
        });
        assert_eq!(as_before.await, Ok(0));
        delete_all(&worker).await;
        assert!(idle(&worker, &folder, || false).await);
        assert_eq!(found_in(&folder), [""; 0]);
        assert!(size(&folder) < 300_000, "{}", size(&folder));
        let mode = worker.call(Flush::Later, Settles::new(), |db| {
            number(&db.sql, "auto_vacuum")
        });
        assert_eq!(mode.await, Ok(2));
    }

    #[tokio::test]
    async fn cleaning_up_makes_way_for_a_job() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        fill(&worker).await;
        delete_all(&worker).await;
        let before = size(&folder);
        assert!(!idle(&worker, &folder, || true).await);
        assert!(size(&folder) >= before);
        assert!(idle(&worker, &folder, || false).await);
        assert_eq!(found_in(&folder), [""; 0]);
    }

    #[tokio::test]
    async fn end_without_time_left_empties_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        fill(&worker).await;
        delete_all(&worker).await;
        let path = folder.path().join("sessions.db");
        let ended = worker.call(Flush::Later, Settles::new(), move |db| {
            db.clean_up(&path, Occasion::End, || true);
            number(&db.sql, "freelist_count")
        });
        assert!(ended.await.unwrap() > 0);
        assert_eq!(found_in(&folder), [""; 0]);
    }

    #[tokio::test]
    async fn reader_of_an_old_state_delays_cleaning_up() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder);
        fill(&worker).await;
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
        assert!(!idle(&worker, &folder, || false).await);
        go.send(()).unwrap();
        reader.join().unwrap();
        assert!(idle(&worker, &folder, || false).await);
        assert_eq!(found_in(&folder), [""; 0]);
    }
}
