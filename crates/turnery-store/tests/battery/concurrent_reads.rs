//! Reads a session while another connection stores loops in it and deletes it.

use crate::samples::*;
use std::{sync::Arc, thread};
use turnery_engine::LoopRecord;
use turnery_store::{History, SqliteStore, Store, StoreError};

/// Number of loops that are stored while another connection reads.
const COMMITS: u32 = 200;

/// Checks that what was read is the state after some commit. Returns the number of loops.
fn check_version(records: &[Arc<LoopRecord>], read: &[Arc<LoopRecord>]) -> usize {
    let ids = |records: &[Arc<LoopRecord>]| -> Vec<String> {
        records.iter().map(|it| it.loop_id.to_string()).collect()
    };
    assert_eq!(ids(read), ids(&records[..read.len()]));
    read.len()
}

// proves: S3
#[tokio::test]
async fn readers_see_whole_versions() {
    let (_folder, path) = crate::temp_database();
    let store = SqliteStore::open(path.clone());
    store.create(new_session("s1")).await.unwrap();
    let records: Vec<Arc<LoopRecord>> = (1..=COMMITS)
        .map(|number| Arc::new(record("s1", number, "hello")))
        .collect();
    let written = records.clone();
    let writer = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
            for (head, record) in (0..).zip(&written) {
                store.commit(commit_of(&lane, head, record)).await.unwrap();
            }
            store.release(&lane).await.unwrap();
            store.delete(&"s1".into()).await.unwrap();
        });
    });
    let reader = SqliteStore::open(path);
    let mut versions = 0;
    loop {
        let last = writer.is_finished();
        match reader.history(&"s1".into()).await {
            Ok(History { loops, damage }) => {
                assert_eq!(damage, Vec::new());
                versions += usize::from(check_version(&records, &loops) > 0);
            }
            Err(error) => assert!(matches!(error, StoreError::NotFound(_)), "{error:?}"),
        }
        match reader.loops(&"s1".into(), 0).await {
            Ok(loops) => versions += usize::from(check_version(&records, &loops) > 0),
            Err(error) => assert!(matches!(error, StoreError::NotFound(_)), "{error:?}"),
        }
        if last {
            break;
        }
    }
    writer.join().unwrap();
    assert!(versions > 10, "only {versions} reads met the writer");
}
