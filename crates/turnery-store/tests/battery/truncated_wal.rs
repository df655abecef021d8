//! Simulates torn writes: whatever part of the latest writes reached the disk, only complete commits are
//! found.

use crate::samples::*;
use std::{fs, path::Path, sync::Arc};
use turnery_engine::LoopRecord;
use turnery_store::{ListQuery, SqliteStore, Store};

const COMMITS: u32 = 4;
/// Number of positions at which the log is truncated.
const CUTS: u64 = 80;

fn sample(number: u32) -> Arc<LoopRecord> {
    Arc::new(record("s1", number, "How is it?"))
}

/// Returns a database and its log while several commits are only in the log.
async fn write_commits(folder: &Path) -> [Vec<u8>; 2] {
    let path = folder.join("sessions.db");
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.expect("made");
    // A reader of the earlier state prevents a checkpoint of the commits.
    let reader = rusqlite::Connection::open(&path).expect("opened");
    reader.execute_batch("BEGIN").expect("begun");
    let count = reader.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
        row.get::<_, i64>(0)
    });
    assert!(count.expect("read") > 0);
    let opened = store.claim(&"s1".into(), &owner("a")).await;
    let lane = opened.expect("claimed").lane;
    for number in 1..=COMMITS {
        let done = store.commit(commit_of(&lane, (number - 1).into(), &sample(number)));
        done.await.expect("committed");
    }
    ["sessions.db", "sessions.db-wal"].map(|name| fs::read(folder.join(name)).expect("read"))
}

/// Returns the number of complete commits after the creation of the session; `None` if the session is missing.
async fn count_commits(path: &Path) -> Option<u32> {
    let store = SqliteStore::open(path.to_path_buf());
    let page = store.list(ListQuery::default()).await.expect("readable");
    let info = page.sessions.first()?;
    let loops = store.loops(&info.id, 0).await.expect("readable");
    let count = u32::try_from(loops.len()).expect("few");
    let whole: Vec<_> = (1..=count).map(sample).collect();
    assert_eq!(loops, whole);
    assert_eq!(info.head_version, u64::from(count));
    assert_eq!(info.tip_loop_id, (count > 0).then(|| loop_id("s1", count)));
    Some(count)
}

// proves: S3, S4
#[tokio::test]
async fn truncated_wal_yields_whole_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, log] = write_commits(folder.path()).await;
    let mut counts = Vec::new();
    for cut in 0..=CUTS {
        let length = usize::try_from(log.len() as u64 * cut / CUTS).expect("small");
        let torn = tempfile::tempdir().expect("a folder");
        let path = torn.path().join("sessions.db");
        fs::write(&path, &file).expect("written");
        fs::write(torn.path().join("sessions.db-wal"), &log[..length]).expect("written");
        counts.push(count_commits(&path).await);
    }
    assert_eq!(counts.last(), Some(&Some(COMMITS)));
    assert!(
        counts.is_sorted(),
        "more of the log, more commits: {counts:?}"
    );
    counts.dedup();
    let each: Vec<_> = (0..=COMMITS).map(Some).collect();
    assert!(counts.ends_with(&each), "{counts:?}");
}

// proves: S4
#[tokio::test]
async fn garbage_at_the_wal_end_yields_whole_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, log] = write_commits(folder.path()).await;
    let torn = tempfile::tempdir().expect("a folder");
    let path = torn.path().join("sessions.db");
    // The last commit is a few pages, of which only some are changed.
    let mut spoilt = log.clone();
    let tail = spoilt.len() - 100;
    spoilt[tail..].fill(0xa5);
    fs::write(&path, &file).expect("written");
    fs::write(torn.path().join("sessions.db-wal"), &spoilt).expect("written");
    assert_eq!(count_commits(&path).await, Some(COMMITS - 1));
}
