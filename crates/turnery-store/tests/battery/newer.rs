//! Newer: rows with words that only a later version knows. They are left out of their own session and
//! named, and trouble no other.

use crate::samples::*;
use rusqlite::Connection;
use std::{path::Path, sync::Arc};
use turnery_store::{ListQuery, SqliteStore, Store};

/// What a later version may write into a loop's row, and the word that is not known then.
const WORDS: [(&str, &str); 5] = [
    (
        "log = replace(log, '\"usage_reported\"', '\"teleported\"')",
        "teleported",
    ),
    ("status = 'dreaming'", "dreaming"),
    ("continuation_kind = 'sideways'", "sideways"),
    (
        "record = replace(record, '\"finished\"', '\"vanished\"')",
        "vanished",
    ),
    (
        "messages = replace(messages, '\"assistant\"', '\"oracle\"')",
        "oracle",
    ),
];

/// A database with two sessions of one loop each.
async fn two_sessions(path: &Path) {
    let store = SqliteStore::open(path.to_path_buf());
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
        let lane = store.claim(&id.into(), &owner("a")).await.unwrap().lane;
        let record = Arc::new(record(id, 1, "How is it?"));
        store.commit(commit(&lane, 0, &record)).await.unwrap();
        store.release(&lane).await.unwrap();
    }
}

#[tokio::test]
async fn a_row_of_a_later_version_is_named_and_stays() {
    for (change, word) in WORDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        two_sessions(&path).await;
        let db = Connection::open(&path).unwrap();
        let sql = format!("UPDATE loops SET {change}, checksum = NULL WHERE session_id = 's1'");
        assert_eq!(db.execute(&sql, ()).unwrap(), 1);
        drop(db);
        let store = SqliteStore::open(path.clone());
        let damage = store.check(Some(&"s1".into())).await.unwrap();
        let [only] = &damage[..] else {
            panic!("{word}: {damage:?}");
        };
        let told = only.to_string();
        for part in [
            "loop s1.cfg.1 ",
            "cannot be read: ",
            word,
            "if a newer turnery has written it, use that one",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let history = store.history(&"s1".into()).await.unwrap();
        let loops = store.loops(&"s1".into(), 0).await.unwrap();
        match word {
            // The model needs no events, and all but that one are there.
            "teleported" => {
                assert_eq!((history.loops.len(), history.damage.len()), (1, 0));
                assert_eq!(loops[0].events.len(), 8);
            }
            _ => {
                assert_eq!(history.damage, damage, "{word}");
                assert_eq!((history.loops.len(), loops.len()), (0, 0), "{word}");
            }
        }
        assert_eq!(store.check(Some(&"s2".into())).await, Ok(Vec::new()));
        let listed = store.list(ListQuery::default()).await.unwrap();
        assert_eq!(listed.sessions.len(), 2, "{word}");
        let other = Arc::new(record("s2", 1, "How is it?"));
        assert_eq!(
            store.loops(&"s2".into(), 0).await,
            Ok(vec![Arc::clone(&other)])
        );
        let lane = store.claim(&"s2".into(), &owner("b")).await.unwrap().lane;
        let more = Arc::new(record("s2", 2, "And now?"));
        assert_eq!(store.commit(commit(&lane, 1, &more)).await, Ok(2));
        let read = store.loops(&"s2".into(), 0).await;
        assert_eq!(read, Ok(vec![other, more]));
    }
}
