//! Tests journalling the first events of a loop with the claim of its session (S5).

use crate::{World, samples::*};
use rusqlite::Connection;
use std::sync::Arc;
use turnery_engine::{LoopRecord, LoopStatus};
use turnery_store::{ClaimOutcome, LoopBeginning, Owner, SqliteStore, Store, StoreError};

/// First events of a loop, up to the first model call.
fn beginning(head: u64, number: u32) -> Arc<LoopBeginning> {
    Arc::new(LoopBeginning {
        expected_head: head,
        loop_id: loop_id("s1", number),
        events: events("s1", number, "Hello")[..4].to_vec(),
    })
}

async fn claim_with_beginning(
    store: &dyn Store,
    owner: &Owner,
    head: u64,
    number: u32,
) -> ClaimOutcome {
    let claimed = store.claim_and_journal(&"s1".into(), owner, beginning(head, number));
    claimed.await.unwrap()
}

/// Returns the session's loops after another claim by the same owner.
async fn recovered_loops(store: &dyn Store, owner: &Owner) -> Vec<Arc<LoopRecord>> {
    store.claim(&"s1".into(), owner).await.unwrap();
    store.loops(&"s1".into(), 0).await.unwrap()
}

async fn new_world() -> (World, Owner) {
    let world = World::sqlite();
    world.store.create(new_session("s1")).await.unwrap();
    (world, owner("a"))
}

/// Opens a database with a second connection that counts rows.
async fn database(folder: &tempfile::TempDir) -> (SqliteStore, Connection) {
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    (store, Connection::open(path).unwrap())
}

fn journal_rows(db: &Connection) -> u64 {
    let sql = "SELECT (SELECT count(*) FROM journal) + count(begun_events) FROM sessions";
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The next number follows the stored loop 1, and is greater than that of the lost loop 3.
// proves: LOOP-10, S5
#[tokio::test]
async fn claim_journals_only_the_expected_loop() {
    let (world, a) = new_world().await;
    let store = &*world.store;
    let claimed = claim_with_beginning(store, &a, 0, 2).await;
    assert!(!claimed.is_journalled);
    let first = record("s1", 1, "Hello").into();
    let commit = commit_of(&claimed.claimed_lane.lane, 0, &first);
    store.commit(commit).await.unwrap();
    for (head, number) in [(0, 2), (2, 2), (1, 1), (1, 3)] {
        let claimed = claim_with_beginning(store, &a, head, number).await;
        assert!(!claimed.is_journalled, "{head} {number}");
        assert_eq!(claimed.claimed_lane.last_number, 1);
    }
    // A journal that does not start with its loop leaves no record, but its number is used.
    let lane = store.claim(&"s1".into(), &a).await.unwrap().lane;
    store.append(
        &lane,
        &loop_id("s1", 3),
        events("s1", 3, "Lost")[2..].into(),
    );
    assert!(!claim_with_beginning(store, &a, 1, 2).await.is_journalled);
    assert!(claim_with_beginning(store, &a, 1, 4).await.is_journalled);
    let loops = recovered_loops(store, &a).await;
    let ids: Vec<_> = loops.iter().map(|it| it.loop_id.clone()).collect();
    assert_eq!(ids, [loop_id("s1", 1), loop_id("s1", 4)]);
}

// proves: S5, C-12
#[tokio::test]
async fn claimed_loop_of_dead_holder_is_interrupted() {
    for is_shown_first in [false, true] {
        let (world, a) = new_world().await;
        let (store, id) = (&*world.store, "s1".into());
        let gone = crate::recovery::dead_owner("gone");
        assert!(claim_with_beginning(store, &gone, 0, 1).await.is_journalled);
        if is_shown_first {
            assert_eq!(store.recover(&id).await, Ok(Vec::new()));
            assert_eq!(store.loops(&id, 0).await.unwrap().len(), 1);
        }
        for _ in 0..2 {
            let loops = recovered_loops(store, &a).await;
            let [lost] = &loops[..] else {
                panic!("{loops:?}");
            };
            assert_eq!((lost.status, lost.on_chain), (LoopStatus::Aborted, true));
            assert_eq!(lost.events[..4], events("s1", 1, "Hello")[..4]);
            assert_eq!(lost.messages[0].message.text(), "Hello");
        }
        let info = store.info(&id).await.unwrap();
        assert_eq!(info.tip_loop_id, Some(loop_id("s1", 1)));
    }
}

/// A process of version 5 ignores the beginning, and uses its number for another loop.
// proves: LOOP-10, C-12
#[tokio::test]
async fn stale_beginning_is_not_recovered() {
    for is_used_again in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, db) = database(&folder).await;
        claim_with_beginning(&store, &crate::recovery::dead_owner("gone"), 0, 1).await;
        db.execute_batch("UPDATE sessions SET fence = fence + 1")
            .unwrap();
        if is_used_again {
            let events = serde_json::to_string(&events("s1", 1, "Later")[..4]).unwrap();
            let sql = "INSERT INTO journal (session_id, loop_id, seq, at, body) \
                       VALUES ('s1', 's1.cfg.1', 0, '2026-01-01T00:00:00.000000000Z', ?1)";
            db.execute(sql, [events]).unwrap();
        }
        assert_eq!(store.check(None).await, Ok(Vec::new()));
        let opened = store.claim(&"s1".into(), &owner("a")).await.unwrap();
        assert_eq!(opened.last_number, 1);
        let loops = store.loops(&"s1".into(), 0).await.unwrap();
        let texts = loops.iter().map(|it| it.messages[0].message.text());
        let expected: &[&str] = if is_used_again { &["Later"] } else { &[] };
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        let kept = "SELECT count(*) FROM repairs WHERE before LIKE '%Hello%'";
        let kept: u64 = db.query_row(kept, (), |row| row.get(0)).unwrap();
        assert_eq!(kept, 1);
    }
}

/// The number of a loop that was shown is never reused.
// proves: LOOP-10, C-12
#[tokio::test]
async fn refused_commit_drops_what_the_claim_journalled() {
    let folder = tempfile::tempdir().unwrap();
    let (store, db) = database(&folder).await;
    let claimed = claim_with_beginning(&store, &owner("a"), 0, 1).await;
    let whole = Arc::new(record("s1", 1, "Hello"));
    let commit = commit_of(&claimed.claimed_lane.lane, 5, &whole);
    let refused = StoreError::HeadConflict {
        expected: 5,
        actual: 0,
    };
    assert_eq!(store.commit(commit).await, Err(refused));
    assert_eq!(journal_rows(&db), 0);
    let again = store.claim(&"s1".into(), &owner("a")).await.unwrap();
    assert_eq!(again.last_number, 1);
}

// proves: S5
#[tokio::test]
async fn later_events_follow_those_of_the_claim() {
    let (world, a) = new_world().await;
    let claimed = claim_with_beginning(&*world.store, &a, 0, 1).await;
    let all = events("s1", 1, "Hello");
    let rest = all[4..6].to_vec();
    let lane = &claimed.claimed_lane.lane;
    let written = world.store.append_now(lane, &loop_id("s1", 1), rest);
    written.await.unwrap();
    let loops = recovered_loops(&*world.store, &a).await;
    assert_eq!(loops[0].events[..6], all[..6]);
}

/// Only the holder of the lane can drop the journal.
// proves: C-12
#[tokio::test]
async fn forgotten_beginning_leaves_no_loop() {
    let (world, a) = new_world().await;
    let (store, id) = (&*world.store, "s1".into());
    assert!(claim_with_beginning(store, &a, 0, 1).await.is_journalled);
    store.forget_journal(&id, &a, &loop_id("s1", 1));
    assert_eq!(recovered_loops(store, &a).await, []);
    assert!(claim_with_beginning(store, &a, 0, 1).await.is_journalled);
    store.forget_journal(&id, &owner("b"), &loop_id("s1", 1));
    store.forget_journal(&id, &a, &loop_id("s1", 2));
    assert_eq!(recovered_loops(store, &a).await.len(), 1);
}

// proves: C-12
#[tokio::test]
async fn commit_drops_what_the_claim_journalled() {
    let folder = tempfile::tempdir().unwrap();
    let (store, db) = database(&folder).await;
    // This claim leaves the journal empty, and the store remembers that.
    store.claim(&"s1".into(), &owner("a")).await.unwrap();
    let claimed = claim_with_beginning(&store, &owner("a"), 0, 1).await;
    assert_eq!(journal_rows(&db), 1);
    let whole = Arc::new(record("s1", 1, "Hello"));
    let commit = commit_of(&claimed.claimed_lane.lane, 0, &whole);
    store.commit(commit).await.unwrap();
    assert_eq!(journal_rows(&db), 0);
    assert_eq!(recovered_loops(&store, &owner("a")).await, [whole]);
}

#[tokio::test]
async fn claim_succeeds_when_the_journal_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (store, db) = database(&folder).await;
    db.execute_batch(
        "CREATE TRIGGER full BEFORE UPDATE OF begun_events ON sessions \
         WHEN NEW.begun_events IS NOT NULL BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .unwrap();
    let claimed = claim_with_beginning(&store, &owner("a"), 0, 1).await;
    assert!(!claimed.is_journalled);
    let whole = Arc::new(record("s1", 1, "Hello"));
    let commit = commit_of(&claimed.claimed_lane.lane, 0, &whole);
    assert_eq!(store.commit(commit).await, Ok(1));
}
