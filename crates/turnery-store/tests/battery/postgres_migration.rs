//! Opens tables of earlier versions in PostgreSQL, created with the SQL of those versions, and checks the migration.

use crate::{postgres_address, postgres_url, samples::*};
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};
use turnery_engine::LoopStatus;
use turnery_store::{PostgresStore, SearchQuery, Store, TranscriptNote, new_uuid};

const VERSIONS: [(u32, &str); 2] = [
    (1, include_str!("versions/postgres_1.sql")),
    (2, include_str!("versions/postgres_2.sql")),
];

/// Connects to the server of the tests, and creates a schema.
pub(crate) async fn client_in_new_schema(schema: &str) -> Client {
    let url = postgres_url(schema);
    let (plain, _) = url.split_once('?').unwrap();
    let (client, connection) = tokio_postgres::connect(plain, NoTls).await.unwrap();
    tokio::spawn(connection);
    let create = format!("CREATE SCHEMA \"{schema}\"; SET search_path = \"{schema}\"");
    client.batch_execute(&create).await.unwrap();
    client
}

/// Returns the columns and indexes of a schema.
async fn schema_of(client: &Client, schema: &str) -> Vec<String> {
    let sql = "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || \
                   coalesce(column_default, '') || ' ' || coalesce(collation_name, '') \
               FROM information_schema.columns WHERE table_schema = $1 \
               UNION ALL SELECT replace(indexdef, $1, '') FROM pg_indexes WHERE schemaname = $1 \
               UNION ALL SELECT conrelid::regclass::text || ' ' || replace(pg_get_constraintdef(oid), $1, '') \
               FROM pg_constraint WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) ORDER BY 1";
    let rows = client.query(sql, &[&schema]).await.unwrap();
    let lines = rows.iter().map(|row| {
        // Names are qualified where the schema is not the one of the connection.
        let line: String = row.get(0);
        line.replace(&format!("\"{schema}\"."), "")
            .replace("\"\".", "")
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn older_tables_are_migrated() {
    for (version, sql) in VERSIONS {
        let schema = new_uuid().to_string();
        let client = client_in_new_schema(&schema).await;
        client.batch_execute(sql).await.unwrap();
        // Several processes open it at once; each finds all.
        let stores = [1, 2, 3].map(|_| PostgresStore::open(postgres_address(&schema)));
        let opened = stores.iter().map(|store| store.check(None));
        for damage in futures_util::future::join_all(opened).await {
            assert_eq!(damage, Ok(Vec::new()), "{version}");
        }
        let [store, ..] = stores;
        let id = "s1".into();
        let info = store.info(&id).await.unwrap();
        assert_eq!(info.title.as_deref(), Some("Old"), "{version}");
        let kept = vec![TranscriptNote {
            at: at(5),
            message: (*message(&loop_id("s1", 1), "m1", user("/help"))).clone(),
        }];
        assert_eq!(store.notes(&id).await, Ok(kept), "{version}");
        let stored = [
            Arc::new(record("s1", 1, "How is it?")),
            Arc::new(with_calls(record("s1", 2, "Why?"), 1, "out")),
        ];
        assert_eq!(store.loops(&id, 0).await.unwrap(), stored, "{version}");
        // What was stored before there was an index is found.
        for text in ["old", "\"how is it\"", "why"] {
            let query = SearchQuery {
                text: text.to_owned(),
                ..SearchQuery::default()
            };
            let page = store.search(query).await.unwrap();
            assert_eq!(page.hits.len(), 1, "{version}: {text}");
        }
        let opened = store.claim(&id, &owner("b")).await.unwrap();
        assert_eq!(opened.last_number, 3, "{version}");
        let loops = store.loops(&id, 0).await.unwrap();
        assert_eq!(loops[2].status, LoopStatus::Aborted, "{version}");
        // Same tables as in a new schema.
        let fresh = new_uuid().to_string();
        let new = PostgresStore::open(postgres_address(&fresh));
        new.check(None).await.unwrap();
        let tables = schema_of(&client, &schema).await;
        assert!(tables.len() > 50, "{tables:?}");
        assert_eq!(tables, schema_of(&client, &fresh).await, "{version}");
    }
}
