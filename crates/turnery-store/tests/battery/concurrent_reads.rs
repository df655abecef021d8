//! Reads a session while another connection stores loops in it and deletes it.

use crate::samples::*;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tokio::runtime::Runtime;
use turnery_engine::LoopRecord;
use turnery_store::{History, SqliteStore, Store, StoreError};

/// Number of loops that are stored while other connections read, and of those.
const COMMITS: u32 = 300;
const READERS: usize = 3;

/// Reads until the writer has ended, and checks that each answer is the state after some commit. Returns the number of
/// answers with loops.
async fn read_versions(path: PathBuf, records: &[Arc<LoopRecord>], is_over: &AtomicBool) -> usize {
    let store = SqliteStore::open(path);
    let mut versions = 0;
    loop {
        let last = is_over.load(Ordering::SeqCst);
        let answers = [
            store.history(&"s1".into()).await,
            store.loops(&"s1".into(), 0).await.map(|loops| History {
                loops,
                ..History::default()
            }),
        ];
        for answer in answers {
            match answer {
                Ok(History { loops, damage, .. }) => {
                    assert_eq!(damage, Vec::new());
                    let ids = loops.iter().map(|it| &it.loop_id);
                    assert!(ids.eq(records.iter().take(loops.len()).map(|it| &it.loop_id)));
                    versions += usize::from(!loops.is_empty());
                }
                Err(error) => assert!(matches!(error, StoreError::NotFound(_)), "{error:?}"),
            }
        }
        if last {
            return versions;
        }
    }
}

// proves: S3
#[test]
fn readers_see_whole_versions() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    let runtime = Runtime::new().unwrap();
    runtime.block_on(store.create(new_session("s1"))).unwrap();
    let records: Vec<Arc<LoopRecord>> = (1..=COMMITS)
        .map(|number| Arc::new(record("s1", number, "hello")))
        .collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let work = read_versions(path.clone(), &records, &is_over);
                threads.spawn(|| Runtime::new().unwrap().block_on(work))
            })
            .collect();
        runtime.block_on(async {
            let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
            for (head, record) in (0..).zip(&records) {
                store.commit(commit_of(&lane, head, record)).await.unwrap();
            }
            store.release(&lane).await.unwrap();
            store.delete(&"s1".into()).await.unwrap();
        });
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            let versions = reader.join().unwrap();
            assert!(versions > 0, "no read met the writer");
        }
    });
}
