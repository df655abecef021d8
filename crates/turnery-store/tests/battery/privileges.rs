//! Runs the example files of the folder `examples/postgres`, and checks what the roles that they make can do.

use crate::{connect, effects::effect, postgres_url, samples::*};
use std::{fs, path::Path, sync::Arc};
use tokio_postgres::{Client, error::SqlState};
use turnery_engine::{LoopRecord, SessionId};
use turnery_store::{
    Commit, ListQuery, NewSession, Owner, PostgresAddress, PostgresStore, SearchQuery, Store,
    StoreError, TranscriptNote, new_uuid,
};

const PASSWORD: &str = "for-tests-only";

/// Tables whose rows belong to sessions.
const TABLES_OF_SESSIONS: [&str; 9] = [
    "followers",
    "journal",
    "loops",
    "notes",
    "outbox",
    "repairs",
    "search_chunks",
    "search_filters",
    "texts",
];

/// A database of its own on the server of the tests. Roles are those of the whole server, so their names are unique.
struct TestDatabase {
    name: String,
    admin: Client,
}

impl TestDatabase {
    async fn create() -> Self {
        let name = format!("owners_{}", new_uuid().simple());
        let server = connect(&postgres_url("unused")).await;
        let create = format!("CREATE DATABASE {name}");
        server.batch_execute(&create).await.unwrap();
        let admin = connect(&address_in(&name, None, "unused")).await;
        Self { name, admin }
    }

    fn role(&self, name: &str) -> String {
        format!("{name}_{}", self.name)
    }

    async fn run(&self, sql: &str) {
        self.admin.batch_execute(sql).await.unwrap();
    }

    /// Runs an example file as `psql` does with these variables.
    async fn run_example(&self, file: &str, variables: &[(&str, &str)]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = root.join("../../examples/postgres").join(file);
        let mut sql = fs::read_to_string(path).unwrap();
        for (name, value) in [("DBNAME", self.name.as_str())].iter().chain(variables) {
            sql = sql.replace(&format!(":\"{name}\""), &format!("\"{value}\""));
        }
        assert!(!sql.contains(":\""), "{sql}");
        self.run(&sql).await;
    }

    async fn set_password(&self, role: &str) {
        self.run(&format!("ALTER ROLE {role} PASSWORD '{PASSWORD}'"))
            .await;
    }

    /// Creates a role with a schema of its own, as the example file describes. Returns the name of both.
    async fn create_owner(&self, name: &str) -> String {
        let role = self.role(name);
        self.run_example("owners.sql", &[("owner", &role)]).await;
        self.set_password(&role).await;
        role
    }

    fn store(&self, role: &str, schema: &str) -> PostgresStore {
        let address = address_in(&self.name, Some(role), schema);
        PostgresStore::open(PostgresAddress::parse(&address, |_| None).unwrap())
    }

    async fn connect_as(&self, role: &str, schema: &str) -> Client {
        let client = connect(&address_in(&self.name, Some(role), schema)).await;
        let path = format!("SET search_path = \"{schema}\"");
        client.batch_execute(&path).await.unwrap();
        client
    }
}

/// Returns the address of a database on the server of the tests, for its administrator unless a role is named.
fn address_in(database: &str, role: Option<&str>, schema: &str) -> String {
    let url = postgres_url(schema);
    let (place, parameters) = url.split_once('?').unwrap();
    let (server, _) = place.rsplit_once('/').unwrap();
    let (user, host) = server.rsplit_once('@').unwrap();
    let user = match role {
        Some(role) => format!("postgres://{role}:{PASSWORD}"),
        None => user.to_owned(),
    };
    format!("{user}@{host}/{database}?{parameters}")
}

/// Returns an owner in a process that no other test has.
fn process_of(role: &str) -> Owner {
    Owner {
        process: format!("pid=1 {role}"),
        ..owner(role)
    }
}

/// Uses all of a store once, and leaves a row of session `s1` in each table that the store itself fills.
async fn use_store(store: &PostgresStore, role: &str) {
    let id: SessionId = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let child = NewSession {
        at: at(1),
        ..new_session("s2")
    };
    store.create(child).await.unwrap();
    let lane = store.claim(&id, &process_of(role)).await.unwrap().lane;
    let long = format!("{role} needle {}", "filler ".repeat(20_000));
    let first = Arc::new(record("s1", 1, &long));
    let events = first.events[..3].to_vec();
    store
        .append_now(&lane, &first.loop_id, events)
        .await
        .unwrap();
    let mut commit = commit_of(&lane, 0, &first);
    commit.effects = vec![effect("s1", 1), effect("s1", 2)];
    assert_eq!(store.commit(commit).await, Ok(1));
    let second = record("s1", 2, "again");
    let events = second.events[..3].to_vec();
    store
        .append_now(&lane, &second.loop_id, events)
        .await
        .unwrap();
    store.renew(&lane).await.unwrap();
    let notes = vec![TranscriptNote {
        at: at(5),
        message: (*message(&loop_id("s1", 1), "m1", user("/help"))).clone(),
    }];
    store.add_notes(&id, notes.clone()).await.unwrap();
    assert_eq!(store.notes(&id).await, Ok(notes));
    let taken = store.take_effect(&id, &process_of(role)).await.unwrap();
    if let turnery_store::NextEffect::Taken(taken) = taken {
        store.finish_effect(&taken).await.unwrap();
    } else {
        panic!("an effect is waiting: {taken:?}");
    }
    assert_eq!(found(store, "needle").await, ["s1"]);
    assert_eq!(listed(store).await, ["s1", "s2"]);
    assert_eq!(store.loops(&id, 0).await, Ok(vec![first]));
    assert_eq!(store.history(&id).await.unwrap().loops.len(), 1);
    store.replay_page(&id, None).await.unwrap();
    assert_eq!(store.check(None).await, Ok(Vec::new()));
    store.repair(&"s2".into()).await.unwrap();
    assert_eq!(store.describe().await.unwrap().sessions, 2);
    assert_eq!(store.delete(&"s2".into()).await, Ok(true));
}

async fn listed(store: &PostgresStore) -> Vec<String> {
    let page = store.list(ListQuery::default()).await.unwrap();
    let ids = page.sessions.iter().map(|it| it.id.to_string());
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids
}

async fn found(store: &PostgresStore, text: &str) -> Vec<String> {
    let query = SearchQuery {
        text: text.to_owned(),
        ..SearchQuery::default()
    };
    let page = store.search(query).await.unwrap();
    page.hits
        .iter()
        .map(|it| it.session.id.to_string())
        .collect()
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn assert_denied(client: &Client, sql: &str) {
    let denied = client.batch_execute(sql).await.unwrap_err();
    assert_eq!(
        denied.code(),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE),
        "{sql}: {denied}"
    );
}

#[tokio::test]
async fn owner_of_a_schema_uses_that_schema_only() {
    let database = TestDatabase::create().await;
    let ann = database.create_owner("ann").await;
    let bob = database.create_owner("bob").await;
    let own = database.store(&ann, &ann);
    use_store(&own, &ann).await;
    own.vacuum().await.unwrap();
    // The other owner has the same ids, and nothing of the first.
    use_store(&database.store(&bob, &bob), &bob).await;
    let intruder = database.store(&bob, &ann);
    let denied = |error: StoreError| {
        let text = error.to_string();
        assert!(text.contains("permission denied for schema"), "{text}");
        assert!(text.contains("grant this right"), "{text}");
    };
    denied(intruder.list(ListQuery::default()).await.unwrap_err());
    denied(intruder.create(new_session("s9")).await.unwrap_err());
    denied(intruder.info(&"s1".into()).await.unwrap_err());
    denied(intruder.delete(&"s1".into()).await.unwrap_err());
    let claimed = intruder.claim(&"s1".into(), &process_of(&bob)).await;
    denied(claimed.unwrap_err());
    let client = database.connect_as(&bob, &bob).await;
    for sql in [
        format!("SELECT * FROM \"{ann}\".sessions"),
        format!("UPDATE \"{ann}\".sessions SET title = 'x'"),
        format!("DELETE FROM \"{ann}\".loops"),
        format!("CREATE TABLE \"{ann}\".mine ()"),
        "CREATE TABLE public.mine ()".to_owned(),
        "CREATE TEMPORARY TABLE mine ()".to_owned(),
        "CREATE SCHEMA mine".to_owned(),
        format!("CREATE DATABASE {bob}"),
        format!("SET ROLE {ann}"),
    ] {
        assert_denied(&client, &sql).await;
    }
    assert_eq!(listed(&own).await, ["s1"]);
    assert_eq!(own.loops(&"s1".into(), 0).await.unwrap().len(), 1);
    assert_eq!(own.check(None).await, Ok(Vec::new()));
}

/// Commits a long prompt and so many loops that a search adds them to its index in several statements.
async fn store_many_loops(store: &PostgresStore, role: &str) {
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &process_of(role)).await;
    let lane = lane.unwrap().lane;
    let first = Arc::new(record("s1", 1, &"filler ".repeat(2_000)));
    assert_eq!(store.commit(commit_of(&lane, 0, &first)).await, Ok(1));
    let branches = (2..=601).map(|number| {
        Arc::new(LoopRecord {
            parent_loop_id: Some(loop_id("s1", 1)),
            ..record("s1", number, "needle")
        })
    });
    let commit = Commit {
        records: branches.collect(),
        ..commit_of(&lane, 1, &first)
    };
    assert_eq!(store.commit(commit).await, Ok(2));
}

/// Merges the index of the search, and returns the number of pages that were not merged.
async fn merge_index(client: &Client) -> i64 {
    count(
        client,
        "SELECT gin_clean_pending_list('search_chunks_words')",
    )
    .await
}

/// Only the owner of an index may merge it; the search of another role leaves it as it is.
#[tokio::test]
async fn large_search_merges_its_index_if_it_may() {
    let database = TestDatabase::create().await;
    let ann = database.create_owner("ann").await;
    let own = database.store(&ann, &ann);
    store_many_loops(&own, &ann).await;
    assert_eq!(found(&own, "needle").await, ["s1"]);
    let client = database.connect_as(&ann, &ann).await;
    assert_eq!(merge_index(&client).await, 0);

    let database = TestDatabase::create().await;
    let (schema, [ann, _]) = shared_schema(&database).await;
    let shared = database.store(&ann, &schema);
    store_many_loops(&shared, &ann).await;
    assert_eq!(found(&shared, "needle").await, ["s1"]);
    let admin = database.connect_as(&database.role("admin"), &schema).await;
    assert!(merge_index(&admin).await > 0);
}

/// The server of the tests has LZ4.
#[tokio::test]
async fn long_texts_are_compressed_with_lz4() {
    let database = TestDatabase::create().await;
    let ann = database.create_owner("ann").await;
    store_many_loops(&database.store(&ann, &ann), &ann).await;
    let client = database.connect_as(&ann, &ann).await;
    let long = "SELECT count(*) FROM loops WHERE pg_column_compression(messages) = 'lz4'";
    assert_eq!(count(&client, long).await, 1);
}

/// A schema with the tables of an administrator and two owners, as the example file describes.
async fn shared_schema(database: &TestDatabase) -> (String, [String; 2]) {
    let schema = "team".to_owned();
    let [admin, owners] = ["admin", "owners"].map(|name| database.role(name));
    let roles = ["ann", "bob"].map(|name| database.role(name));
    let (name, [ann, bob]) = (&database.name, &roles);
    let create = format!(
        "CREATE ROLE {admin} LOGIN; CREATE ROLE {owners} NOLOGIN; GRANT CONNECT ON DATABASE {name} TO {admin}; \
         CREATE SCHEMA {schema} AUTHORIZATION {admin}; CREATE ROLE {ann} LOGIN IN ROLE {owners}; \
         CREATE ROLE {bob} LOGIN IN ROLE {owners}"
    );
    database.run(&create).await;
    for role in [&admin, ann, bob] {
        database.set_password(role).await;
    }
    let store = database.store(&admin, &schema);
    assert_eq!(store.check(None).await, Ok(Vec::new()));
    // Twice: it is repeated after migrations.
    for _ in 0..2 {
        let variables = [("schema", schema.as_str()), ("owners", owners.as_str())];
        database.run_example("row_security.sql", &variables).await;
    }
    (schema, roles)
}

#[tokio::test]
async fn row_security_shows_each_owner_their_rows_only() {
    let database = TestDatabase::create().await;
    let (schema, [ann, bob]) = shared_schema(&database).await;
    let own = database.store(&ann, &schema);
    use_store(&own, &ann).await;
    let client = database.connect_as(&ann, &schema).await;
    let rest = "INSERT INTO repairs (session_id, at, place, field) VALUES ('s1', now(), 'session', 'roots'); \
                INSERT INTO followers VALUES ('s1', now()) ON CONFLICT DO NOTHING; \
                INSERT INTO search_filters SELECT ARRAY['s1'], array_agg(chunk), decode(repeat('ff', 32), 'hex') \
                FROM search_chunks";
    client.batch_execute(rest).await.unwrap();

    // Every table has rows, and the other owner sees none of them.
    let path = format!("SET search_path = \"{schema}\"");
    database.run(&path).await;
    let other = database.connect_as(&bob, &schema).await;
    let tables = database.admin.query(
        "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
         AND relkind = 'r' AND relname <> 'format' ORDER BY 1",
        &[],
    );
    let tables: Vec<String> = tables.await.unwrap().iter().map(|it| it.get(0)).collect();
    assert_eq!(tables.len(), TABLES_OF_SESSIONS.len() + 2, "{tables:?}");
    for table in &tables {
        let sql = format!("SELECT count(*) FROM {table}");
        assert!(count(&database.admin, &sql).await > 0, "{table}");
        assert!(count(&client, &sql).await > 0, "{table}");
        assert_eq!(count(&other, &sql).await, 0, "{table}");
    }
    let intruder = database.store(&bob, &schema);
    let missing = StoreError::NotFound("s1".into());
    let id = "s1".into();
    assert_eq!(listed(&intruder).await, [""; 0]);
    assert_eq!(found(&intruder, "needle").await, [""; 0]);
    assert_eq!(intruder.info(&id).await, Err(missing.clone()));
    assert_eq!(intruder.loops(&id, 0).await, Err(missing.clone()));
    let claimed = intruder.claim(&id, &process_of(&bob)).await;
    assert_eq!(claimed.unwrap_err(), missing);
    assert_eq!(intruder.delete(&id).await, Ok(false));
    assert_eq!(intruder.check(None).await, Ok(Vec::new()));
    assert_eq!(
        intruder.create(new_session("s1")).await,
        Err(StoreError::Exists("s1".into()))
    );
    // The attempt to claim has registered the process of the other owner, whose row of `hosts` is its own.
    let hosts_of_first =
        format!("UPDATE hosts SET heartbeat_at = now() WHERE process = 'pid=1 {ann}'");
    assert_eq!(client.execute(&hosts_of_first, &[]).await.unwrap(), 1);
    for sql in [
        "UPDATE sessions SET title = 'x'",
        "UPDATE loops SET messages = '[]'",
        hosts_of_first.as_str(),
        "DELETE FROM journal",
        "DELETE FROM search_filters",
        "DELETE FROM sessions",
    ] {
        assert_eq!(other.execute(sql, &[]).await.unwrap(), 0, "{sql}");
    }
    for sql in [
        "INSERT INTO texts VALUES ('s1', 'name', 0, 'x')".to_owned(),
        "INSERT INTO journal (session_id, loop_id, seq, at, checksum, body) VALUES ('s1', 'l', 0, '', 0, '')"
            .to_owned(),
        "INSERT INTO search_filters VALUES (ARRAY['s1'], ARRAY[1], decode(repeat('00', 32), 'hex'))".to_owned(),
        format!("INSERT INTO hosts (machine, process, heartbeat_at, owner) VALUES ('', '', now(), '{ann}')"),
        "UPDATE format SET version = 99".to_owned(),
        "DELETE FROM loops".to_owned(),
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY".to_owned(),
        "DROP TABLE loops".to_owned(),
        "TRUNCATE sessions CASCADE".to_owned(),
        "CREATE TABLE mine ()".to_owned(),
        format!("SET ROLE {ann}"),
    ] {
        assert_denied(&other, &sql).await;
    }
    // A row may not be given to another owner either.
    let mine = NewSession {
        at: at(9),
        ..new_session("s3")
    };
    intruder.create(mine).await.unwrap();
    assert_denied(&other, &format!("UPDATE sessions SET owner = '{ann}'")).await;
    assert_eq!(listed(&intruder).await, ["s3"]);
    assert_eq!(listed(&own).await, ["s1"]);
    assert_eq!(own.loops(&"s1".into(), 0).await.unwrap().len(), 1);
    assert_eq!(own.check(None).await, Ok(Vec::new()));
}

/// A role that sees all chunks would mix those of several owners in one row of filters.
#[tokio::test]
async fn only_owners_add_filters_of_their_phrases() {
    let database = TestDatabase::create().await;
    let (schema, [ann, bob]) = shared_schema(&database).await;
    let own = database.store(&ann, &schema);
    own.create(new_session("s1")).await.unwrap();
    // Now the search has nothing of its own to add.
    assert_eq!(found(&own, "nothing").await, [""; 0]);
    let client = database.connect_as(&ann, &schema).await;
    let chunks = "INSERT INTO search_chunks (session_id, first_loop, last_loop, words) \
                  SELECT 's1', 1, 1, ' one two ' FROM generate_series(1, 256)";
    client.batch_execute(chunks).await.unwrap();
    let filters = format!("SELECT count(*) FROM \"{schema}\".search_filters");
    let nobody: &[&str] = &[];
    for (role, ids, expected) in [
        (database.role("admin"), ["s1"].as_slice(), 0),
        (bob, nobody, 0),
        (ann, ["s1"].as_slice(), 1),
    ] {
        let store = database.store(&role, &schema);
        assert_eq!(found(&store, "\"one two\"").await, ids, "{role}");
        assert_eq!(count(&database.admin, &filters).await, expected, "{role}");
    }
}

/// With the rights to use tables, those of an older version are refused, not changed.
#[tokio::test]
async fn role_without_the_right_to_migrate_is_told() {
    let database = TestDatabase::create().await;
    let (schema, [ann, _]) = shared_schema(&database).await;
    database
        .run(&format!("UPDATE \"{schema}\".format SET version = 1"))
        .await;
    let refused = database.store(&ann, &schema).check(None).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("must be owner of table sessions"), "{text}");
    assert!(!text.contains(PASSWORD), "{text}");
    // Nor can the role create tables elsewhere.
    let refused = database.store(&ann, "elsewhere").check(None).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("permission denied for database"), "{text}");
}
