//! Opens databases of earlier versions, created with the SQL of those versions, and checks the migration.

use crate::{effects, samples::*};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};
use turnery_engine::{LoopStatus, TurnFinish};
use turnery_store::{
    ListQuery, NextEffect, RememberedApproval, SessionPatch, SqliteStore, Store, TakenEffect,
    TranscriptNote,
};

/// Version 1 was never released, and is refused (see `files`).
const VERSIONS: [(u32, &str); 5] = [
    (2, include_str!("versions/version_2.sql")),
    (3, include_str!("versions/version_3.sql")),
    (4, include_str!("versions/version_4.sql")),
    (5, include_str!("versions/version_5.sql")),
    (6, include_str!("versions/version_6.sql")),
];

/// Returns name and type of all columns, and the names of all other objects.
fn schema_of(path: &Path) -> Vec<String> {
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
async fn older_versions_are_migrated() {
    for (version, sql) in VERSIONS {
        let (folder, path) = crate::temp_database();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let store = SqliteStore::open(path.clone());
        let id = "s1".into();
        // Contents.
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{version}");
        let info = store.info(&id).await.unwrap();
        assert_eq!(info.title.as_deref(), Some("Old"), "{version}");
        let kept = match version {
            2 => Vec::new(),
            _ => vec![TranscriptNote {
                at: at(5),
                message: (*message(&loop_id("s1", 1), "m1", user("/help"))).clone(),
            }],
        };
        assert_eq!(store.notes(&id).await, Ok(kept.clone()), "{version}");
        let stored = [
            Arc::new(record("s1", 1, "How is it?")),
            Arc::new(with_calls(record("s1", 2, "Why?"), 1, "out")),
        ];
        assert_eq!(store.loops(&id, 0).await.unwrap(), stored, "{version}");
        let here = ListQuery {
            folder: Some(info.cwd.clone()),
            ..ListQuery::default()
        };
        assert_eq!(
            store.list(here).await.unwrap().sessions,
            [info],
            "{version}"
        );
        // Journalled events, and features of the current version.
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
            None,
        ));
        let next = Arc::new(next);
        let head = opened.info.head_version;
        let mut commit = commit_of(&opened.lane, head, &next);
        commit.effects.push(effects::effect("s1", 0));
        let committed = store.commit(commit).await;
        assert_eq!(committed, Ok(head + 1), "{version}");
        let taken = TakenEffect {
            pending: effects::effect("s1", 0),
            attempt: 1,
        };
        let first = store.take_effect(&id, &owner("b")).await;
        assert_eq!(first, Ok(NextEffect::Taken(taken)), "{version}");
        assert_eq!(store.loops(&id, head).await, Ok(vec![next]), "{version}");
        let always = RememberedApproval::Reject("edit".to_owned());
        let patch = SessionPatch {
            always: Some(always.clone()),
            ..SessionPatch::default()
        };
        let patched = store.patch(&id, patch).await.unwrap();
        assert_eq!(patched.always, [always], "{version}");
        let note = TranscriptNote {
            at: at(9),
            message: (*message(&loop_id("s1", 1), "m2", user("/cost"))).clone(),
        };
        store.add_notes(&id, vec![note.clone()]).await.unwrap();
        let noted = [kept, vec![note]].concat();
        assert_eq!(store.notes(&id).await, Ok(noted), "{version}");
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{version}");
        drop(store);
        // Same tables as in a new database.
        let fresh = folder.path().join("fresh.db");
        let new = SqliteStore::open(fresh.clone());
        new.list(ListQuery::default()).await.unwrap();
        assert_eq!(schema_of(&path), schema_of(&fresh), "{version}");
    }
}
