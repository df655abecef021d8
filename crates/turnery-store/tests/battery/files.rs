//! Tests the database file: created late and private, rejected with a clear error if damaged, never deleted.

use crate::samples::*;
use std::{fs, path::Path};
use turnery_store::{ListQuery, SqliteStore, Store, StoreError};

async fn open_error(path: &Path) -> String {
    let store = SqliteStore::open(path.to_path_buf());
    match store.list(ListQuery::default()).await {
        Err(StoreError::Broken(open_error)) => open_error,
        other => panic!("{other:?} instead of a sentence"),
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let garbage = b"this is not a database, it only says so. ".repeat(100);
    fs::write(&path, &garbage).unwrap();
    let said = open_error(&path).await;
    assert!(
        said.contains("sessions.db is damaged or not a session database"),
        "{said}"
    );
    assert_eq!(fs::read(&path).unwrap(), garbage);
}

#[tokio::test]
async fn truncated_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..5000]).unwrap();
    let said = open_error(&path).await;
    assert!(said.contains("damaged"), "{said}");
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
    let said = open_error(&newer).await;
    assert!(
        said.contains("version 99") && said.contains("update turnery"),
        "{said}"
    );

    let db = rusqlite::Connection::open(&newer).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    let said = open_error(&newer).await;
    assert!(
        said.contains("version 1 ") && said.contains("choose another file"),
        "{said}"
    );

    let other = folder.path().join("other.db");
    let db = rusqlite::Connection::open(&other).unwrap();
    db.execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    drop(db);
    let said = open_error(&other).await;
    assert!(said.contains("database of another program"), "{said}");
}

#[tokio::test]
async fn unusable_path_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let said = open_error(folder.path()).await;
    assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let said = open_error(&file.join("sessions.db")).await;
    assert!(
        said.contains("choose a file in a folder of yours"),
        "{said}"
    );
}

/// Nothing can be created under `/proc`, not even by root.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn read_only_folder_is_named_in_the_error() {
    for path in ["/proc/turnery/sessions.db", "/proc/sys/sessions.db"] {
        let said = open_error(Path::new(path)).await;
        assert!(said.contains(path), "{said}");
        assert!(
            said.contains("choose a file in a folder of yours"),
            "{said}"
        );
    }
    // Exists, but is read-only.
    let said = open_error(Path::new("/proc/sys/kernel/ostype")).await;
    assert!(said.contains("/proc/sys/kernel/ostype"), "{said}");
    assert!(
        said.contains("check that it is a file in a folder of yours"),
        "{said}"
    );
}
