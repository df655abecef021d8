//! Checks that long texts are stored once, however often they occur, and keep no row large.

use crate::{World, battery, samples::*};
use rusqlite::{Connection, types::Value};
use serde_json::json;
use std::{collections::HashMap, path::Path, sync::Arc};
use turnery_engine::{
    Artifact, CallDetail, Content, Disposition, Event, EventKind, ImageData, LoopRecord, Message,
    Outcome, ToolCall, ToolEnvelope, TurnFinish,
};
use turnery_store::{
    SqliteStore, Store,
    export::{export_session, import_session},
};

battery!(
    long_texts_come_back_equal,
    other_session_of_a_reused_id_has_its_texts,
);

/// Text of about this size with every kind of JSON escape, different for each `seed`.
fn long_text(seed: char, size: usize) -> String {
    let words = "Much of a text needs no escape at all. ".repeat(8);
    let unit = format!("{seed} \"quoted\" \\/ \"\\/text \n\u{1}\u{1F980}é/{words}");
    unit.repeat(size / unit.len() + 1)
}

/// A loop that writes a file and prints it: the text of the file occurs four times, the output and the
/// response twice each.
fn record_with_texts(number: u32, file: &str, printed: &str, answer: &str) -> LoopRecord {
    let mut record = record("s1", number, "Write it");
    let diff = || CallDetail {
        artifacts: vec![Artifact::Diff {
            path: "/a".into(),
            old: None,
            new: file.to_owned(),
            from_line: None,
        }],
        ..detail("Write /a")
    };
    let call = ToolCall {
        args: Arc::new(json!({"path": "/a", "content": file})),
        ..call("c1")
    };
    let asking = Message::Assistant {
        content: vec![Content::ToolCall(call.clone())],
        stop: turnery_engine::MessageStop::ToolUse,
        model: "echo".into(),
        provider: "offline".into(),
        usage: None,
        error: None,
        request: None,
    };
    let result = Message::ToolResult {
        call_id: "c1".into(),
        tool_name: "write".into(),
        content: vec![Content::text(printed)],
        is_error: false,
    };
    let asking = message(&record.loop_id, "asking", asking);
    let result = message(&record.loop_id, "result", result);
    let answer_message = message(&record.loop_id, "answer", assistant(answer));
    let envelope = ToolEnvelope {
        artifacts: diff().artifacts,
        ..ToolEnvelope::text(printed)
    };
    let kinds = [
        EventKind::MessageEnd {
            message: Arc::clone(&asking),
        },
        EventKind::ToolCallRequested {
            call,
            detail: diff(),
        },
        EventKind::ToolExecutionEnd {
            call_id: "c1".into(),
            tool_name: "write".into(),
            envelope,
            disposition: Disposition::Executed,
            child_loop_id: None,
        },
        EventKind::MessageEnd {
            message: Arc::clone(&result),
        },
    ];
    let before = record.events[3].clone();
    let added = kinds.map(|kind| Event {
        kind,
        ..before.clone()
    });
    record.events.splice(4..4, added);
    for event in &mut record.events {
        match &mut event.kind {
            EventKind::MessageEnd { message }
                if message.message_id == answer_message.message_id =>
            {
                *message = Arc::clone(&answer_message);
            }
            EventKind::LoopEnd { outcome, .. } => *outcome = finished_outcome(answer),
            _ => {}
        }
    }
    for (seq, event) in (0..).zip(&mut record.events) {
        event.seq = seq;
    }
    record.messages = vec![
        Arc::clone(&record.messages[0]),
        asking,
        result,
        answer_message,
    ];
    record.outcome = Some(finished_outcome(answer));
    record
}

fn finished_outcome(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() }, None)
}

/// Returns the size of a text as JSON. Unit: bytes.
fn json_len(text: &str) -> usize {
    serde_json::to_string(text).unwrap().len() - 2
}

async fn long_texts_come_back_equal(world: &World) {
    let store = &world.store;
    store.create(new_session("s1")).await.unwrap();
    let id = "s1".into();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    let (file, printed, answer) = (
        long_text('f', 300_000),
        long_text('p', 9_000),
        long_text('a', 700_000),
    );
    let first = Arc::new(record_with_texts(1, &file, &printed, &answer));
    let second = Arc::new(record_with_texts(2, &printed, &file, "Done."));
    store.append(&lane, &first.loop_id, first.events[..6].to_vec());
    let now = first.events[6..9].to_vec();
    store.append_now(&lane, &first.loop_id, now).await.unwrap();
    assert_eq!(store.commit(commit_of(&lane, 0, &first)).await, Ok(1));
    // A retry gets the same result as the first attempt.
    assert_eq!(store.commit(commit_of(&lane, 0, &first)).await, Ok(1));
    assert_eq!(store.commit(commit_of(&lane, 1, &second)).await, Ok(2));
    let all = vec![Arc::clone(&first), Arc::clone(&second)];
    assert_eq!(store.loops(&id, 0).await, Ok(all));
    let history = store.history(&id).await.unwrap().loops;
    let messages: Vec<_> = history.iter().map(|record| &record.messages).collect();
    assert_eq!(messages, [&first.messages, &second.messages]);
    let mut shown = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.replay_page(&id, cursor).await.unwrap();
        shown.extend(page.events);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let expected = first.events.iter().chain(&second.events);
    let expected: Vec<_> = expected
        .filter(|event| !event.kind.is_transient())
        .collect();
    assert_eq!(shown.iter().collect::<Vec<_>>(), expected);
    assert_eq!(store.check(None).await, Ok(Vec::new()));
}

/// Events journalled by a killed process keep their texts.
#[tokio::test]
async fn journalled_long_texts_are_recovered() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let id = "s1".into();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    let (file, printed) = (long_text('f', 300_000), long_text('p', 90_000));
    let record = record_with_texts(1, &file, &printed, "Done.");
    store.append(&lane, &record.loop_id, record.events[..6].to_vec());
    let now = record.events[6..8].to_vec();
    store.append_now(&lane, &record.loop_id, now).await.unwrap();
    assert_eq!(stored_texts(&path), json_len(&file) + json_len(&printed));
    store.claim(&id, &owner("a")).await.unwrap();
    let loops = store.loops(&id, 0).await.unwrap();
    assert_eq!(loops[0].messages[..3], record.messages[..3]);
    assert_eq!(loops[0].events[..8], record.events[..8]);
    // The commit reused the texts stored by the journal.
    assert_eq!(stored_texts(&path), json_len(&file) + json_len(&printed));
}

/// Returns the total size of all stored pieces. Unit: bytes.
fn stored_texts(path: &Path) -> usize {
    let db = Connection::open(path).unwrap();
    let sql = "SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM texts";
    let sum: u64 = db.query_row(sql, (), |row| row.get(0)).unwrap();
    usize::try_from(sum).unwrap()
}

/// SQLite copies a value when it is bound and a row when it is built, so both must stay small.
#[tokio::test]
async fn long_text_is_stored_once_in_small_rows() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let texts = [
        long_text('f', 1_500_000),
        long_text('p', 1_000_000),
        long_text('a', 2_000_000),
    ];
    let record = Arc::new(record_with_texts(1, &texts[0], &texts[1], &texts[2]));
    store.append(&lane, &record.loop_id, record.events[..8].to_vec());
    store.renew(&lane).await.unwrap();
    store.commit(commit_of(&lane, 0, &record)).await.unwrap();
    let again = Arc::new(record_with_texts(2, &texts[0], &texts[1], &texts[2]));
    store.commit(commit_of(&lane, 1, &again)).await.unwrap();
    drop(store);
    let all: usize = texts.iter().map(|text| json_len(text)).sum();
    assert_eq!(stored_texts(&path), all);
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT max(length(CAST(body AS BLOB))) FROM texts UNION ALL \
               SELECT max(length(record) + length(messages) + length(log)) FROM loops";
    let mut select = db.prepare(sql).unwrap();
    let sizes = select.query_map((), |row| row.get::<_, u64>(0)).unwrap();
    for size in sizes {
        assert!(size.unwrap() <= 256 << 10);
    }
    // Read with plain SQL.
    let sql = "SELECT reference, text FROM long_texts";
    let mut select = db.prepare(sql).unwrap();
    let named = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
    let named: HashMap<String, String> = named.unwrap().map(Result::unwrap).collect();
    assert_eq!(named.len(), 3);
    let sql = "SELECT body ->> '$.content[0].text' FROM messages WHERE loop = 1 AND place = 3";
    let reference: String = db.query_row(sql, (), |row| row.get(0)).unwrap();
    assert_eq!(named[&reference], texts[2]);
}

/// Returns the number of cells of all tables that contain this text.
fn cells_with(path: &Path, text: &str) -> u64 {
    let db = Connection::open(path).unwrap();
    let sql = "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns \
               WHERE tables.type = 'table'";
    let mut select = db.prepare(sql).unwrap();
    let columns = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
    let columns: Vec<(String, String)> = columns.unwrap().map(Result::unwrap).collect();
    let counts = columns.iter().map(|(table, column)| -> u64 {
        let sql = format!("SELECT count(*) FROM \"{table}\" WHERE instr(\"{column}\", ?1) > 0");
        db.query_row(&sql, (text,), |row| row.get(0)).unwrap()
    });
    counts.sum()
}

/// Base64 text of a picture.
fn picture(size: usize) -> String {
    "iVBORw0K".repeat(size / 8)
}

/// A loop with a message that shows the picture.
fn record_with_picture(session: &str, number: u32, picture: &str) -> Arc<LoopRecord> {
    let mut record = record(session, number, "What is it?");
    let image = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: picture.into(),
    });
    let content = vec![Content::text("This:"), image];
    let shown = message(&record.loop_id, "picture", Message::User { content });
    record.messages.push(Arc::clone(&shown));
    let kind = EventKind::MessageEnd { message: shown };
    record
        .events
        .push(event(session, number, 30, Some(0), kind));
    Arc::new(record)
}

/// A picture of any size that ten prompts show is stored once, also after an export and import of the session.
// proves: LASH-42, UP-29, LASH-37
#[tokio::test]
async fn picture_shown_ten_times_is_stored_once() {
    for size in [40, 3_000, 30_000, 150_000] {
        let picture = picture(size);
        let (_folder, path) = crate::temp_database();
        let store = SqliteStore::open(path.clone());
        store.create(new_session("s1")).await.unwrap();
        let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
        let mut records = Vec::new();
        for number in 1..=10_u32 {
            let record = record_with_picture("s1", number, &picture);
            store.append(&lane, &record.loop_id, record.events.clone());
            let commit = commit_of(&lane, u64::from(number) - 1, &record);
            store.commit(commit).await.unwrap();
            records.push(record);
        }
        store.release(&lane).await.unwrap();
        assert_eq!(store.loops(&"s1".into(), 0).await, Ok(records));
        let document = export_session(&store, &"s1".into()).await.unwrap();
        drop(store);
        assert_eq!(stored_texts(&path), picture.len());
        assert_eq!(cells_with(&path, &picture), 1);
        let (_folder, path) = crate::temp_database();
        let other = SqliteStore::open(path.clone());
        import_session(&other, document.clone()).await.unwrap();
        let again = export_session(&other, &"s1".into()).await.unwrap();
        assert_eq!(again.loops, document.loops);
        drop(other);
        assert_eq!(stored_texts(&path), picture.len());
        assert_eq!(cells_with(&path, &picture), 1);
    }
}

/// Two sessions that show the same picture each have their own copy: one is whole without the other.
// proves: UP-29
#[tokio::test]
async fn picture_of_two_sessions_is_stored_for_each() {
    let picture = picture(150_000);
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    let records = ["s1", "s2"].map(|id| record_with_picture(id, 1, &picture));
    for record in &records {
        let id = &record.session_id;
        store.create(new_session(id.as_str())).await.unwrap();
        let lane = store.claim(id, &owner("a")).await.unwrap().lane;
        store.commit(commit_of(&lane, 0, record)).await.unwrap();
        store.release(&lane).await.unwrap();
    }
    for record in &records {
        let loops = store.loops(&record.session_id, 0).await;
        assert_eq!(loops, Ok(vec![Arc::clone(record)]));
    }
    assert_eq!(stored_texts(&path), 2 * picture.len());
    store.delete(&"s1".into()).await.unwrap();
    assert_eq!(stored_texts(&path), picture.len());
    let [_, left] = records;
    assert_eq!(store.loops(&"s2".into(), 0).await, Ok(vec![left]));
    assert_eq!(store.check(None).await, Ok(Vec::new()));
}

/// The format of small rows is unchanged.
#[tokio::test]
async fn small_rows_hold_their_texts() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let record = Arc::new(record_with_texts(
        1,
        "fn main() {}",
        "ok",
        &long_text('a', 9_000),
    ));
    store.commit(commit_of(&lane, 0, &record)).await.unwrap();
    assert_eq!(stored_texts(&path), 0);
    let loops = store.loops(&"s1".into(), 0).await;
    assert_eq!(loops, Ok(vec![record]));
}

/// A damaged text hides only the loops that contain it; a loop that has it only in its events is kept.
#[tokio::test]
async fn damaged_text_is_named_and_repaired() {
    let damages = [
        "DELETE FROM texts WHERE piece = 1",
        "UPDATE texts SET body = replace(body, 'quoted', 'quotes') WHERE piece = 0",
    ];
    for damage in damages {
        let (_folder, path) = crate::temp_database();
        let store = SqliteStore::open(path.clone());
        store.create(new_session("s1")).await.unwrap();
        let id = "s1".into();
        let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
        let file = long_text('f', 600_000);
        let sound = Arc::new(record_with_texts(1, "fn main() {}", "ok", "Done."));
        let broken = Arc::new(record_with_texts(2, &file, "ok", "Done."));
        let mut logged = record_with_texts(3, "fn main() {}", "ok", "Done.");
        for event in &mut logged.events {
            if let EventKind::ToolExecutionEnd { envelope, .. } = &mut event.kind {
                envelope.value = Some(json!(file));
            }
        }
        let logged = Arc::new(logged);
        for (head, record) in (0..).zip([&sound, &broken, &logged]) {
            store.commit(commit_of(&lane, head, record)).await.unwrap();
        }
        store.release(&lane).await.unwrap();
        drop(store);
        let db = Connection::open(&path).unwrap();
        assert_eq!(db.execute(damage, ()).unwrap(), 1);
        drop(db);

        let store = SqliteStore::open(path);
        let told = store.check(Some(&id)).await.unwrap();
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        let expected = [
            "loop s1.cfg.2 cannot be read: text ",
            "loop s1.cfg.3 has events that cannot be read: text ",
        ];
        for expected in expected {
            assert!(
                told.iter().any(|told| told.starts_with(expected)),
                "{told:?}"
            );
        }
        let repair = store.repair(&id).await.unwrap();
        assert_eq!(repair.left, []);
        let loops = store.loops(&id, 0).await.unwrap();
        assert_eq!(loops[0], sound);
        assert_eq!(loops[1].loop_id, logged.loop_id);
        assert_eq!(loops[1].messages, logged.messages);
        assert_eq!(loops.len(), 2);

        // A later loop with the same text is stored completely.
        let opened = store.claim(&id, &owner("a")).await.unwrap();
        let mut later = record_with_texts(9, &file, "ok", "Done.");
        later.parent_loop_id = opened.info.tip_loop_id.clone();
        let later = Arc::new(later);
        let head = opened.info.head_version;
        let stored = store.commit(commit_of(&opened.lane, head, &later)).await;
        stored.unwrap();
        let loops = store.loops(&id, 0).await.unwrap();
        assert_eq!(loops[2], later);
    }
}

// proves: UP-29
#[tokio::test]
async fn deleted_session_leaves_no_long_text() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
    }
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let record = Arc::new(record_with_texts(
        1,
        &long_text('f', 100_000),
        "ok",
        "Done.",
    ));
    store.commit(commit_of(&lane, 0, &record)).await.unwrap();
    assert!(stored_texts(&path) > 0);
    assert_eq!(
        store
            .delete_in_use(&"s1".into())
            .await
            .map(|it| it.is_some()),
        Ok(true)
    );
    assert_eq!(stored_texts(&path), 0);
    // Without its session, a loop is refused with the right error.
    let refused = store.commit(commit_of(&lane, 0, &record)).await;
    assert_eq!(
        refused,
        Err(turnery_store::StoreError::NotFound("s1".into()))
    );
    let db = Connection::open(&path).unwrap();
    let left: Value = db
        .query_row("SELECT count(*) FROM texts", (), |row| row.get(0))
        .unwrap();
    assert_eq!(left, Value::Integer(0));
}

async fn other_session_of_a_reused_id_has_its_texts(world: &World) {
    let long = "How long is it? ".repeat(10_000);
    let first = Arc::new(record("s1", 1, &long));
    for _ in 0..2 {
        world.store.create(new_session("s1")).await.unwrap();
        let lane = world.claim("a").await.unwrap().lane;
        world.commit(&lane, 0, &first).await.unwrap();
        assert_eq!(world.loops().await, Ok(vec![first.clone()]));
        world.store.delete_in_use(&"s1".into()).await.unwrap();
    }
}
