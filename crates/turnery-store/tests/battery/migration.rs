//! Databases of earlier versions, made with the SQL of those versions, are brought up to date when opened.

use crate::samples::*;
use rusqlite::Connection;
use std::{path::Path, sync::Arc};
use turnery_engine::{LoopStatus, TurnFinish};
use turnery_store::{Always, ListQuery, Remark, SessionPatch, SqliteStore, Store};

/// Version 1 was never released, and is refused (see `files`).
const VERSIONS: [(u32, &str); 4] = [
    (2, include_str!("versions/version_2.sql")),
    (3, include_str!("versions/version_3.sql")),
    (4, include_str!("versions/version_4.sql")),
    (5, include_str!("versions/version_5.sql")),
];

/// Name and type of all columns, and the names of all else.
fn shape(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let sql = "SELECT name || ' ' || type FROM sqlite_schema UNION ALL \
               SELECT tables.name || '.' || columns.name || ' ' || columns.type || columns.\"notnull\" \
               FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns \
               WHERE tables.type = 'table' ORDER BY 1";
    let mut select = db.prepare(sql).unwrap();
    let names = select.query_map((), |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

#[tokio::test]
async fn earlier_versions_are_brought_up_to_date() {
    for (version, sql) in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let store = SqliteStore::open(path.clone());
        let id = "s1".into();
        // What it holds.
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{version}");
        let info = store.info(&id).await.unwrap();
        assert_eq!(info.title.as_deref(), Some("Old"), "{version}");
        let kept = match version {
            2 => Vec::new(),
            _ => vec![Remark {
                at: at(5),
                message: (*message(&loop_id("s1", 1), "m1", user("/help"))).clone(),
            }],
        };
        assert_eq!(store.remarks(&id).await, Ok(kept.clone()), "{version}");
        let stored = [
            Arc::new(record("s1", 1, "How is it?")),
            Arc::new(with_calls(record("s1", 2, "Why?"), 1, "out")),
        ];
        assert_eq!(store.loops(&id, 0).await.unwrap(), stored, "{version}");
        let here = ListQuery {
            cwd: Some(info.cwd.clone()),
            ..ListQuery::default()
        };
        assert_eq!(
            store.list(here).await.unwrap().sessions,
            [info],
            "{version}"
        );
        // What was journalled, and what only this version knows.
        let opened = store.claim(&id, &owner("b")).await.unwrap();
        assert_eq!(opened.last_number, 3, "{version}");
        let loops = store.loops(&id, 0).await.unwrap();
        assert_eq!(loops[..2], stored, "{version}");
        assert_eq!(loops[2].status, LoopStatus::Aborted, "{version}");
        assert_eq!(loops[2].messages[0].message, user("And then?"), "{version}");
        let mut next = record("s1", 4, &"How long is it? ".repeat(10_000));
        next.outcome = Some(turnery_engine::Outcome::Finished(
            TurnFinish::AssistantMessage {
                text: "Long. ".repeat(20_000).into(),
            },
        ));
        let next = Arc::new(next);
        let head = opened.info.head_version;
        let committed = store.commit(commit(&opened.lane, head, &next)).await;
        assert_eq!(committed, Ok(head + 1), "{version}");
        assert_eq!(store.loops(&id, head).await, Ok(vec![next]), "{version}");
        let always = Always::Reject("edit".to_owned());
        let patch = SessionPatch {
            always: Some(always.clone()),
            ..SessionPatch::default()
        };
        let patched = store.patch(&id, patch).await.unwrap();
        assert_eq!(patched.always, [always], "{version}");
        let note = Remark {
            at: at(9),
            message: (*message(&loop_id("s1", 1), "m2", user("/cost"))).clone(),
        };
        store.remark(&id, vec![note.clone()]).await.unwrap();
        let noted = [kept, vec![note]].concat();
        assert_eq!(store.remarks(&id).await, Ok(noted), "{version}");
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{version}");
        drop(store);
        // The same tables as in a new database.
        let fresh = folder.path().join("fresh.db");
        let new = SqliteStore::open(fresh.clone());
        new.list(ListQuery::default()).await.unwrap();
        assert_eq!(shape(&path), shape(&fresh), "{version}");
    }
}
