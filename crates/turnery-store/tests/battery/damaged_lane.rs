//! Damage to the lane of a session: the session stays usable, the check names it and the repair mends it.

use crate::{damage::written, samples::*};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};
use turnery_store::{SqliteStore, Store};

/// What is damaged, and the columns that the check names.
const CASES: &[(&str, &[&str])] = &[
    ("expires_at = 'soon'", &["expires_at"]),
    ("expires_at = CAST(x'ff' AS TEXT)", &["expires_at"]),
    ("expires_at = NULL", &["expires_at"]),
    ("process = CAST(x'ff' AS TEXT)", &["process"]),
    (
        "process = NULL, expires_at = ''",
        &["process", "expires_at"],
    ),
    ("owner_id = CAST(x'ff' AS TEXT)", &["owner_id"]),
    ("fence = -3", &["fence"]),
    ("fence = 9223372036854775807", &["fence"]),
    ("loop_count = -1", &["loop_count"]),
];

/// A store whose first session was held on another machine long ago, with a loop in the journal.
async fn damaged(path: &Path, change: &str) -> SqliteStore {
    written(path).await;
    let store = SqliteStore::open(path.to_path_buf());
    let mut dead = owner("a");
    dead.process = "elsewhere".into();
    let lane = store.claim(&"s1".into(), &dead).await.unwrap().lane;
    let half = events("s1", 7, "More")[..4].to_vec();
    store
        .append_now(&lane, &loop_id("s1", 7), half)
        .await
        .unwrap();
    drop(store);
    let db = Connection::open(path).unwrap();
    let past = "expires_at = '2000-01-01T00:00:00.000000000Z'";
    for change in [past, change] {
        let sql = format!("UPDATE sessions SET {change} WHERE session_id = 's1'");
        assert_eq!(db.execute(&sql, ()).unwrap(), 1);
    }
    SqliteStore::open(path.to_path_buf())
}

async fn goes_on(store: &SqliteStore, context: &str) {
    let opened = store.claim(&"s1".into(), &owner("b")).await;
    let opened = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(opened.last_number, 7, "{context}");
    let next = Arc::new(record("s1", 8, "And now?"));
    let head = opened.info.head_version;
    store
        .commit(commit(&opened.lane, head, &next))
        .await
        .unwrap();
    store.renew(&opened.lane).await.unwrap();
    store.release(&opened.lane).await.unwrap();
    let history = store.history(&"s1".into()).await.unwrap();
    assert_eq!(history.loops.len(), 8, "{context}");
}

#[tokio::test]
async fn damaged_lane_stops_nothing() {
    let id = "s1".into();
    for (change, _) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        goes_on(&damaged(&path("claimed.db"), change).await, change).await;
        let store = damaged(&path("recovered.db"), change).await;
        store.recover(&id).await.unwrap();
        goes_on(&store, change).await;
        let store = damaged(&path("deleted.db"), change).await;
        assert_eq!(store.delete(&id).await, Ok(true), "{change}");
        let store = damaged(&path("deleted_in_use.db"), change).await;
        let deleted = store.delete_in_use(&id).await;
        assert!(matches!(deleted, Ok(Some(_))), "{change}: {deleted:?}");
    }
}

#[tokio::test]
async fn damaged_lane_is_named_and_repaired() {
    let id = "s1".into();
    for (change, columns) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let store = damaged(&path, change).await;
        let damage = store.check(Some(&id)).await.unwrap();
        for column in *columns {
            let named = format!("has {column} that cannot be read");
            let is_named = damage.iter().any(|it| it.to_string().contains(&named));
            assert!(is_named, "{change}: {damage:?}");
        }
        let repair = store.repair(&id).await.unwrap();
        assert_eq!(repair.left, Vec::new(), "{change}");
        assert!(!repair.changes.is_empty(), "{change}");
        goes_on(&store, change).await;
    }
}
