//! Tests followers and writers in processes of their own: followers are killed and begin again with their last cursor,
//! and connections are cut.

use crate::{
    follow::{FollowedLoops, Random},
    samples::*,
};
use std::{
    env,
    io::{BufRead as _, BufReader, Write as _, stdout},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};
use turnery_engine::SessionId;
use turnery_store::{
    FollowCursor, FollowFrom, FollowUpdate, SessionFollower, SqliteStore, Store, StoreError,
};

/// Environment variables of the other process.
const ROLE: &str = "TURNERY_FOLLOW_TEST_ROLE";
const STORE: &str = "TURNERY_FOLLOW_TEST_STORE";
const CURSOR: &str = "TURNERY_FOLLOW_TEST_CURSOR";

/// Separates the test's own output from that of the test harness.
const MARK: &str = "@@";

/// Session that tells the writer to end.
const STOP: &str = "stop";

/// Opens a store: a file, or a schema of the server that `cargo xtask postgres` has started.
fn open_store(place: &str) -> Arc<dyn Store> {
    #[cfg(feature = "postgres")]
    if let Some(schema) = place.strip_prefix("postgres:") {
        let url = format!("{}&application_name={schema}", crate::postgres_url(schema));
        let address = turnery_store::PostgresAddress::parse(&url, |_| None);
        return Arc::new(turnery_store::PostgresStore::open(address.unwrap()));
    }
    Arc::new(SqliteStore::open(Path::new(place).to_owned()))
}

/// Plays the role in its environment; without one, there is nothing to do.
#[tokio::test]
async fn follow_process() {
    let place = env::var(STORE).unwrap_or_default();
    match env::var(ROLE).as_deref() {
        Ok("writer") => write_loops(&*open_store(&place)).await,
        Ok("follower") => print_updates(open_store(&place)).await,
        Ok(role) => panic!("{role:?} is not a role"),
        Err(_) => {}
    }
}

/// Stores loops after journalling them in random parts; some are interrupted, and some written again.
async fn write_loops(store: &dyn Store) {
    let id = SessionId::from("s1");
    let owner = owner("writer");
    let mut random = Random::new(7);
    while store.info(&STOP.into()).await.is_err() {
        let opened = store.claim(&id, &owner).await.unwrap();
        let number = u32::try_from(opened.last_number).unwrap() + 1;
        let record = with_calls(record("s1", number, "Hello"), 2, "line");
        let mut journalled = 0;
        while journalled < record.events.len() - 1 {
            let end = journalled + 1 + random.below(4) as usize;
            let end = end.min(record.events.len() - 1);
            let again = random.below(8) == 0;
            let part = &record.events[if again { 0 } else { journalled }..end];
            let written = store.append_now(&opened.lane, &record.loop_id, part.to_vec());
            written.await.unwrap();
            journalled = end;
            if random.below(3) == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        if random.below(5) > 0 {
            let record = Arc::new(record);
            let commit = commit_of(&opened.lane, opened.info.head_version, &record);
            store.commit(commit).await.unwrap();
        }
    }
    // Turns the last loop into an aborted one, if it was not stored.
    let opened = store.claim(&id, &owner).await.unwrap();
    store.release(&opened.lane).await.unwrap();
    print_line("done");
}

/// Prints each update with its cursor, for ever.
async fn print_updates(store: Arc<dyn Store>) {
    let from = match env::var(CURSOR) {
        Ok(cursor) => FollowFrom::After(cursor.parse().unwrap()),
        Err(_) => FollowFrom::Start,
    };
    let mut follower = SessionFollower::new(store, "s1".into(), from);
    loop {
        match follower.next().await {
            Ok(item) => {
                let update = match item.update {
                    FollowUpdate::Event(event) => {
                        format!("event {}", serde_json::to_string(&event).unwrap())
                    }
                    FollowUpdate::LoopStored {
                        loop_id,
                        version,
                        status,
                        on_chain,
                    } => {
                        let stored = (loop_id, version, status, on_chain);
                        format!("stored {}", serde_json::to_string(&stored).unwrap())
                    }
                    FollowUpdate::Withdrawn { loop_id } => format!("withdrawn {loop_id}"),
                    FollowUpdate::Damaged(damage) => panic!("{damage}"),
                };
                print_line(&format!("{} {update}", item.cursor));
            }
            // The connection was cut.
            Err(StoreError::Broken(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn print_line(text: &str) {
    let mut out = stdout().lock();
    let written = writeln!(out, "{MARK}{text}").and_then(|()| out.flush());
    written.expect("the test reads");
}

fn parse_line(line: &str) -> (FollowCursor, FollowUpdate) {
    let (cursor, update) = line.split_once(' ').unwrap();
    let (kind, body) = update.split_once(' ').unwrap();
    let update = match kind {
        "event" => FollowUpdate::Event(serde_json::from_str(body).unwrap()),
        "stored" => {
            let (loop_id, version, status, on_chain) = serde_json::from_str(body).unwrap();
            FollowUpdate::LoopStored {
                loop_id,
                version,
                status,
                on_chain,
            }
        }
        "withdrawn" => FollowUpdate::Withdrawn {
            loop_id: body.into(),
        },
        _ => panic!("{update}"),
    };
    (cursor.parse().unwrap(), update)
}

/// Another running process, which is killed when dropped.
struct Other {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str, place: &str, cursor: Option<&FollowCursor>) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture", "follow_processes::follow_process"])
            .env(ROLE, role)
            .env(STORE, place)
            .stdout(Stdio::piped());
        if let Some(cursor) = cursor {
            command.env(CURSOR, cursor.to_string());
        }
        let mut process = command.spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdout }
    }

    /// Returns the next whole line meant for the test; `None` once the process has ended.
    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            if let Some((_, ours)) = line.split_once(MARK)
                && let Some(whole) = ours.strip_suffix('\n')
            {
                return Some(whole.to_owned());
            }
            line.clear();
        }
        None
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Follows a writer in another process with followers that are killed again and again. `disturb` is called before each
/// of them is.
async fn killed_followers_see_each_event_once(place: &str, disturb: impl AsyncFn()) {
    let store = open_store(place);
    store.create(new_session("s1")).await.unwrap();
    let mut writer = Other::start("writer", place, None);
    let mut random = Random::new(3);
    let mut seen = FollowedLoops::default();
    let mut cursor: Option<FollowCursor> = None;
    let mut take = |line: String, cursor: &mut Option<FollowCursor>| {
        let (place, update) = parse_line(&line);
        seen.apply(update);
        *cursor = Some(place);
    };
    for _ in 0..8 {
        let mut follower = Other::start("follower", place, cursor.as_ref());
        for _ in 0..10 + random.below(25) {
            let line = follower.read_line().unwrap();
            take(line, &mut cursor);
        }
        disturb().await;
        for _ in 0..random.below(10) {
            let line = follower.read_line().unwrap();
            take(line, &mut cursor);
        }
        follower.process.kill().unwrap();
        while let Some(line) = follower.read_line() {
            take(line, &mut cursor);
        }
    }
    store.create(new_session(STOP)).await.unwrap();
    assert_eq!(writer.read_line().as_deref(), Some("done"));
    let loops = store.loops(&"s1".into(), 0).await.unwrap();
    let last = loops.last().unwrap().loop_id.clone();
    let mut follower = Other::start("follower", place, cursor.as_ref());
    let is_last = |line: &str| line.contains(&format!("stored [\"{last}\""));
    loop {
        let line = follower.read_line().unwrap();
        let is_over = is_last(&line);
        take(line, &mut cursor);
        if is_over {
            break;
        }
    }
    seen.assert_equal(&*store, &"s1".into()).await;
}

#[tokio::test]
async fn killed_followers_of_sqlite_see_each_event_once() {
    let (_folder, path) = crate::temp_database();
    let place = path.display().to_string();
    killed_followers_see_each_event_once(&place, async || {}).await;
}

/// All connections of writer and followers are cut before a follower is killed.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn cut_followers_of_postgres_see_each_event_once() {
    let schema = turnery_store::new_uuid().to_string();
    let cut = async || {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{schema}'"
        );
        run_on_server(&sql).await;
    };
    killed_followers_see_each_event_once(&format!("postgres:{schema}"), cut).await;
}

/// Runs a statement on a connection of its own.
#[cfg(feature = "postgres")]
async fn run_on_server(sql: &str) {
    let url = env::var("POSTGRES_TEST_URL").unwrap();
    let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    connection.abort();
}
