//! Checks that a deleted session is readable in no file, and that its space is freed.

use crate::{effects, samples::*};
use std::{fs, path::Path, sync::Arc};
use turnery_store::{SessionPatch, SqliteStore, Store, TranscriptNote};

/// Text that occurs nowhere else.
const MARKER: &str = "the-password-is-swordfish";

/// Stores a session with the marker in its title, settings, notes, journal and loops, short and long.
async fn store_session_with_marker(store: &SqliteStore, id: &str) {
    store.create(new_session(id)).await.unwrap();
    let patch = SessionPatch {
        title: Some(Some(MARKER.to_owned())),
        ..SessionPatch::default()
    };
    store.patch(&id.into(), patch).await.unwrap();
    let remark = TranscriptNote {
        at: at(0),
        message: (*message(&loop_id(id, 1), "command", user(MARKER))).clone(),
    };
    store.add_notes(&id.into(), vec![remark]).await.unwrap();
    let lane = store.claim(&id.into(), &owner("a")).await.unwrap().lane;
    let long = |number: u32| format!("{MARKER} {number} ").repeat(5000);
    for number in 1..=6 {
        let record = with_calls(record(id, number, MARKER), 2, &long(number));
        store.append(&lane, &record.loop_id, record.events.clone());
        // The journal is written before the commit removes it.
        store.renew(&lane).await.unwrap();
        let head = u64::from(number) - 1;
        let mut commit = commit_of(&lane, head, &Arc::new(record));
        let mut effect = effects::effect(id, number);
        effect.effect = serde_json::json!(MARKER);
        commit.effects.push(effect);
        store.commit(commit).await.unwrap();
    }
    let left = record(id, 7, &long(7));
    store.append(&lane, &left.loop_id, left.events[..6].to_vec());
    store.release(&lane).await.unwrap();
}

fn files_with_marker(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let found = files.filter(|file| {
        let bytes = fs::read(file.path()).unwrap();
        let mut windows = bytes.windows(MARKER.len());
        windows.any(|window| window == MARKER.as_bytes())
    });
    let names = found.map(|file| file.file_name().into_string().unwrap());
    names.collect()
}

#[tokio::test]
async fn deleted_session_leaves_no_text_and_no_space() {
    let (folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("stays")).await.unwrap();
    store_session_with_marker(&store, "s1").await;
    drop(store);
    let before = fs::metadata(&path).unwrap().len();
    assert_eq!(files_with_marker(folder.path()), ["sessions.db"]);
    // Like `turnery sessions delete` while another process has the database open.
    let other = SqliteStore::open(path.clone());
    other.info(&"stays".into()).await.unwrap();
    let store = SqliteStore::open(path.clone());
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    drop(store);
    assert_eq!(files_with_marker(folder.path()), [""; 0]);
    let after = fs::metadata(&path).unwrap().len();
    assert!(after * 4 < before, "{before} bytes became {after}");
    other.info(&"stays".into()).await.unwrap();
}
