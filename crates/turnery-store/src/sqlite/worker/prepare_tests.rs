//! Tests what a worker does before its first job.

use super::{
    super::{db::Db, open::begin_empty_log},
    *,
};
use std::fs;

/// Returns a worker beside an empty database.
async fn worker_of_existing() -> (tempfile::TempDir, Worker) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let first = Worker::new(path.clone(), "writer");
    first.call(|_| Ok(())).await.unwrap();
    drop(first);
    (folder, Worker::new(path, "writer"))
}

#[test]
fn preparing_creates_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::new(folder.path().join("sessions.db"), "writer");
    worker.prepare();
    // Waits for the thread.
    drop(worker);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn log_of_a_prepared_writer_has_its_header() {
    for prepares in [false, true] {
        let (_folder, worker) = worker_of_existing().await;
        if prepares {
            worker.prepare();
        }
        let state = worker.call(|db| {
            let mode = db
                .sql
                .pragma_query_value(None, "synchronous", |row| row.get(0))?;
            Ok((db.wal.is_empty(), mode))
        });
        // In the mode NORMAL, in which a checkpoint is flushed.
        assert_eq!(state.await, Ok((!prepares, 1)));
    }
}

/// A log that another process has begun is not begun again: its commits would be lost.
#[tokio::test]
async fn log_of_another_process_stays() {
    let (folder, other) = worker_of_existing().await;
    let write = |db: &mut Db| Ok(db.sql.execute_batch("CREATE TABLE kept (n)")?);
    other.call(write).await.unwrap();
    let path = folder.path().join("sessions.db");
    let log = folder.path().join("sessions.db-wal");
    let before = fs::read(&log).unwrap();
    let opened = Db::open(&path, Durability::Process, true).unwrap();
    // As if the other process had begun it only now.
    begin_empty_log(&opened.sql, &opened.wal).unwrap();
    assert_eq!(fs::read(&log).unwrap(), before);
    // The connection flushes like any other.
    let mode = opened
        .sql
        .pragma_query_value(None, "synchronous", |row| row.get(0));
    assert_eq!(mode, Ok(1));
}

/// The header is written and flushed when the log begins again after it was copied: once, not by the next job.
#[tokio::test]
async fn copied_log_is_begun_again() {
    let (folder, worker) = worker_of_existing().await;
    let log = folder.path().join("sessions.db-wal");
    let header = move || fs::read(&log).unwrap()[..32].to_vec();
    let write = |db: &mut Db| {
        let write = "CREATE TABLE IF NOT EXISTS kept (n); INSERT INTO kept VALUES (1)";
        Ok(db.sql.execute_batch(write)?)
    };
    worker.call(write).await.unwrap();
    let first = header();
    let begun = worker.call(|db| {
        assert!(db.checkpoint());
        db.begin_log();
        Ok(())
    });
    begun.await.unwrap();
    let second = header();
    assert_ne!(second, first);
    worker.call(write).await.unwrap();
    assert_eq!(header(), second);
}

#[tokio::test]
async fn warming_up_changes_nothing() {
    let (folder, worker) = worker_of_existing().await;
    worker.prepare();
    let log = folder.path().join("sessions.db-wal");
    let warmed = worker.call(move |db| {
        let before = fs::read(&log).unwrap();
        db.warm_up();
        assert_eq!(fs::read(&log).unwrap(), before);
        assert!(db.sql.is_autocommit());
        let count = "SELECT count(*) FROM sessions";
        Ok(db.sql.query_row(count, [], |row| row.get::<_, u64>(0))?)
    });
    assert_eq!(warmed.await, Ok(0));
}

#[tokio::test]
async fn warming_up_waits_for_no_other_process() {
    let (folder, worker) = worker_of_existing().await;
    let other = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // With the usual timeout for locks, this would fail: it does not end while the other process writes.
    let warmed = worker.call(|db| {
        db.warm_up();
        Ok(db.sql.is_autocommit())
    });
    assert_eq!(warmed.await, Ok(true));
    other.execute_batch("ROLLBACK").unwrap();
}

/// SQLite keeps the log beside the file that the link names.
#[cfg(unix)]
#[tokio::test]
async fn log_of_a_linked_database_is_flushed() {
    let (folder, first) = worker_of_existing().await;
    drop(first);
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("sessions.db"), &link).unwrap();
    let worker = Worker::new(link, "writer");
    worker.prepare();
    let write = |db: &mut Db| Ok(db.sql.execute_batch("CREATE TABLE kept (n)")?);
    worker.call_flushed(write).await.unwrap();
    // The thread flushes before it takes the next job.
    let state = worker.call(|db| Ok((db.wal.is_flushed(), db.wal.is_empty())));
    assert_eq!(state.await, Ok((true, false)));
}
