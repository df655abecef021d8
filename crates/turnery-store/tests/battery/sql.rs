//! Checks that plain SQL can read the database: the views show what was committed.

use crate::samples::*;
use rusqlite::{Connection, types::Value};
use std::sync::Arc;
use turnery_engine::{EventKind, LoopRecord, ParallelGroup};
use turnery_store::{SqliteStore, Store};

async fn database(folder: &tempfile::TempDir, record: LoopRecord) -> Connection {
    database_of(folder, [record]).await
}

/// Stores a session with these loops, and closes the store.
async fn database_of<const N: usize>(
    folder: &tempfile::TempDir,
    records: [LoopRecord; N],
) -> Connection {
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    for (head, record) in (0..).zip(records) {
        let commit = commit_of(&lane, head, &Arc::new(record));
        store.commit(commit).await.unwrap();
    }
    drop(store);
    Connection::open(path).unwrap()
}

fn rows(db: &Connection, sql: &str) -> Vec<String> {
    let mut select = db.prepare(sql).unwrap();
    let width = select.column_count();
    let rows = select.query_map([], |row| {
        let cells = (0..width).map(|place| {
            Ok(match row.get::<_, Value>(place)? {
                Value::Null => "-".to_owned(),
                Value::Integer(number) => number.to_string(),
                Value::Real(number) => number.to_string(),
                Value::Text(text) => text,
                Value::Blob(_) => "blob".to_owned(),
            })
        });
        let cells: Result<Vec<String>, rusqlite::Error> = cells.collect();
        Ok(cells?.join(" "))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn turns_and_what_they_cost() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, record("s1", 1, "How is it?")).await;
    assert_eq!(
        rows(&db, "SELECT * FROM turns"),
        [
            "s1 1 0 user [\"s1.cfg.1.ask\"] s1.cfg.1.answer [] 2026-11-21T05:01:41.000000001Z \
             2026-11-21T05:01:47.000000001Z 10 5 0 0 0"
        ]
    );
    assert_eq!(
        rows(&db, "SELECT * FROM usage"),
        ["s1 1 turn 0 offline echo 2026-11-21T05:01:47.000000001Z 10 5 0 0 0"]
    );
}

/// A summary counts for the loop's model, a judgement for the judge; the other branches of a group repeat the
/// judgement, which counts once.
// proves: I10
#[tokio::test]
async fn usage_outside_turns() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |selected| ParallelGroup {
        all_loop_ids: vec![loop_id("s1", 1), loop_id("s1", 2)],
        selected_loop_id: loop_id("s1", 1),
        selected_config_index: 0,
        evaluation_usage: usage(7, 3),
        judge: Some("puppet/big/wise".to_owned()),
        command: None,
        is_selected: selected,
    };
    let chosen = LoopRecord {
        compaction_usage: Some(usage(100, 9)),
        parallel_group: Some(judged(true)),
        ..record("s1", 1, "How is it?")
    };
    let other = LoopRecord {
        parallel_group: Some(judged(false)),
        ..record("s1", 2, "How is it?")
    };
    let unjudged = LoopRecord {
        parallel_group: Some(ParallelGroup {
            evaluation_usage: usage(0, 0),
            ..judged(true)
        }),
        ..record("s1", 3, "How is it?")
    };
    let db = database_of(&folder, [chosen, other, unjudged]).await;
    let sql = "SELECT loop, source, provider, model, at, input, output FROM usage \
               ORDER BY source, loop";
    assert_eq!(
        rows(&db, sql),
        [
            "1 compaction offline echo 2026-11-21T05:01:48.000000001Z 100 9",
            "1 evaluation puppet big/wise 2026-11-21T05:01:48.000000001Z 7 3",
            "1 turn offline echo 2026-11-21T05:01:47.000000001Z 10 5",
            "2 turn offline echo 2026-11-21T05:03:27.000000001Z 10 5",
            "3 turn offline echo 2026-11-21T05:05:07.000000001Z 10 5",
        ]
    );
}

#[tokio::test]
async fn messages_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, record("s1", 1, "How is it?")).await;
    assert_eq!(
        rows(&db, "SELECT * FROM messages ORDER BY place"),
        [
            "s1 1 0 s1.cfg.1.ask 0 - {\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"How is it?\"}]}",
            "s1 1 1 s1.cfg.1.answer 0 - {\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"All is \
             well.\"}],\"stop\":\"stop\",\"model\":\"echo\",\"provider\":\"offline\",\"usage\":{\"input\":10,\
             \"output\":5,\"reasoning\":0,\"cache_read\":0,\"cache_write\":0,\"total_tokens\":15}}",
        ]
    );
}

// proves: C-13
#[tokio::test]
async fn events_with_their_times_and_whole_contents() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = record("s1", 1, "How is it?");
    // Before the start, as after setting a clock back, and across a full second.
    record.events[1].at = at(99) - std::time::Duration::from_nanos(2);
    record.events[2].at = at(101) - std::time::Duration::from_nanos(1);
    let db = database(&folder, record).await;
    assert_eq!(
        rows(
            &db,
            "SELECT session_id, loop, seq, turn, at, message, event FROM events ORDER BY seq"
        ),
        [
            "s1 1 0 - 2026-11-21T05:01:40.000000001Z - loop_start",
            "s1 1 1 0 2026-11-21T05:01:38.999999999Z - turn_start",
            "s1 1 2 0 2026-11-21T05:01:41.000000000Z - message_start",
            "s1 1 3 0 2026-11-21T05:01:43.000000001Z 0 message_end",
            "s1 1 4 0 2026-11-21T05:01:44.000000001Z - message_start",
            "s1 1 5 0 2026-11-21T05:01:45.000000001Z 1 message_end",
            "s1 1 6 0 2026-11-21T05:01:46.000000001Z - usage_reported",
            "s1 1 7 0 2026-11-21T05:01:47.000000001Z - turn_end",
            "s1 1 8 - 2026-11-21T05:01:48.000000001Z - loop_end",
        ]
    );
    // Data that the log omits because the record has it is still visible.
    let whole = rows(
        &db,
        "SELECT body ->> '$.config.model', body ->> '$.outcome.finished.assistant_message.text' \
         FROM events WHERE event IN ('loop_start', 'loop_end') ORDER BY seq",
    );
    assert_eq!(whole, ["echo -", "- All is well."]);
    // A message is in the record only.
    let bodies = rows(&db, "SELECT body FROM events WHERE event = 'message_end'");
    assert_eq!(bodies, ["-", "-"]);
}

/// An end event that differs from the record is stored completely.
#[tokio::test]
async fn event_that_differs_from_its_record_is_stored_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = record("s1", 1, "How is it?");
    record.outcome = None;
    record.config = None;
    let db = database(&folder, record.clone()).await;
    let sql = "SELECT body ->> '$.outcome.finished.assistant_message.text' FROM events \
               WHERE event = 'loop_end'";
    assert_eq!(rows(&db, sql), ["All is well."]);
    drop(db);
    let store = SqliteStore::open(folder.path().join("sessions.db"));
    let loops = store.loops(&"s1".into(), 0).await.unwrap();
    assert_eq!(*loops[0], record);
    assert!(matches!(
        &loops[0].events[0].kind,
        EventKind::LoopStart {
            config: Some(_),
            ..
        }
    ));
}

/// The journal is dropped whether it was queued, written, or written through another store that got the lane.
// proves: C-12
#[tokio::test]
async fn a_commit_leaves_no_journal_behind() {
    let (_folder, path) = crate::temp_database();
    let (store, other) = (
        SqliteStore::open(path.clone()),
        SqliteStore::open(path.clone()),
    );
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let half = |number| events("s1", number, "How is it?")[..4].to_vec();
    let record = |number| Arc::new(record("s1", number, "How is it?"));

    store.append(&lane, &loop_id("s1", 1), half(1));
    store.commit(commit_of(&lane, 0, &record(1))).await.unwrap();
    store.append(&lane, &loop_id("s1", 2), half(2));
    store.renew(&lane).await.unwrap();
    let db = Connection::open(&path).unwrap();
    let kept = || rows(&db, "SELECT DISTINCT loop_id FROM journal");
    assert_eq!(kept(), ["s1.cfg.2"]);
    store.commit(commit_of(&lane, 1, &record(2))).await.unwrap();
    assert_eq!(kept(), Vec::<String>::new());

    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    other.append(&lane, &loop_id("s1", 3), half(3));
    other.renew(&lane).await.unwrap();
    store.commit(commit_of(&lane, 2, &record(3))).await.unwrap();
    let opened = store.claim(&"s1".into(), &owner("a")).await.unwrap();
    assert_eq!(opened.last_number, 3);
    assert_eq!(kept(), Vec::<String>::new());
}
