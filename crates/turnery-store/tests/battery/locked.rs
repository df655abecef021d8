//! Tests a database that another program keeps locked: a backup, or a suspended process.

use crate::samples::*;
use rusqlite::Connection;
use std::path::PathBuf;
use turnery_store::{ListQuery, SqliteStore, Store};

/// Locks the database until the connection is dropped.
fn lock_database(path: &PathBuf) -> Connection {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn commit_waits_for_the_lock_of_another_program() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let record = record("s1", 1, "Is it paid for?").into();
    let other = lock_database(&path);
    let committing = store.commit(commit_of(&lane, 0, &record));
    // Readers do not wait.
    let page = store.list(ListQuery::default()).await.unwrap();
    assert_eq!(page.sessions[0].head_version, 0);
    drop(other);
    assert_eq!(committing.await, Ok(1));
    assert_eq!(store.loops(&"s1".into(), 0).await.unwrap(), [record]);
}
