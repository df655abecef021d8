//! Tests jobs that hang, time out, or find the database locked, full or gone.

use super::{
    super::{db::Db, execution::MAX_QUICK_BATCH, queue::CAPACITY, transaction::write},
    *,
};
use crate::{Lane, NewSession, Owner, SqliteStore, Store};
use rusqlite::Connection;
use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Instant,
};
use turnery_engine::{Event, EventKind, LoopId, SessionId, TurnTrigger};

fn worker() -> (tempfile::TempDir, Worker) {
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::new(folder.path().join("sessions.db"), "writer");
    (folder, worker)
}

/// Starts a commit that hangs like a write to a dead disk. Returns the commit, a sender that releases it, and the
/// name of the thread that runs it.
fn hanging_commit(worker: &Worker) -> (StoreFuture<'static, ()>, mpsc::SyncSender<()>, String) {
    let (release, released) = mpsc::sync_channel(1);
    let (begin, begun) = mpsc::sync_channel(1);
    let hanging = worker.commit(SettledLoops::new(), move |_| {
        let _ = begin.send(thread_name());
        let _ = released.recv();
        Ok(())
    });
    let place = begun.recv().expect("somebody begins");
    (hanging, release, place)
}

/// Checks that an operation failed with a message that contains `part`.
#[track_caller]
fn assert_broken<T: std::fmt::Debug>(answer: Result<T, StoreError>, part: &str) {
    match answer {
        Err(StoreError::Broken(text)) => assert!(text.contains(part), "{text}"),
        other => panic!("another answer: {other:?}"),
    }
}

/// A transaction without content.
async fn empty_transaction(worker: &Worker) -> Result<(), StoreError> {
    let work = |db: &mut Db| Ok(db.sql.execute_batch("BEGIN IMMEDIATE; COMMIT")?);
    worker.call_flushed(work).await
}

/// A call that blocks its thread would hang this test.
#[tokio::test]
async fn hanging_commit_leaves_the_callers_thread_free() {
    let (_folder, worker) = worker();
    for _ in 0..3 {
        empty_transaction(&worker).await.unwrap();
    }
    let (hanging, release, _) = hanging_commit(&worker);
    let behind = worker.commit(SettledLoops::new(), |_| Ok(7));
    release.send(()).unwrap();
    assert_eq!(hanging.await, Ok(()));
    assert_eq!(behind.await, Ok(7));
}

#[tokio::test]
async fn overdue_jobs_fail_while_the_disk_hangs() {
    let (_folder, worker) = worker();
    let (hanging, release, _) = hanging_commit(&worker);
    let was_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&was_done);
    let queued = worker.call_with_timeout(Duration::ZERO, Flush::Now, move |_| {
        done.store(true, Ordering::Relaxed);
        Ok(())
    });
    assert_broken(queued.await, "did not respond within");
    release.send(()).unwrap();
    assert_eq!(hanging.await, Ok(()));
    empty_transaction(&worker).await.unwrap();
    assert!(!was_done.load(Ordering::Relaxed), "done after its error");
}

#[tokio::test]
async fn job_that_nobody_waits_for_is_done() {
    let (_folder, worker) = worker();
    let (hanging, release, _) = hanging_commit(&worker);
    let was_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&was_done);
    drop(worker.call(move |_| {
        done.store(true, Ordering::Relaxed);
        Ok(())
    }));
    release.send(()).unwrap();
    hanging.await.unwrap();
    empty_transaction(&worker).await.unwrap();
    assert!(was_done.load(Ordering::Relaxed));
}

fn new_session(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        cwd: "/home/ann".into(),
        folder: None,
        roots: Vec::new(),
        model: "offline/echo".into(),
        mode: "ask".into(),
        at: chrono::DateTime::UNIX_EPOCH,
        spawned_by: None,
    }
}

fn turn_start_event(session: &SessionId, loop_id: &LoopId, seq: u64) -> Event {
    Event {
        session_id: session.clone(),
        loop_id: loop_id.clone(),
        seq,
        turn_index: Some(0),
        at: chrono::DateTime::UNIX_EPOCH,
        kind: EventKind::TurnStart {
            trigger: TurnTrigger::User,
        },
    }
}

async fn journalled_seqs(store: &SqliteStore) -> Vec<u64> {
    let read = store.writer.call(|db| {
        let mut read = db.sql.prepare("SELECT seq FROM journal ORDER BY seq")?;
        let seqs = read.query_map([], |row| row.get(0))?;
        Ok(seqs.collect::<Result<Vec<u64>, _>>()?)
    });
    read.await.unwrap()
}

/// A session with its lane, and the id of a loop in it.
async fn claim_new_session(store: &SqliteStore) -> (Lane, LoopId) {
    store.create(new_session("s1")).await.unwrap();
    let opened = store.claim(&"s1".into(), &Owner::for_this_process()).await;
    (opened.unwrap().lane, "s1.cfg.1".into())
}

#[tokio::test]
async fn journal_is_written_after_a_lock_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(path.clone());
    let (lane, loop_id) = claim_new_session(&store).await;
    let append = |seq| {
        let event = turn_start_event(&lane.session_id, &loop_id, seq);
        store.append(&lane, &loop_id, vec![event]);
    };
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    append(0);
    let refused = store
        .writer
        .call_with_timeout(Duration::ZERO, Flush::Later, |db| {
            Ok(db.sql.execute_batch("BEGIN IMMEDIATE; COMMIT")?)
        });
    assert_broken(refused.await, "another program keeps");
    other.execute_batch("COMMIT").unwrap();
    append(1);
    assert_eq!(journalled_seqs(&store).await, [0, 1]);
}

/// Events shown to the client survive a disk that is full when the lane ends.
#[tokio::test]
async fn unwritten_journal_is_recovered_by_the_next_claim() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db"));
    let (lane, loop_id) = claim_new_session(&store).await;
    let limit = |pages: u32| {
        store.writer.call(move |db| {
            let limit = format!("PRAGMA max_page_count = {pages}");
            Ok(db.sql.query_row(&limit, [], |_| Ok(()))?)
        })
    };
    // As many as there are.
    limit(1).await.unwrap();
    let events = (0..1000).map(|seq| turn_start_event(&lane.session_id, &loop_id, seq));
    store.append(&lane, &loop_id, events.collect());
    let own = Owner {
        id: lane.owner_id.clone(),
        ..Owner::for_this_process()
    };
    let kept = store.release(&lane).await;
    let refused = store.claim(&lane.session_id, &own).await.map(drop);
    for answer in [kept, refused] {
        assert_broken(answer, "is full; free some space");
    }
    limit(1_000_000).await.unwrap();
    let opened = store.claim(&lane.session_id, &own).await;
    assert_eq!(opened.unwrap().last_number, 1);
}

/// The commit waits for the lock up to its full timeout, because the model's response has been paid for.
#[tokio::test]
async fn commit_waits_a_minute_for_a_lock() {
    let (_folder, worker) = worker();
    let patience = |db: &mut Db| {
        let waits = db
            .sql
            .pragma_query_value(None, "busy_timeout", |row| row.get(0));
        Ok(Duration::from_millis(waits?))
    };
    let commit = worker.commit(SettledLoops::new(), patience).await.unwrap();
    assert!(
        commit > JOB_TIMEOUT && commit <= COMMIT_TIMEOUT,
        "{commit:?}"
    );
    let other = worker.call_flushed(patience);
    let other = other.await.unwrap();
    assert!(other <= JOB_TIMEOUT, "{other:?}");
}

#[tokio::test]
async fn journal_that_lost_an_event_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db"));
    let (lane, loop_id) = claim_new_session(&store).await;
    let append = |seq| {
        let event = turn_start_event(&lane.session_id, &loop_id, seq);
        store.append(&lane, &loop_id, vec![event]);
    };
    let (hanging, release, _) = hanging_commit(&store.writer);
    append(0);
    for _ in 1..CAPACITY {
        drop(store.writer.call(|_| Ok(())));
    }
    // The queue is full: neither append waits.
    append(1);
    assert_broken(empty_transaction(&store.writer).await, "does not keep up");
    release.send(()).unwrap();
    hanging.await.unwrap();
    while empty_transaction(&store.writer).await.is_err() {
        tokio::task::yield_now().await;
    }
    append(2);
    let event = turn_start_event(&lane.session_id, &loop_id, 3);
    let refused = store.append_now(&lane, &loop_id, vec![event]).await;
    assert_broken(refused, "from its first event");
    assert_eq!(journalled_seqs(&store).await, [0]);
    // The loop starts again.
    append(0);
    append(1);
    assert_eq!(journalled_seqs(&store).await, [0, 1]);
}

/// Events that arrive while the database cannot be opened are lost, too.
#[tokio::test]
async fn append_after_a_cut_in_the_thread_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("folder");
    fs::write(&inside, "no folder").unwrap();
    let store = SqliteStore::open(inside.join("sessions.db"));
    let lane = Lane {
        session_id: "s1".into(),
        owner_id: Owner::for_this_process().id,
        fence: 1,
    };
    let loop_id = LoopId::from("s1.cfg.1");
    let events = |seq| vec![turn_start_event(&lane.session_id, &loop_id, seq)];
    store.append(&lane, &loop_id, events(0));
    assert_broken(
        store.append_now(&lane, &loop_id, events(1)).await,
        "cannot be stored in",
    );
    fs::remove_file(&inside).unwrap();
    let (lane, loop_id) = claim_new_session(&store).await;
    assert_broken(
        store.append_now(&lane, &loop_id, events(2)).await,
        "from its first event",
    );
    assert_eq!(journalled_seqs(&store).await, [0; 0]);
    let all = vec![
        turn_start_event(&lane.session_id, &loop_id, 0),
        turn_start_event(&lane.session_id, &loop_id, 1),
    ];
    assert_eq!(store.append_now(&lane, &loop_id, all).await, Ok(()));
    assert_eq!(store.append_now(&lane, &loop_id, events(2)).await, Ok(()));
    assert_eq!(journalled_seqs(&store).await, [0, 2]);
}

/// The panic answers the jobs, not the deadlines, whose error differs.
#[tokio::test]
async fn thread_panic_fails_all_jobs() {
    let (_folder, worker) = worker();
    let (hanging, release, _) = hanging_commit(&worker);
    let broken = worker.call(|_| -> Result<(), JobError> { panic!("a bug") });
    let behind = empty_transaction(&worker);
    release.send(()).unwrap();
    hanging.await.unwrap();
    for answer in [broken.await, behind.await] {
        assert_broken(answer, "has stopped after a fault");
    }
}

#[tokio::test]
async fn database_recovers_once_the_disk_has_space() {
    let (_folder, worker) = worker();
    let fill = |worker: &Worker| {
        worker.commit(SettledLoops::new(), |db| {
            write(&db.sql, |sql| {
                sql.execute_batch("CREATE TABLE IF NOT EXISTS filled (body TEXT)")?;
                sql.execute("INSERT INTO filled VALUES (?1)", ["x".repeat(1 << 20)])?;
                Ok(())
            })
        })
    };
    let limit = |worker: &Worker, pages: u32| {
        worker.call(move |db| {
            let limit = format!("PRAGMA max_page_count = {pages}");
            Ok(db.sql.query_row(&limit, [], |_| Ok(()))?)
        })
    };
    limit(&worker, 20).await.unwrap();
    for _ in 0..2 {
        assert_broken(fill(&worker).await, "is full; free some space");
    }
    limit(&worker, 1_000_000).await.unwrap();
    fill(&worker).await.unwrap();
    let found = worker.call(|db| {
        let count: u32 = db
            .sql
            .query_row("SELECT count(*) FROM filled", [], |row| row.get(0))?;
        let whole: String = db
            .sql
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok((count, whole))
    });
    assert_eq!(found.await, Ok((1, "ok".to_owned())));
}

#[tokio::test]
async fn missing_files_are_refused_until_restored() {
    let (folder, worker) = worker();
    empty_transaction(&worker).await.unwrap();
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let (file, elsewhere) = (folder.path().join(name), folder.path().join("elsewhere"));
        fs::rename(&file, &elsewhere).unwrap();
        let moved = format!("{name} was moved, removed or replaced");
        assert_broken(empty_transaction(&worker).await, &moved);
        fs::copy(&elsewhere, &file).unwrap();
        assert!(
            empty_transaction(&worker).await.is_err(),
            "a copy is another file"
        );
        fs::rename(&elsewhere, &file).unwrap();
        empty_transaction(&worker).await.unwrap();
    }
}

/// Name of the threads of [`runtime`].
const INLINE_THREAD: &str = "inline";

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).thread_name(INLINE_THREAD);
    runtime.build().unwrap()
}

/// Returns a worker that has run a job; a value is sent when another runtime thread must take over.
fn inline_worker(
    folder: &tempfile::TempDir,
    runtime: &tokio::runtime::Runtime,
) -> (Worker, mpsc::Receiver<()>) {
    let (stall, stalled) = mpsc::sync_channel(1);
    let mut worker = Worker::new(folder.path().join("sessions.db"), "writer");
    worker.set_inline_runtime(InlineRuntime {
        runtime: runtime.handle().clone(),
        on_stall: Arc::new(move || {
            let _ = stall.try_send(());
        }),
    });
    runtime.block_on(empty_transaction(&worker)).unwrap();
    (worker, stalled)
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// Returns the name of the thread that runs a commit.
async fn commit_thread(worker: &Worker) -> String {
    worker
        .commit(SettledLoops::new(), |_| Ok(thread_name()))
        .await
        .unwrap()
}

#[test]
fn short_jobs_are_done_inline_and_others_are_not() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, _stalled) = inline_worker(&folder, &runtime);
    runtime.block_on(async {
        // A busy machine may have made the last job slow.
        while commit_thread(&worker).await != INLINE_THREAD {}
        let other = worker.call(|_| Ok(thread_name()));
        assert_eq!(other.await.unwrap(), "writer");
        let slow = worker.commit(SettledLoops::new(), |_| {
            thread::sleep(MAX_QUICK_BATCH);
            Ok(())
        });
        slow.await.unwrap();
        // The state is updated just after the answer.
        let until = Instant::now() + Duration::from_secs(60);
        while worker.get_or_start_thread().unwrap().shared.was_quick() {
            assert!(Instant::now() < until, "a slow job is quick");
            thread::yield_now();
        }
        assert_eq!(commit_thread(&worker).await, "writer", "after a slow job");
    });
}

/// Queued jobs run first, on whichever thread.
#[test]
fn inline_jobs_keep_their_order() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, _stalled) = inline_worker(&folder, &runtime);
    let order = Arc::new(Mutex::new(Vec::new()));
    let jobs: Vec<_> = (0..1000)
        .map(|number| {
            let order = Arc::clone(&order);
            let work = move |_: &mut Db| {
                order.lock().unwrap().push(number);
                Ok(())
            };
            match number % 3 {
                0 => worker.call(work),
                _ => worker.commit(SettledLoops::new(), work),
            }
        })
        .collect();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn hanging_inline_job_is_reported_and_times_out() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, stalled) = inline_worker(&folder, &runtime);
    // A busy machine may have made the last job slow.
    let (hanging, release) = loop {
        let (hanging, release, place) = hanging_commit(&worker);
        if place == INLINE_THREAD {
            break (hanging, release);
        }
        release.send(()).unwrap();
        runtime.block_on(hanging).unwrap();
    };
    stalled.recv_timeout(Duration::from_secs(60)).expect("told");
    let queued = worker.call_with_timeout(Duration::ZERO, Flush::Now, |_| Ok(()));
    assert_broken(runtime.block_on(queued), "did not respond within");
    release.send(()).unwrap();
    assert_eq!(runtime.block_on(hanging), Ok(()));
    runtime.block_on(empty_transaction(&worker)).unwrap();
}

#[test]
fn inline_job_panic_fails_all_jobs() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, _stalled) = inline_worker(&folder, &runtime);
    while runtime.block_on(commit_thread(&worker)) != INLINE_THREAD {}
    let broken = worker.commit(SettledLoops::new(), |_| -> Result<(), JobError> {
        panic!("a bug")
    });
    assert_broken(runtime.block_on(broken), "has stopped after a fault");
    assert_broken(
        runtime.block_on(empty_transaction(&worker)),
        "has stopped after a fault",
    );
}

/// The runtime that should do a job is gone.
#[test]
fn inline_job_without_a_runtime_is_done_by_the_thread() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, _stalled) = inline_worker(&folder, &runtime);
    while runtime.block_on(commit_thread(&worker)) != INLINE_THREAD {}
    runtime.shutdown_background();
    let other = tokio::runtime::Builder::new_current_thread();
    let other = { other }.build().unwrap();
    assert_eq!(other.block_on(commit_thread(&worker)), "writer");
}

/// Inline commits reach the disk without a further job.
#[test]
fn inline_commits_are_flushed() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let (worker, _stalled) = inline_worker(&folder, &runtime);
    while runtime.block_on(commit_thread(&worker)) != INLINE_THREAD {}
    let log = worker.commit(SettledLoops::new(), |db| Ok(Arc::clone(&db.wal)));
    let log = runtime.block_on(log).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while log.is_flush_pending() {
        assert!(Instant::now() < until, "nobody flushes");
        thread::yield_now();
    }
}
