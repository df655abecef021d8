//! Cost of operations on a server, as the server counts it.

use crate::{connect, postgres_address, postgres_url, samples::*};
use std::sync::Arc;
use turnery_store::{PostgresStore, Store, new_uuid};

const COMMITS: u32 = 100;

/// Rows of `loops` that are read by way of an index, once the server has counted all commits.
const READ: &str = "SELECT sum(i.idx_tup_read)::bigint FROM pg_stat_user_indexes i \
     JOIN pg_stat_user_tables t ON t.relid = i.relid \
     WHERE i.schemaname = $1 AND i.relname = 'loops' AND t.n_tup_ins >= 100";

#[tokio::test]
async fn commit_reads_no_other_loops_of_its_session() {
    let schema = new_uuid().to_string();
    let store = PostgresStore::open(postgres_address(&schema));
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    for number in 1..=COMMITS {
        let record = Arc::new(record("s1", number, "What is in the file?"));
        let commit = commit_of(&lane, u64::from(number) - 1, &record);
        store.commit(commit).await.unwrap();
    }
    // A connection that ends reports what it has done.
    drop(store);
    let client = connect(&postgres_url(&schema)).await;
    let read = loop {
        let row = client.query_one(READ, &[&schema]).await.unwrap();
        if let Some(read) = row.get::<_, Option<i64>>(0) {
            break read;
        }
        client.batch_execute("SELECT pg_sleep(0.01)").await.unwrap();
    };
    assert!(read <= 2 * i64::from(COMMITS), "{read} rows");
}
