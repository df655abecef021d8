//! Measures a commit on PostgreSQL beside plain statements that write the same rows.

use crate::{
    Outcome, ROUNDS, postgres_address, record_of_turn,
    rounds::{RoundTimes, print_ratio},
    samples::{commit_of, new_session, owner},
};
use std::time::Instant;
use tokio_postgres::{NoTls, Row, types::ToSql};
use turnery_store::{PostgresStore, Store};

const UPDATE: &str = "UPDATE sessions SET head_version = head_version + 1, loop_count = loop_count + 1, \
     last_number = $2, updated_at = $3, tip_loop_id = $4 WHERE session_id = $1";

const INSERT: &str = "INSERT INTO loops (session_id, version, loop_id, parent_loop_id, continuation_kind, status, \
     on_chain, started_at, ended_at, checksum, log_checksum, record, messages, log) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

const SELECT: &str = "SELECT session_id, version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, checksum, log_checksum, record, messages, log FROM loops ORDER BY loop";

/// A stored loop: its texts come from the store, so that both sides write the same bytes.
struct LoopValues(Row);

impl LoopValues {
    fn text(&self, column: usize) -> Option<&str> {
        self.0.get(column)
    }

    fn integer(&self, column: usize) -> i64 {
        self.0.get(column)
    }
}

pub(crate) async fn measure() -> Outcome {
    let store = PostgresStore::open(postgres_address("commit", "")?);
    let twin = PostgresStore::open(postgres_address("plain", "")?);
    let id = "s1".into();
    store.create(new_session("s1")).await?;
    twin.create(new_session("s1")).await?;
    let lane = store.claim(&id, &owner("a")).await?.lane;
    let rounds = ROUNDS * 4;
    let records: Vec<_> = (1..=rounds).map(|it| record_of_turn("s1", it)).collect();
    // The rows as the store writes them.
    for (head, record) in (0..).zip(&records) {
        store.commit(commit_of(&lane, head, record)).await?;
    }
    let url = std::env::var("POSTGRES_TEST_URL")?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("SET search_path = commit").await?;
    let rows = client.query(SELECT, &[]).await?;
    let rows: Vec<LoopValues> = rows.into_iter().map(LoopValues).collect();
    store.delete_in_use(&id).await?;
    store.create(new_session("s1")).await?;
    let lane = store.claim(&id, &owner("a")).await?.lane;
    client.batch_execute("SET search_path = plain").await?;
    let (update, insert) = (client.prepare(UPDATE).await?, client.prepare(INSERT).await?);
    let mut plain = RoundTimes::new("BEGIN, UPDATE, INSERT, COMMIT, one by one");
    let mut pipelined = RoundTimes::new("the same, sent together");
    let mut commits = RoundTimes::new("commit of 1 turn, 15 events");
    for (head, (record, row)) in (0..).zip(records.iter().zip(&rows)) {
        let number = row.integer(1);
        let (session, ended) = (row.text(0), row.text(8));
        let texts = [2, 3, 4, 5, 7, 11, 12, 13].map(|column| row.text(column));
        let [
            loop_id,
            parent,
            kind,
            status,
            started,
            head_json,
            messages,
            log,
        ] = &texts;
        let (checksum, log_checksum) = (row.integer(9), row.integer(10));
        let updated: [&(dyn ToSql + Sync); 4] = [&session, &number, &ended, loop_id];
        let inserted: [&(dyn ToSql + Sync); 14] = [
            &session,
            &number,
            loop_id,
            parent,
            kind,
            status,
            &true,
            started,
            &ended,
            &checksum,
            &log_checksum,
            head_json,
            messages,
            log,
        ];
        let since = Instant::now();
        if head % 2 == 0 {
            client.batch_execute("BEGIN").await?;
            client.execute(&update, &updated).await?;
            client.execute(&insert, &inserted).await?;
            client.batch_execute("COMMIT").await?;
            plain.add(since);
        } else {
            let (begun, updated, inserted, ended) = tokio::join!(
                client.batch_execute("BEGIN"),
                client.execute(&update, &updated),
                client.execute(&insert, &inserted),
                client.batch_execute("COMMIT")
            );
            begun?;
            updated?;
            inserted?;
            ended?;
            pipelined.add(since);
        }
        let since = Instant::now();
        store.commit(commit_of(&lane, head, record)).await?;
        commits.add(since);
    }
    let (plain, pipelined, commits) = (plain.print(), pipelined.print(), commits.print());
    print_ratio("commit to plain statements", commits, plain);
    print_ratio(
        "commit to plain statements sent together",
        commits,
        pipelined,
    );
    Ok(())
}
