//! Tests the database file: created late and private, rejected with a clear error if damaged, never deleted.

use crate::samples::*;
use std::{fs, path::Path};
use turnery_store::{ListQuery, SqliteStore, Store, StoreError};

/// Checks that a store with this file fails, with a message that contains all of `parts`.
async fn assert_refused(path: &Path, parts: &[&str]) {
    let store = SqliteStore::open(path.to_path_buf());
    match store.list(ListQuery::default()).await {
        Err(StoreError::Broken(text)) => {
            for part in parts {
                assert!(text.contains(part), "{text}");
            }
        }
        other => panic!("{other:?} instead of an error of the file"),
    }
}

#[tokio::test]
async fn nothing_is_touched_before_the_first_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turnery/sessions.db");
    drop(SqliteStore::open(path.clone()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
#[cfg(unix)]
async fn folder_and_files_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turnery/sessions.db");
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        assert_eq!(mode(&path.with_file_name(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn drop_writes_queued_events() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    store.append(
        &lane,
        &loop_id("s1", 1),
        events("s1", 1, "Hello")[..4].to_vec(),
    );
    drop(store);
    let store = SqliteStore::open(path);
    store.claim(&"s1".into(), &owner("a")).await.unwrap();
    let loops = store.loops(&"s1".into(), 0).await.unwrap();
    assert_eq!(loops[0].events[..4], events("s1", 1, "Hello")[..4]);
}

#[tokio::test]
async fn garbage_is_refused_and_left_alone() {
    let (_folder, path) = crate::temp_database();
    let garbage = b"this is not a database, it only says so. ".repeat(100);
    fs::write(&path, &garbage).unwrap();
    assert_refused(&path, &["sessions.db is damaged or not a session database"]).await;
    assert_eq!(fs::read(&path).unwrap(), garbage);
}

#[tokio::test]
async fn truncated_file_is_refused_and_left_alone() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..5000]).unwrap();
    assert_refused(&path, &["damaged"]).await;
    assert_eq!(fs::read(&path).unwrap(), whole[..5000]);
}

#[tokio::test]
async fn another_version_and_another_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let newer = folder.path().join("sessions.db");
    let store = SqliteStore::open(newer.clone());
    store.create(new_session("s1")).await.unwrap();
    drop(store);
    let db = rusqlite::Connection::open(&newer).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    assert_refused(&newer, &["version 99", "update turnery"]).await;

    let db = rusqlite::Connection::open(&newer).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    assert_refused(&newer, &["version 1 ", "choose another file"]).await;

    let other = folder.path().join("other.db");
    let db = rusqlite::Connection::open(&other).unwrap();
    db.execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    drop(db);
    assert_refused(&other, &["database of another program"]).await;
}

#[tokio::test]
async fn unusable_path_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(folder.path(), &[folder.path().to_str().unwrap()]).await;
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_refused(
        &file.join("sessions.db"),
        &["choose a file in a folder of yours"],
    )
    .await;
}

/// Nothing can be created under `/proc`, not even by root.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn read_only_folder_is_named_in_the_error() {
    for path in ["/proc/turnery/sessions.db", "/proc/sys/sessions.db"] {
        assert_refused(
            Path::new(path),
            &[path, "choose a file in a folder of yours"],
        )
        .await;
    }
    // Exists, but is read-only.
    assert_refused(
        Path::new("/proc/sys/kernel/ostype"),
        &[
            "/proc/sys/kernel/ostype",
            "check that it is a file in a folder of yours",
        ],
    )
    .await;
}
