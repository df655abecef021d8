//! Kills the server in the middle of a busy run and starts it again: everything that was answered is there, and the
//! stores connect again by themselves.

use crate::{is_late, samples::*};
use std::{
    collections::HashSet,
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;
use turnery_engine::{LoopRecord, LoopStatus};
use turnery_store::{LoopBeginning, PostgresAddress, PostgresStore, Store, StoreError};

const KILLS: usize = 3;
const WRITERS: usize = 4;

/// Answers between two kills, of all writers together.
const ANSWERS: usize = 60;

/// Loops of a session that are committed; one more is left open.
const LOOPS: usize = 3;

/// A server of the test's own.
struct ScratchServer {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    address: PostgresAddress,
}

impl Drop for ScratchServer {
    fn drop(&mut self) {
        // It removes its folder when its input ends.
        drop(self.orders.take());
        let _ = self.process.wait();
    }
}

impl ScratchServer {
    fn start() -> Self {
        let program = env::var_os("POSTGRES_TEST_PROGRAM").expect("run by `cargo xtask postgres`");
        let mut process = Command::new(program)
            .args(["postgres", "--control"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut address = String::new();
        answers.read_line(&mut address).unwrap();
        Self {
            orders: process.stdin.take(),
            answers,
            address: PostgresAddress::parse(address.trim(), |_| None).unwrap(),
            process,
        }
    }

    fn order(&mut self, order: &str, confirmation: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), confirmation);
    }

    fn store(&self) -> PostgresStore {
        PostgresStore::open(self.address.clone())
    }
}

/// What was answered: operation, session and number of a loop.
type Answer = (&'static str, String, usize);

#[derive(Default)]
struct Answers {
    all: Mutex<HashSet<Answer>>,
    added: Notify,
    is_over: AtomicBool,
}

impl Answers {
    fn add(&self, operation: &'static str, session: &str, number: usize) {
        let answer = (operation, session.to_owned(), number);
        assert!(self.all.lock().unwrap().insert(answer));
        self.added.notify_one();
    }

    fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }

    async fn wait_for(&self, more: usize) {
        let enough = self.count() + more;
        while self.count() < enough {
            self.added.notified().await;
        }
    }

    fn has(&self, operation: &'static str, session: &str, number: usize) -> bool {
        let answer = (operation, session.to_owned(), number);
        self.all.lock().unwrap().contains(&answer)
    }
}

fn loop_of(session: &str, number: usize) -> Arc<LoopRecord> {
    Arc::new(record(session, u32::try_from(number).unwrap(), "Well?"))
}

fn head_before(number: usize) -> u64 {
    u64::try_from(number).unwrap() - 1
}

/// Runs sessions one after another. One in which the server was away for too long is left as it is.
async fn write(store: Arc<PostgresStore>, writer: usize, answers: Arc<Answers>) {
    for session in 0.. {
        if answers.is_over.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("w{writer}-s{session}");
        if let Err(error) = write_session(&store, &name, &answers).await {
            assert!(is_outage(&error), "{error}");
        }
    }
}

fn is_outage(error: &StoreError) -> bool {
    let text = error.to_string();
    is_late(error) || text.contains("cannot be reached") || text.starts_with("the connection to")
}

async fn write_session(
    store: &PostgresStore,
    name: &str,
    answers: &Answers,
) -> Result<(), StoreError> {
    let (id, owner) = (name.into(), owner("a"));
    store.create(new_session(name)).await?;
    answers.add("create", name, 0);
    for number in 1..=LOOPS + 1 {
        let record = loop_of(name, number);
        let beginning = LoopBeginning {
            expected_head: head_before(number),
            loop_id: record.loop_id.clone(),
            events: record.events[..4].to_vec(),
        };
        let begun = store
            .claim_and_journal(&id, &owner, beginning.into())
            .await?;
        assert!(begun.is_journalled);
        answers.add("begin", name, number);
        let lane = begun.claimed_lane.lane;
        let rest = record.events[4..8].to_vec();
        store.append_now(&lane, &record.loop_id, rest).await?;
        answers.add("append", name, number);
        if number > LOOPS {
            break;
        }
        let commit = commit_of(&lane, head_before(number), &record);
        assert_eq!(store.commit(commit).await?, head_before(number) + 1);
        answers.add("commit", name, number);
    }
    Ok(())
}

/// Checks a session whose creation was answered: what was answered is there, at most one operation more, nothing twice.
async fn check_session(store: &PostgresStore, name: &str, answers: &Answers) {
    let id = name.into();
    let opened = store.claim(&id, &owner("a")).await.unwrap();
    let loops = store.loops(&id, 0).await.unwrap();
    assert_eq!(
        loops.len(),
        usize::try_from(opened.info.head_version).unwrap()
    );
    for number in 1..=LOOPS + 1 {
        let has = |operation| answers.has(operation, name, number);
        let expected = loop_of(name, number);
        let Some(found) = loops.get(number - 1) else {
            assert!(
                !has("begin") && !has("append") && !has("commit"),
                "{name} {number} is lost"
            );
            continue;
        };
        assert_eq!(found.loop_id, expected.loop_id);
        if *found == expected {
            assert!(has("append"), "{name} {number} was never committed");
            continue;
        }
        assert!(!has("commit"), "the commit of {name} {number} is lost");
        assert_eq!((found.status, loops.len()), (LoopStatus::Aborted, number));
        let kept = match has("append") {
            true => 8,
            false => 4,
        };
        assert_eq!(
            found.events[..kept],
            expected.events[..kept],
            "{name} {number}"
        );
    }
    let next = commit_of(
        &opened.lane,
        opened.info.head_version,
        &loop_of(name, loops.len() + 1),
    );
    assert_eq!(store.commit(next).await, Ok(opened.info.head_version + 1));
}

#[tokio::test]
async fn killed_server_has_everything_that_was_answered() {
    let mut server = ScratchServer::start();
    let answers = Arc::new(Answers::default());
    let stores = [(); 2].map(|()| Arc::new(server.store()));
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(&stores[writer % stores.len()]);
        tokio::spawn(write(store, writer, Arc::clone(&answers)))
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..KILLS {
        answers.wait_for(ANSWERS).await;
        server.order("kill", "killed");
        let refused = server.store().info(&"s1".into()).await;
        let Err(StoreError::Broken(text)) = refused else {
            panic!("{refused:?}");
        };
        assert!(text.contains("cannot be reached"), "{text}");
        assert!(text.contains("check that the server runs"), "{text}");
        server.order("start", "started");
    }
    // Both stores have connected again.
    answers.wait_for(ANSWERS).await;
    answers.is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let store = server.store();
    let all = answers.all.lock().unwrap().clone();
    let sessions = all.iter().filter(|(operation, ..)| *operation == "create");
    for (_, name, _) in sessions {
        check_session(&store, name, &answers).await;
    }
    assert_eq!(store.check(None).await, Ok(Vec::new()));
}
