//! Changes random bytes of a database file: reading neither panics nor hangs, and either all loops are equal
//! or damage is reported.

use crate::{damage::write_loops, samples::*};
use proptest::prelude::*;
use std::{collections::HashMap, fs, sync::OnceLock};
use turnery_engine::{LoopId, LoopRecord};
use turnery_store::{ArchivedFilter, ListQuery, SqliteStore, Store};

const SESSIONS: [&str; 2] = ["s1", "s2"];

/// Returns a closed database and its loops.
fn undamaged_database() -> &'static (Vec<u8>, HashMap<LoopId, LoopRecord>) {
    static SOUND: OnceLock<(Vec<u8>, HashMap<LoopId, LoopRecord>)> = OnceLock::new();
    SOUND.get_or_init(|| {
        block_on(async {
            let (_folder, path) = crate::temp_database();
            write_loops(&path).await;
            let mut all = HashMap::new();
            let store = SqliteStore::open(path.clone());
            for id in SESSIONS {
                for record in store.loops(&id.into(), 0).await.unwrap() {
                    all.insert(record.loop_id.clone(), LoopRecord::clone(&record));
                }
            }
            drop(store);
            (fs::read(path).unwrap(), all)
        })
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

/// Reads everything in every way. Either an error is returned, or every loop is equal, or damage is reported.
async fn check_readable(bytes: &[u8], sound: &HashMap<LoopId, LoopRecord>) {
    let (_folder, path) = crate::temp_database();
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(path);
    let query = ListQuery {
        archived: ArchivedFilter::Include,
        spawned: true,
        limit: 3,
        ..ListQuery::default()
    };
    let _ = store.list(query).await;
    let whole = store.check(None).await;
    for id in SESSIONS {
        let id = id.into();
        let checked = store.check(Some(&id)).await;
        let is_told = |damage: &Result<Vec<_>, _>| !matches!(damage, Ok(none) if none.is_empty());
        let is_told = is_told(&checked) || is_told(&whole);
        let mut cursor = None;
        // More pages than loops would mean a cycle.
        for _ in 0..20 {
            match store.replay_page(&id, cursor).await {
                Ok(page) => cursor = page.next_cursor,
                Err(_) => cursor = None,
            }
            if cursor.is_none() {
                break;
            }
        }
        assert!(cursor.is_none(), "pages without end");
        let _ = store.notes(&id).await;
        if let Ok(history) = store.history(&id).await {
            let own = |record: &&LoopRecord| record.session_id == id;
            let expected = sound.values().filter(own).count();
            let is_whole = history.loops.len() == expected;
            assert!(
                is_whole || is_told,
                "{} of {expected} loops",
                history.loops.len()
            );
        }
        if let Ok(loops) = store.loops(&id, 0).await {
            for record in loops {
                let is_equal = sound.get(&record.loop_id) == Some(&*record);
                assert!(is_equal || is_told, "loop {} is another", record.loop_id);
            }
        }
    }
    // After a repair without remaining damage, the session is usable.
    if let Ok(repair) = store.repair(&"s1".into()).await
        && repair.left.is_empty()
    {
        let opened = store.claim(&"s1".into(), &owner("b")).await;
        let opened = opened.unwrap_or_else(|error| panic!("{error} after {repair:?}"));
        let next = LoopRecord {
            parent_loop_id: opened.info.tip_loop_id.clone(),
            ..record("s1", 100, "And now?")
        };
        let next = commit_of(&opened.lane, opened.info.head_version, &next.into());
        let committed = store.commit(next).await;
        assert!(committed.is_ok(), "{committed:?} after {repair:?}");
    }
    let _ = store.history(&"s1".into()).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn changed_bytes_are_reported_or_harmless(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..=255), 1..6),
    ) {
        let (bytes, sound) = undamaged_database();
        let mut bytes = bytes.clone();
        for (place, mask) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= mask;
        }
        block_on(check_readable(&bytes, sound));
    }
}
