//! Damages real database files: nothing panics, readable loops are shown, and damage is reported; a repair
//! restores the session and deletes nothing.

use crate::{effects, samples::*};
use rusqlite::Connection;
use std::{fs, path::Path, sync::Arc};
use turnery_engine::{LlmMessage, LoopId, LoopRecord};
use turnery_store::{
    ArchivedFilter, Damage, ListQuery, LoopBeginning, ReplayPage, SqliteStore, Store, StoreError,
    TranscriptNote, export,
};

const LOOPS: u32 = 6;

/// Two sessions of six loops each, a note in each.
pub(crate) async fn write_loops(path: &Path) -> Vec<Arc<LoopRecord>> {
    let store = SqliteStore::open(path.to_path_buf());
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
        let lane = store.claim(&id.into(), &owner("a")).await.unwrap().lane;
        for number in 1..=LOOPS {
            let record = Arc::new(record(id, number, "How is it?"));
            let mut commit = commit_of(&lane, u64::from(number) - 1, &record);
            if number == 1 {
                commit.effects.push(effects::effect(id, 0));
            }
            store.commit(commit).await.unwrap();
        }
        store.add_notes(&id.into(), vec![note(id)]).await.unwrap();
        store.release(&lane).await.unwrap();
    }
    (1..=LOOPS)
        .map(|number| Arc::new(record("s1", number, "How is it?")))
        .collect()
}

fn note(id: &str) -> TranscriptNote {
    TranscriptNote {
        at: at(1),
        message: LlmMessage::clone(&message(&loop_id(id, 1), "note", user("/help"))),
    }
}

/// One way to damage session `s1`.
struct Case {
    sql: &'static str,
    /// Numbers of the loops that remain in the conversation.
    remaining_loops: &'static [u32],
    /// Damage that must be reported.
    expected_names: &'static [&'static str],
}

impl Case {
    fn expected_ids(&self) -> Vec<LoopId> {
        let loops = self.remaining_loops.iter();
        loops.map(|it| loop_id("s1", *it)).collect()
    }
}

const ALL_LOOPS: &[u32] = &[1, 2, 3, 4, 5, 6];

const CASES: &[Case] = &[
    // Parents.
    Case {
        sql: "UPDATE loops SET parent_loop_id = 's1.cfg.x' WHERE loop_id = 's1.cfg.5'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.5", "s1.cfg.x", "loop s1.cfg.4 is taken for it"],
    },
    Case {
        sql: "UPDATE loops SET parent_loop_id = NULL WHERE loop_id = 's1.cfg.5'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.5", "loop s1.cfg.4 is taken for it"],
    },
    Case {
        sql: "UPDATE loops SET parent_loop_id = 's1.cfg.2' WHERE loop_id = 's1.cfg.5'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.5", "loop s1.cfg.4 is taken for it"],
    },
    Case {
        sql: "UPDATE loops SET parent_loop_id = 'zz.cfg.4' WHERE loop_id = 's1.cfg.5'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.5", "loop s1.cfg.4 is taken for it"],
    },
    // Cycles of parents.
    Case {
        sql: "UPDATE loops SET parent_loop_id = loop_id WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3", "loop s1.cfg.2 is taken for it"],
    },
    Case {
        sql: "UPDATE loops SET parent_loop_id = 's1.cfg.6' WHERE loop_id = 's1.cfg.1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.1", "s1.cfg.6"],
    },
    // The tip.
    Case {
        sql: "UPDATE sessions SET tip_loop_id = 's1.cfg.x' WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["last loop", "s1.cfg.x", "loop s1.cfg.6 is taken for it"],
    },
    Case {
        sql: "UPDATE sessions SET tip_loop_id = NULL WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["last loop", "is missing", "loop s1.cfg.6 is taken for it"],
    },
    Case {
        sql: "UPDATE sessions SET tip_loop_id = 's1.cfg.2' WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["last loop", "loop s1.cfg.6 is taken for it"],
    },
    // Missing loops.
    Case {
        sql: "DELETE FROM loops WHERE loop_id = 's1.cfg.3'",
        remaining_loops: &[1, 2, 4, 5, 6],
        expected_names: &[
            "loop s1.cfg.4",
            "loop s1.cfg.2 is taken for it",
            "version 3",
        ],
    },
    Case {
        sql: "DELETE FROM loops WHERE loop_id = 's1.cfg.6'",
        remaining_loops: &[1, 2, 3, 4, 5],
        expected_names: &["last loop", "loop s1.cfg.5 is taken for it", "version 6"],
    },
    Case {
        sql: "DELETE FROM loops WHERE loop_id = 's1.cfg.1'",
        remaining_loops: &[2, 3, 4, 5, 6],
        expected_names: &["loop s1.cfg.2", "what came before it is lost", "version 1"],
    },
    // Unreadable content.
    Case {
        sql: "UPDATE loops SET record = substr(record, 1, 40) WHERE loop_id = 's1.cfg.3'",
        remaining_loops: &[1, 2, 4, 5, 6],
        expected_names: &["loop s1.cfg.3 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET record = '' WHERE loop_id = 's1.cfg.6'",
        remaining_loops: &[1, 2, 3, 4, 5],
        expected_names: &["loop s1.cfg.6 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET messages = substr(messages, 1, 40) WHERE loop_id = 's1.cfg.1'",
        remaining_loops: &[2, 3, 4, 5, 6],
        expected_names: &["loop s1.cfg.1 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET messages = CAST(x'5bff5d' AS TEXT) WHERE loop_id = 's1.cfg.2'",
        remaining_loops: &[1, 3, 4, 5, 6],
        expected_names: &["loop s1.cfg.2 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET status = 'dreaming' WHERE loop_id = 's1.cfg.4'",
        remaining_loops: &[1, 2, 3, 5, 6],
        expected_names: &["loop s1.cfg.4 cannot be read", "dreaming"],
    },
    Case {
        sql: "UPDATE loops SET continuation_kind = '{' WHERE loop_id = 's1.cfg.4'",
        remaining_loops: &[1, 2, 3, 5, 6],
        expected_names: &["loop s1.cfg.4 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET started_at = 'long ago' WHERE loop_id = 's1.cfg.4'",
        remaining_loops: &[1, 2, 3, 5, 6],
        expected_names: &["loop s1.cfg.4 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET ended_at = 'long ago' WHERE loop_id = 's1.cfg.4'",
        remaining_loops: &[1, 2, 3, 5, 6],
        expected_names: &["loop s1.cfg.4 cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET record = '' WHERE session_id = 's1'",
        remaining_loops: &[],
        expected_names: &[
            "loop s1.cfg.1 cannot be read",
            "loop s1.cfg.6 cannot be read",
        ],
    },
    // Readable content that differs from what was written.
    Case {
        sql: "UPDATE loops SET log = substr(log, 1, 300) WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 has events that cannot be read"],
    },
    Case {
        sql: "UPDATE loops SET log = '[]' WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 differs from what was written"],
    },
    Case {
        sql: "UPDATE loops SET messages = replace(messages, 'well', 'hell') WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 differs from what was written"],
    },
    Case {
        sql: "UPDATE loops SET checksum = checksum + 1 WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 differs from what was written"],
    },
    Case {
        sql: "UPDATE loops SET version = 77 WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 differs from what was written"],
    },
    Case {
        sql: "UPDATE loops SET on_chain = 0 WHERE loop_id = 's1.cfg.3'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["loop s1.cfg.3 is marked wrongly"],
    },
    // The session's own row.
    Case {
        sql: "UPDATE sessions SET head_version = 2 WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["version 2", "version 6"],
    },
    Case {
        sql: "UPDATE sessions SET head_version = 9 WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["version 7, 8, 9"],
    },
    Case {
        sql: "UPDATE sessions SET loop_count = 1 WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["counts 1 loops, and has 6"],
    },
    Case {
        sql: "UPDATE sessions SET roots = '[', always = '{}', created_at = 'x', updated_at = '', \
              spawned_by = NULL, mode = CAST(x'ff' AS TEXT) WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["roots", "always", "created_at", "updated_at", "mode"],
    },
    // Notes.
    Case {
        sql: "UPDATE remarks SET body = '{' WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["note 1 of the transcript cannot be read"],
    },
    // Effects.
    Case {
        sql: "UPDATE outbox SET effect = '{' WHERE session_id = 's1'",
        remaining_loops: ALL_LOOPS,
        expected_names: &["effect 1 cannot be delivered"],
    },
];

async fn replay_all(store: &SqliteStore) -> ReplayPage {
    let mut all = ReplayPage::default();
    let mut cursor = None;
    loop {
        let mut page = store.replay_page(&"s1".into(), cursor).await.unwrap();
        all.events.append(&mut page.events);
        all.loops.append(&mut page.loops);
        all.damage.append(&mut page.damage);
        all.has_all_loops |= page.has_all_loops;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return all;
        }
    }
}

fn ids(loops: &[Arc<LoopRecord>]) -> Vec<LoopId> {
    loops.iter().map(|record| record.loop_id.clone()).collect()
}

fn damage_text(damage: &[Damage]) -> String {
    let lines: Vec<String> = damage.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn run_sql(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    let changed = db.execute(sql, ()).unwrap();
    assert!(changed > 0, "{sql}");
}

#[tokio::test]
async fn damage_is_reported_and_the_rest_is_read() {
    for case in CASES {
        let (_folder, path) = crate::temp_database();
        let sound = write_loops(&path).await;
        run_sql(&path, case.sql);
        let store = SqliteStore::open(path.clone());
        let id = "s1".into();
        let expected = case.expected_ids();

        let damage = store.check(Some(&id)).await.unwrap();
        let text = damage_text(&damage);
        for part in case.expected_names {
            assert!(
                text.contains(part),
                "{}: {part:?} is not in\n{text}",
                case.sql
            );
        }
        let history = store.history(&id).await.unwrap();
        assert_eq!(ids(&history.loops), expected, "{}\n{text}", case.sql);
        let page = replay_all(&store).await;
        assert_eq!(ids(&page.loops), expected, "{}\n{text}", case.sql);
        let loops = store.loops(&id, 0).await.unwrap();
        for wanted in &expected {
            assert!(ids(&loops).contains(wanted), "{}: {wanted}", case.sql);
        }
        // History and replay report the damage that affects the conversation, in the same words as the check.
        for read in [&history.damage, &page.damage] {
            for known in read {
                assert!(damage.contains(known), "{}: {known}", case.sql);
            }
            let is_short = expected.len() < sound.len();
            assert!(!is_short || !read.is_empty(), "{}", case.sql);
        }
        let are_whole = [history.has_all_loops, page.has_all_loops];
        let is_whole = history.damage.is_empty() && expected.len() == sound.len();
        assert_eq!(are_whole, [is_whole; 2], "{}", case.sql);
        let document = export::export_session(&store, &id).await.unwrap();
        assert_eq!(document.loops, loops);
        let copy = document.with_session_id(&"s9".into()).unwrap();
        let copied = export::import_session(&store, copy).await.unwrap();
        let again = store.history(&copied.id).await.unwrap();
        assert_eq!(again.loops.len(), expected.len(), "{}", case.sql);
        let all = ListQuery {
            archived: ArchivedFilter::Include,
            ..ListQuery::default()
        };
        assert_eq!(store.list(all).await.unwrap().sessions.len(), 3);
        assert!(store.notes(&id).await.is_ok());
        assert_eq!(store.check(Some(&"s2".into())).await, Ok(Vec::new()));
        assert_eq!(store.history(&"s2".into()).await.unwrap().loops.len(), 6);
    }
}

#[tokio::test]
async fn repair_fixes_damage_and_keeps_previous_values() {
    for case in CASES {
        let (_folder, path) = crate::temp_database();
        write_loops(&path).await;
        run_sql(&path, case.sql);
        let count = "SELECT count(*) FROM loops WHERE session_id = 's1'";
        let rows = |path: &Path| -> u64 {
            let db = Connection::open(path).unwrap();
            db.query_row(count, (), |row| row.get(0)).unwrap()
        };
        let before = rows(&path);
        let store = SqliteStore::open(path.clone());
        let id = "s1".into();
        let repair = store.repair(&id).await.unwrap();
        assert_eq!(
            repair.left,
            Vec::new(),
            "{}: {:?}",
            case.sql,
            repair.changes
        );
        assert!(!repair.changes.is_empty(), "{}", case.sql);
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{}", case.sql);
        assert_eq!(rows(&path), before, "{}", case.sql);
        let copy = repair.backup.unwrap();
        assert_eq!(rows(&copy), before, "{}", case.sql);

        let history = store.history(&id).await.unwrap();
        let expected = case.expected_ids();
        assert_eq!(ids(&history.loops), expected, "{}", case.sql);
        assert_eq!(history.damage, Vec::new(), "{}", case.sql);
        assert_eq!(
            ids(&replay_all(&store).await.loops),
            expected,
            "{}",
            case.sql
        );

        // The copy keeps sessions that are deleted later, so the user must be able to find it.
        assert_eq!(store.backups().await, Ok(vec![copy.clone()]));

        // The session is usable.
        let opened = store.claim(&id, &owner("b")).await.unwrap();
        let next = Arc::new(LoopRecord {
            parent_loop_id: opened.info.tip_loop_id.clone(),
            ..record("s1", 100, "And now?")
        });
        let head = opened.info.head_version;
        store
            .commit(commit_of(&opened.lane, head, &next))
            .await
            .unwrap();
        let history = store.history(&id).await.unwrap();
        assert_eq!(history.loops.len(), expected.len() + 1, "{}", case.sql);
        assert_eq!(history.damage, Vec::new(), "{}", case.sql);

        let sound = SqliteStore::open(copy);
        let damage = sound.check(Some(&id)).await.unwrap();
        assert!(
            !damage.is_empty(),
            "{}: the copy is the damaged one",
            case.sql
        );
    }
}

#[tokio::test]
async fn rows_without_a_checksum_are_accepted() {
    let (_folder, path) = crate::temp_database();
    let sound = write_loops(&path).await;
    run_sql(&path, "UPDATE loops SET checksum = NULL");
    let store = SqliteStore::open(path.clone());
    assert_eq!(store.check(None).await, Ok(Vec::new()));
    assert_eq!(store.loops(&"s1".into(), 0).await, Ok(sound));
    // Their damage is detected by invalid values.
    run_sql(
        &path,
        "UPDATE loops SET parent_loop_id = 's1.cfg.2' WHERE loop_id = 's1.cfg.5'",
    );
    let history = store.history(&"s1".into()).await.unwrap();
    assert_eq!(history.loops.len(), 6, "{:?}", history.damage);
    let text = damage_text(&store.check(None).await.unwrap());
    assert!(text.contains("loop s1.cfg.4 is taken for it"), "{text}");
}

#[tokio::test]
async fn repair_of_rows_without_a_checksum_is_complete() {
    // Only a checksum reveals a wrong version; each repair records at most 64 lost ones.
    let is_told = |case: &&Case| !case.sql.contains("version = 77");
    for case in CASES.iter().filter(is_told) {
        let (_folder, path) = crate::temp_database();
        write_loops(&path).await;
        run_sql(&path, "UPDATE loops SET checksum = NULL");
        run_sql(&path, case.sql);
        let store = SqliteStore::open(path.clone());
        let id = "s1".into();
        let repair = store.repair(&id).await.unwrap();
        let context = format!("{}: {:?}", case.sql, repair.changes);
        assert_eq!(repair.left, Vec::new(), "{context}");
        assert_eq!(store.check(None).await, Ok(Vec::new()), "{context}");
        let again = store.repair(&id).await.unwrap();
        assert_eq!(again, turnery_store::RepairReport::default(), "{context}");
        // Unlike in other rows, a changed word goes unnoticed here.
        if !repair.changes.is_empty() {
            let history = store.history(&id).await.unwrap();
            let expected = case.expected_ids();
            assert_eq!(ids(&history.loops), expected, "{context}");
        }
    }
}

#[tokio::test]
async fn loop_id_that_is_not_text_does_not_block_claims() {
    let (_folder, path) = crate::temp_database();
    write_loops(&path).await;
    run_sql(
        &path,
        "UPDATE loops SET loop_id = CAST(x'ff' AS TEXT) WHERE loop_id = 's1.cfg.3'",
    );
    for _ in 0..2 {
        let store = SqliteStore::open(path.clone());
        let opened = store.claim(&"s1".into(), &owner("b")).await.unwrap();
        assert_eq!(opened.last_number, 6);
        store.release(&opened.lane).await.unwrap();
        assert_eq!(store.repair(&"s1".into()).await.unwrap().left, Vec::new());
    }
}

#[tokio::test]
async fn loop_with_a_wrong_id_is_replayed_in_its_place() {
    let (_folder, path) = crate::temp_database();
    write_loops(&path).await;
    run_sql(
        &path,
        "UPDATE loops SET loop_id = 'nonsense' WHERE loop_id = 's1.cfg.3'",
    );
    let store = SqliteStore::open(path.clone());
    let history = store.history(&"s1".into()).await.unwrap();
    let remaining_loops = ids(&history.loops);
    assert_eq!(
        (remaining_loops.len(), remaining_loops[2].as_str()),
        (6, "nonsense")
    );
    let text = damage_text(&history.damage);
    assert!(text.contains("loop nonsense differs"), "{text}");
    assert!(text.contains("loop nonsense is taken for it"), "{text}");
}

#[tokio::test]
async fn an_undamaged_session_is_not_repaired() {
    let (folder, path) = crate::temp_database();
    write_loops(&path).await;
    let store = SqliteStore::open(path.clone());
    assert_eq!(store.check(None).await, Ok(Vec::new()));
    let repair = store.repair(&"s1".into()).await.unwrap();
    assert_eq!(repair, turnery_store::RepairReport::default());
    let names = fs::read_dir(folder.path()).unwrap();
    let copies = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("backup")
    });
    assert_eq!(copies.count(), 0);
    let missing = StoreError::NotFound("s7".into());
    assert_eq!(store.check(Some(&"s7".into())).await, Err(missing.clone()));
    assert_eq!(store.repair(&"s7".into()).await, Err(missing));
}

#[tokio::test]
async fn a_session_in_use_is_not_repaired() {
    let (_folder, path) = crate::temp_database();
    write_loops(&path).await;
    run_sql(
        &path,
        "UPDATE loops SET record = '' WHERE loop_id = 's1.cfg.3'",
    );
    let store = SqliteStore::open(path.clone());
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    let busy = store.repair(&"s1".into()).await.unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
    store.release(&lane).await.unwrap();
    assert_eq!(store.repair(&"s1".into()).await.unwrap().left, Vec::new());
}

#[tokio::test]
async fn rows_without_a_session_are_named() {
    let (_folder, path) = crate::temp_database();
    write_loops(&path).await;
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db.execute("DELETE FROM sessions WHERE session_id = 's2'", ())
        .unwrap();
    drop(db);
    let store = SqliteStore::open(path);
    let text = damage_text(&store.check(None).await.unwrap());
    assert!(
        text.contains("rows in loops of a session that is gone: s2 (6)"),
        "{text}"
    );
}

/// A session in which loop 7 has started and was never stored: in a claim, or later.
async fn write_unfinished_loop(path: &Path, in_claim: bool) {
    write_loops(path).await;
    let store = SqliteStore::open(path.to_owned());
    let gone = crate::recovery::dead_owner("gone");
    let half = events("s1", 7, "More")[..4].to_vec();
    if in_claim {
        let beginning = Arc::new(LoopBeginning {
            expected_head: u64::from(LOOPS),
            loop_id: loop_id("s1", 7),
            events: half,
        });
        let claimed = store.claim_and_journal(&"s1".into(), &gone, beginning);
        assert!(claimed.await.unwrap().is_journalled);
    } else {
        let lane = store.claim(&"s1".into(), &gone).await.unwrap().lane;
        store.append(&lane, &loop_id("s1", 7), half);
    }
}

#[tokio::test]
async fn damaged_journal_is_named_and_kept() {
    const ROW: &str = "UPDATE journal SET body = replace(body, 'More', 'Less') WHERE seq = 0";
    const BEGINNING: &str =
        "UPDATE sessions SET begun_events = replace(begun_events, 'More', 'Less')";
    const FENCE: &str = "UPDATE sessions SET begun_fence = begun_fence - 1, \
                         begun_events = replace(begun_events, 'More', 'Less')";
    for (in_claim, damage) in [(false, ROW), (true, BEGINNING), (true, FENCE)] {
        for is_repaired in [false, true] {
            let (_folder, path) = crate::temp_database();
            write_unfinished_loop(&path, in_claim).await;
            run_sql(&path, damage);
            assert_named_and_kept(&path, is_repaired).await;
        }
    }
}

async fn assert_named_and_kept(path: &Path, is_repaired: bool) {
    let store = SqliteStore::open(path.to_owned());
    let text = damage_text(&store.check(None).await.unwrap());
    assert!(
        text.contains("the journal of loop s1.cfg.7 has an event"),
        "{text}"
    );
    if is_repaired {
        let repair = store.repair(&"s1".into()).await.unwrap();
        let told = ["rows of the journal that cannot be read and are set aside: 1"];
        assert_eq!(
            (&repair.changes[..], &repair.left[..]),
            (&told.map(str::to_owned)[..], &[][..])
        );
    }
    for _ in 0..2 {
        let opened = store.claim(&"s1".into(), &owner("b")).await.unwrap();
        // The loop was shown, so its number is not reused (LOOP-10).
        assert_eq!(opened.last_number, 7);
    }
    let db = Connection::open(path).unwrap();
    let kept = "SELECT count(*) FROM repairs WHERE place = 'journal' AND before LIKE '%Less%'";
    let kept: u64 = db.query_row(kept, (), |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}
