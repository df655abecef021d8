//! Moves, removes or replaces an open database: no write is acknowledged afterwards.

use crate::samples::*;
use std::{fs, path::Path};
use turnery_store::{ListQuery, SqliteStore, Store, StoreError};

async fn refusals(store: &SqliteStore, lane: &turnery_store::Lane) -> Vec<StoreError> {
    let id = &lane.session_id;
    let record = record("s1", 1, "Where is it?").into();
    let refused = [
        store.claim(id, &owner("a")).await.map(drop),
        store.commit(commit_of(lane, 0, &record)).await.map(drop),
        store.create(new_session("s2")).await.map(drop),
        store.renew(lane).await,
        store.list(ListQuery::default()).await.map(drop),
        store.loops(id, 0).await.map(drop),
        store.info(id).await.map(drop),
    ];
    refused.into_iter().map(Result::unwrap_err).collect()
}

async fn is_refused_while(change: impl Fn(&Path), undo: impl Fn(&Path)) {
    is_refused(&change, &undo, true).await;
    is_refused(&change, &undo, false).await;
}

/// `has_read`: the connection that reads is open before the change.
async fn is_refused(change: impl Fn(&Path), undo: impl Fn(&Path), has_read: bool) {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    if has_read {
        store.loops(&"s1".into(), 0).await.unwrap();
    }
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    change(&path);
    let is_there = path.exists();
    for error in refusals(&store, &lane).await {
        let text = error.to_string();
        assert!(text.contains("was moved, removed or replaced"), "{text}");
        assert!(text.contains("put the file back, or restart"), "{text}");
    }
    assert_eq!(path.exists(), is_there, "nothing is created");
    undo(&path);
    if path.exists() {
        let record = record("s1", 1, "Here again?").into();
        assert_eq!(store.commit(commit_of(&lane, 0, &record)).await, Ok(1));
        assert_eq!(store.loops(&"s1".into(), 0).await.unwrap(), [record]);
    }
}

#[tokio::test]
async fn moved_database_is_refused_until_restored() {
    let aside = |path: &Path| path.with_file_name("aside.db");
    is_refused_while(
        |path| fs::rename(path, aside(path)).unwrap(),
        |path| fs::rename(aside(path), path).unwrap(),
    )
    .await;
}

#[tokio::test]
async fn removed_database_is_refused() {
    is_refused_while(|path| fs::remove_file(path).unwrap(), |_| ()).await;
}

#[tokio::test]
async fn replaced_database_is_refused_until_restored() {
    let aside = |path: &Path| path.with_file_name("aside.db");
    is_refused_while(
        |path| {
            fs::rename(path, aside(path)).unwrap();
            fs::copy(aside(path), path).unwrap();
        },
        |path| fs::rename(aside(path), path).unwrap(),
    )
    .await;
}

#[tokio::test]
async fn moved_folder_is_refused() {
    let aside = |path: &Path| path.parent().unwrap().with_extension("aside");
    is_refused_while(
        |path| fs::rename(path.parent().unwrap(), aside(path)).unwrap(),
        |path| fs::rename(aside(path), path.parent().unwrap()).unwrap(),
    )
    .await;
}
