//! Damages the lane of a session: the session stays usable, the check reports the damage, and the repair
//! removes it.

use crate::{damage::write_loops, samples::*};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};
use turnery_store::{SessionPatch, SqliteStore, Store};

/// Damaging statements, and the columns that the check reports.
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
    ("lost_number = -1", &["lost_number"]),
];

/// A store whose first session was held on another machine long ago, with a loop in the journal.
async fn damaged_store(path: &Path, change: &str) -> SqliteStore {
    write_loops(path).await;
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

async fn assert_usable(store: &SqliteStore, context: &str) {
    let opened = store.claim(&"s1".into(), &owner("b")).await;
    let opened = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(opened.last_number, 7, "{context}");
    let next = Arc::new(record("s1", 8, "And now?"));
    let head = opened.info.head_version;
    store
        .commit(commit_of(&opened.lane, head, &next))
        .await
        .unwrap();
    store.renew(&opened.lane).await.unwrap();
    store.release(&opened.lane).await.unwrap();
    let history = store.history(&"s1".into()).await.unwrap();
    assert_eq!(history.loops.len(), 8, "{context}");
}

/// Clients with the session open compare its version to decide whether to reload it.
#[tokio::test]
async fn repair_is_noticed_at_the_next_claim() {
    let (_folder, path) = crate::temp_database();
    write_loops(&path).await;
    let open = SqliteStore::open(path.clone());
    let id = "s1".into();
    let lane = open.claim(&id, &owner("a")).await.unwrap().lane;
    open.release(&lane).await.unwrap();
    let db = Connection::open(&path).unwrap();
    let sql = "UPDATE loops SET parent_loop_id = 's1.cfg.x' WHERE loop_id = 's1.cfg.5'";
    db.execute(sql, ()).unwrap();
    let known = open.info(&id).await.unwrap().head_version;
    let other = SqliteStore::open(path);
    let repair = other.repair(&id).await.unwrap();
    assert_eq!((repair.changes.len(), repair.left), (1, Vec::new()));
    let opened = open.claim(&id, &owner("a")).await.unwrap();
    assert!(opened.info.head_version > known);
    // No damage remains, and no version is missing.
    open.release(&opened.lane).await.unwrap();
    assert_eq!(other.repair(&id).await.unwrap().changes, [""; 0]);
    let again = open.claim(&id, &owner("a")).await.unwrap();
    assert_eq!(again.info, opened.info);
}

/// Unreadable values stay for the repair to keep.
#[tokio::test]
async fn patch_leaves_what_it_does_not_name() {
    let columns = ["title", "model", "mode", "thinking", "archived"];
    for column in columns {
        let (_folder, path) = crate::temp_database();
        write_loops(&path).await;
        let db = Connection::open(&path).unwrap();
        let value = match column {
            "archived" => "-7",
            _ => "CAST(x'61ff' AS TEXT)",
        };
        let sql = format!("UPDATE sessions SET {column} = {value} WHERE session_id = 's1'");
        db.execute(&sql, ()).unwrap();
        let sql = format!("SELECT CAST({column} AS BLOB) FROM sessions WHERE session_id = 's1'");
        let stored = || {
            db.query_row(&sql, (), |row| row.get::<_, Vec<u8>>(0))
                .unwrap()
        };
        let before = stored();
        let store = SqliteStore::open(path);
        let patch = SessionPatch {
            roots: Some(vec!["/srv".into()]),
            ..SessionPatch::default()
        };
        store.patch(&"s1".into(), patch).await.unwrap();
        assert_eq!(stored(), before, "{column}");
    }
}

#[tokio::test]
async fn damaged_lane_does_not_block_claims() {
    let id = "s1".into();
    for (change, _) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        assert_usable(&damaged_store(&path("claimed.db"), change).await, change).await;
        let store = damaged_store(&path("recovered.db"), change).await;
        store.recover(&id).await.unwrap();
        assert_usable(&store, change).await;
        let store = damaged_store(&path("deleted.db"), change).await;
        assert_eq!(store.delete(&id).await, Ok(true), "{change}");
        let store = damaged_store(&path("deleted_in_use.db"), change).await;
        let deleted = store.delete_in_use(&id).await;
        assert!(matches!(deleted, Ok(Some(_))), "{change}: {deleted:?}");
    }
}

#[tokio::test]
async fn damaged_lane_is_named_and_repaired() {
    let id = "s1".into();
    for (change, columns) in CASES {
        let (_folder, path) = crate::temp_database();
        let store = damaged_store(&path, change).await;
        let damage = store.check(Some(&id)).await.unwrap();
        for column in *columns {
            let named = format!("has {column} that cannot be read");
            let is_named = damage.iter().any(|it| it.to_string().contains(&named));
            assert!(is_named, "{change}: {damage:?}");
        }
        let repair = store.repair(&id).await.unwrap();
        assert_eq!(repair.left, Vec::new(), "{change}");
        assert!(!repair.changes.is_empty(), "{change}");
        assert_usable(&store, change).await;
    }
}
