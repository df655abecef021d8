//! Tests rows with values that only a newer version knows: they are left out of their session and reported,
//! without affecting other sessions.

use crate::damage::write_loops;
use crate::samples::*;
use rusqlite::{Connection, types::Value};
use std::{path::Path, sync::Arc};
use turnery_store::{ListQuery, SqliteStore, Store};

/// Values that a newer version may write into a loop's row, and the unknown word in each.
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

/// Creates a database with two sessions of one loop each.
async fn create_two_sessions(path: &Path) {
    let store = SqliteStore::open(path.to_path_buf());
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
        let lane = store.claim(&id.into(), &owner("a")).await.unwrap().lane;
        let record = Arc::new(record(id, 1, "How is it?"));
        store.commit(commit_of(&lane, 0, &record)).await.unwrap();
        store.release(&lane).await.unwrap();
    }
}

#[tokio::test]
async fn row_of_a_newer_version_is_named_and_kept() {
    for (change, word) in WORDS {
        let (_folder, path) = crate::temp_database();
        create_two_sessions(&path).await;
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
            // The model needs no events, and all but one are readable.
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
        assert_eq!(store.commit(commit_of(&lane, 1, &more)).await, Ok(2));
        let read = store.loops(&"s2".into(), 0).await;
        assert_eq!(read, Ok(vec![other, more]));
    }
}

/// Checksum of a row according to the format: CRC-32 over the session's id and these columns, each preceded by
/// its type letter and length.
fn checksum(session: &str, columns: &[Value]) -> u32 {
    let session = Value::Text(session.to_owned());
    let mut sum = crc32fast::Hasher::new();
    for value in std::iter::once(&session).chain(columns) {
        let (letter, bytes) = match value {
            Value::Null => (b'n', Vec::new()),
            Value::Integer(number) => (b'i', number.to_le_bytes().to_vec()),
            Value::Real(number) => (b'r', number.to_le_bytes().to_vec()),
            Value::Text(text) => (b't', text.clone().into_bytes()),
            Value::Blob(bytes) => (b'b', bytes.clone()),
        };
        sum.update(&[letter]);
        sum.update(&(bytes.len() as u64).to_le_bytes());
        sum.update(&bytes);
    }
    sum.finalize()
}

const COLUMNS: &str = "version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, record, messages, log, checksum, set_aside";

fn rows(db: &Connection) -> Vec<Vec<Value>> {
    let sql = format!("SELECT {COLUMNS} FROM loops WHERE session_id = 's1' ORDER BY loop");
    let mut select = db.prepare(&sql).unwrap();
    let rows = select.query_map((), |row| (0..13).map(|column| row.get(column)).collect());
    rows.unwrap().map(Result::unwrap).collect()
}

/// An earlier version cannot read the loop, but must not separate its neighbours.
#[tokio::test]
async fn repair_keeps_the_chain_of_a_newer_version() {
    for (change, word) in WORDS {
        for number in [1, 3, 6] {
            let (_folder, path) = crate::temp_database();
            let sound = write_loops(&path).await;
            let db = Connection::open(&path).unwrap();
            let before = rows(&db);
            let place = format!("session_id = 's1' AND loop_id = 's1.cfg.{number}'");
            let sql = format!("UPDATE loops SET {change} WHERE {place}");
            assert_eq!(db.execute(&sql, ()).unwrap(), 1);
            let sum = checksum("s1", &rows(&db)[number - 1][..11]);
            let sql = format!("UPDATE loops SET checksum = {sum} WHERE {place}");
            db.execute(&sql, ()).unwrap();
            let store = SqliteStore::open(path.clone());
            let repair = store.repair(&"s1".into()).await.unwrap();
            let left: Vec<String> = repair.left.iter().map(ToString::to_string).collect();
            let left = left.join("\n");
            assert!(
                left.contains(word) && left.contains("use that one"),
                "{left}"
            );
            drop(store);
            // The newer version reads what it has written.
            for (column, name) in [
                (3, "continuation_kind"),
                (4, "status"),
                (8, "record"),
                (9, "messages"),
                (10, "log"),
                (11, "checksum"),
            ] {
                let sql = format!("UPDATE loops SET {name} = ?1 WHERE {place}");
                db.execute(&sql, [&before[number - 1][column]]).unwrap();
            }
            assert_eq!(
                rows(&db),
                before,
                "{word} in {number}: {:?}",
                repair.changes
            );
            drop(db);
            let store = SqliteStore::open(path);
            assert_eq!(store.check(None).await, Ok(Vec::new()), "{word}");
            assert_eq!(store.loops(&"s1".into(), 0).await, Ok(sound));
        }
    }
}
