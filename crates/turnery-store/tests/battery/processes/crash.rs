//! Kills a process at any moment of its work: everything acknowledged is complete, and nothing is stored
//! partially (S1, S3, S4, S5).

use super::{LINE_MARK, OtherProcess, SharedDatabase, process_battery, role::print_line};
use crate::{effects::effect, is_late, samples::*};
use std::{
    collections::HashMap,
    env,
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use turnery_engine::{CallId, Event, EventKind, LoopRecord, LoopStatus, Message};
use turnery_store::{
    Commit, ListQuery, NextEffect, SessionInfo, SessionPatch, Store, StoreError, TranscriptNote,
};

process_battery!(
    killed_after_a_step_ended,
    killed_while_creating_and_patching,
    killed_while_journalling,
    killed_while_committing,
    killed_in_the_middle_of_a_long_commit,
    killed_at_every_call,
    killed_at_random_moments,
);

type NewDatabase = fn() -> SharedDatabase;

/// Number of loops per session; the commit of one is so large that it fills the log.
const LOOPS: u32 = 4;
const LONG_LOOP: u32 = 2;
const MANY_CALLS: usize = 500;

/// Environment variable with the number of calls of the long loop.
const LONG_CALLS: &str = "TURNERY_STORE_TEST_LONG_CALLS";

/// Environment variable with the call at which the process stops: `before` or `after`, and its number.
const STOP: &str = "TURNERY_STORE_TEST_STOP";

fn loop_of(session: &str, number: u32, long_calls: usize) -> Arc<LoopRecord> {
    let record = record(session, number, "Well?");
    Arc::new(if number == LONG_LOOP {
        with_calls(record, long_calls, &"line\n".repeat(1000))
    } else {
        with_calls(record, 2, "line\n")
    })
}

/// The two halves in which a loop is journalled; the second ends with a running call.
fn journal_of(record: &LoopRecord) -> [&[Event]; 2] {
    [&record.events[..4], &record.events[4..11]]
}

/// Role of the killed process. Prints `@begin NAME` and `@end NAME` around each operation, and dots in
/// between.
pub(super) async fn write_forever(database: &SharedDatabase) {
    let store = database.open();
    let long_calls = env::var(LONG_CALLS).expect("a variable");
    let long_calls = long_calls.parse().expect("a number");
    for session in 1_u32.. {
        let id = format!("s{session}");
        let key = id.as_str().into();
        run_step(format!("create {id}"), async {
            store.create(new_session(&id)).await
        })
        .await;
        let patch = SessionPatch {
            mode: Some("plan".into()),
            ..SessionPatch::default()
        };
        run_step(format!("patch {id}"), async {
            store.patch(&key, patch).await
        })
        .await;
        let claim = async { store.claim(&key, &owner("there")).await };
        let lane = run_step(format!("claim {id}"), claim).await.lane;
        let notes = vec![note(&id)];
        run_step(format!("note {id}"), async {
            store.add_notes(&key, notes).await
        })
        .await;
        for number in 1..=LOOPS {
            let record = loop_of(&id, number, long_calls);
            for (half, events) in journal_of(&record).into_iter().enumerate() {
                run_step(format!("journal{half} {id} {number}"), async {
                    store
                        .append_now(&lane, &record.loop_id, events.to_vec())
                        .await
                })
                .await;
            }
            let commit = Commit {
                effects: vec![effect(&id, number)],
                ..commit_of(&lane, u64::from(number) - 1, &record)
            };
            run_step(format!("commit {id} {number}"), async {
                store.commit(commit).await
            })
            .await;
        }
        let release = async { store.release(&lane).await };
        run_step(format!("release {id}"), release).await;
    }
}

/// Calls of the writer for one session.
const CALLS: usize = 5 + 3 * LOOPS as usize;

fn note(session: &str) -> TranscriptNote {
    let message = message(&loop_id(session, 1), "note", user("/help"));
    TranscriptNote {
        at: at(1),
        message: (*message).clone(),
    }
}

/// Stops for ever at the call that [`STOP`] names.
async fn stop_at(when: &str, call: usize) {
    if env::var(STOP).is_ok_and(|stop| stop == format!("{when} {call}")) {
        print_line(&format!("\n{LINE_MARK}stopped\n"));
        pending::<()>().await;
    }
}

/// Line of a process that got no response in time, and does nothing any more.
const LATE: &str = "late";

/// Repeats work until the store responds in time.
async fn patiently<T>(work: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    loop {
        match work().await {
            Err(error) if is_late(&error) => {}
            done => return done,
        }
    }
}

/// The store starts when called, not when awaited, so the call must be inside `work`.
async fn run_step<T>(name: String, work: impl Future<Output = Result<T, StoreError>>) -> T {
    static CALL: AtomicUsize = AtomicUsize::new(0);
    let call = CALL.fetch_add(1, Ordering::Relaxed);
    print_line(&format!("\n{LINE_MARK}begin {name}\n"));
    stop_at("before", call).await;
    let mut work = std::pin::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            () = tokio::task::yield_now() => print_line("."),
        }
    };
    let value = match done {
        Ok(value) => value,
        // Its outcome is unknown, as if the process were killed now.
        Err(error) if is_late(&error) => {
            print_line(&format!("\n{LINE_MARK}{LATE}\n"));
            pending().await
        }
        Err(error) => panic!("{name}: {error}"),
    };
    stop_at("after", call).await;
    print_line(&format!("\n{LINE_MARK}end {name}\n"));
    value
}

/// When to kill: this many bytes after the `nth` line with this prefix.
#[derive(Default)]
struct KillPoint {
    /// Calls of the long loop, if not [`MANY_CALLS`].
    long_calls: Option<usize>,
    /// Call at which the process stops by itself, as described at [`STOP`].
    stop: String,
    line: &'static str,
    nth: usize,
    bytes: usize,
}

/// Output of the killed process.
#[derive(Default)]
struct WriterLog {
    long_calls: usize,
    done: Vec<String>,
    running: Option<String>,
}

impl WriterLog {
    fn read_line(&mut self, line: &str) {
        let Some((_, ours)) = line.split_once(LINE_MARK) else {
            return;
        };
        if let Some(name) = ours.strip_prefix("begin ") {
            self.running = Some(name.to_owned());
        } else if let Some(name) = ours.strip_prefix("end ") {
            assert_eq!(self.running.take().as_deref(), Some(name));
            self.done.push(name.to_owned());
        }
    }

    fn has_done(&self, name: &str) -> bool {
        self.done.iter().any(|done| done == name)
    }

    fn may_have_done(&self, name: &str) -> bool {
        self.has_done(name) || self.running.as_deref() == Some(name)
    }
}

fn run_until(moment: &KillPoint, database: &SharedDatabase) -> WriterLog {
    let long_calls = moment.long_calls.unwrap_or(MANY_CALLS);
    let variables = [
        (STOP, moment.stop.clone()),
        (LONG_CALLS, long_calls.to_string()),
    ];
    let mut other = OtherProcess::start_with("writer", database, variables);
    let mut said = WriterLog {
        long_calls,
        ..WriterLog::default()
    };
    let (mut met, mut bytes) = (0, moment.bytes);
    while met <= moment.nth {
        let line = other.read_line().expect("it goes on for ever");
        said.read_line(&format!("{LINE_MARK}{line}"));
        if line == LATE {
            bytes = 0;
            break;
        }
        met += usize::from(line.starts_with(moment.line));
    }
    let mut rest = other.read_bytes(bytes);
    rest.extend(other.kill());
    let rest = String::from_utf8(rest).expect("text");
    // The text after the last line end is incomplete.
    let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().for_each(|line| said.read_line(line));
    said
}

/// Opens the database and compares it with the output. Returns true if a commit was running and left no trace.
async fn check_database(database: &SharedDatabase, said: &WriterLog) -> bool {
    #[cfg(feature = "postgres")]
    if database.address().is_some() {
        wait_until_server_is_done(database).await;
    }
    if let Some(path) = database.path() {
        let db = rusqlite::Connection::open(path).expect("opened");
        let check = |sql| db.query_row(sql, [], |row| row.get::<_, String>(0));
        assert_eq!(check("PRAGMA integrity_check").expect("checked"), "ok");
        assert!(
            check("PRAGMA foreign_key_check").is_err(),
            "no row is astray"
        );
    }
    let store = &*database.open();
    let page = patiently(async || store.list(ListQuery::default()).await).await;
    let page = page.expect("a page");
    let mut found: HashMap<String, SessionInfo> = HashMap::new();
    for info in page.sessions {
        found.insert(info.id.to_string(), info);
    }
    let mut undone = false;
    let running = (1..).take_while(|session| said.may_have_done(&format!("create s{session}")));
    for session in running {
        let id = format!("s{session}");
        match found.remove(&id) {
            Some(info) => undone |= check_session(store, info, said).await,
            None => assert!(!said.has_done(&format!("create {id}")), "{id} is lost"),
        }
    }
    assert_eq!(found, HashMap::new());
    undone
}

async fn check_session(store: &dyn Store, info: SessionInfo, said: &WriterLog) -> bool {
    let id = info.id.to_string();
    let patched = info.mode == "plan";
    assert!(patched || !said.has_done(&format!("patch {id}")));
    assert!(!patched || said.may_have_done(&format!("patch {id}")));

    // Before any claim: complete commits, all of them, in order, and at most one unacknowledged.
    let before = patiently(async || store.loops(&info.id, 0).await).await;
    let before = before.expect("loaded");
    for (number, record) in (1..).zip(&before) {
        assert_eq!(
            *record,
            loop_of(&id, number, said.long_calls),
            "loop {number} is whole"
        );
        assert!(said.may_have_done(&format!("commit {id} {number}")));
    }
    let kept = u32::try_from(before.len()).expect("few");
    assert!(
        !said.has_done(&format!("commit {id} {}", kept + 1)),
        "a commit is lost"
    );
    assert_eq!(info.head_version, u64::from(kept));
    let tip = (kept > 0).then(|| loop_id(&id, kept));
    assert_eq!(info.tip_loop_id, tip);

    // Succeeds at once, although the lease has not expired.
    let here = owner("here");
    let opened = patiently(async || store.claim(&info.id, &here).await).await;
    let opened = opened.expect("free");
    let after = patiently(async || store.loops(&info.id, u64::from(kept)).await).await;
    let after = after.expect("loaded");
    assert_eq!(
        opened.info.head_version,
        u64::from(kept) + after.len() as u64
    );
    let next = kept + 1;
    let now = after.last().map(|record| record.loop_id.clone());
    assert_eq!(opened.info.tip_loop_id, now.or(tip));
    let journalled = [0, 1].map(|half| said.has_done(&format!("journal{half} {id} {next}")));
    assert!(after.len() <= 1);
    assert!(after.len() == 1 || journalled == [false, false]);
    if let Some(aborted) = after.first() {
        check_aborted(aborted, &loop_of(&id, next, said.long_calls), journalled);
    }
    let again = loop_of(&id, next + 1, said.long_calls);
    let head = opened.info.head_version;
    let commit = commit_of(&opened.lane, head, &again);
    let committed = patiently(async || store.commit(commit.clone()).await).await;
    assert_eq!(committed, Ok(head + 1));
    check_notes_and_effects(store, &info, said, kept).await;
    said.running == Some(format!("commit {id} {next}"))
}

/// Checks that there is the note if it was acknowledged, and exactly the effects of the committed loops.
async fn check_notes_and_effects(
    store: &dyn Store,
    info: &SessionInfo,
    said: &WriterLog,
    kept: u32,
) {
    let (id, name) = (info.id.as_str(), format!("note {}", info.id));
    let notes = patiently(async || store.notes(&info.id).await).await;
    let notes = notes.expect("loaded");
    let is_there = notes == [note(id)];
    assert!(is_there || notes.is_empty());
    assert!(is_there || !said.has_done(&name), "the note is lost");
    assert!(!is_there || said.may_have_done(&name));
    let mut keys = Vec::new();
    while let NextEffect::Taken(taken) = store
        .take_effect(&info.id, &owner("here"))
        .await
        .expect("taken")
    {
        keys.push(taken.pending.key);
    }
    let expected: Vec<_> = (1..=kept).map(|number| effect(id, number).key).collect();
    assert_eq!(keys, expected);
}

/// Checks that the loop has the journalled events, at most one half more than acknowledged, with closed calls.
fn check_aborted(aborted: &LoopRecord, ran: &LoopRecord, journalled: [bool; 2]) {
    let [first, second] = journal_of(ran);
    assert_eq!(aborted.loop_id, ran.loop_id);
    assert_eq!(aborted.status, LoopStatus::Aborted);
    // Its calls are in no message, so only the text before them can be sent to a model.
    assert!(aborted.on_chain);
    let events = aborted.events.as_slice();
    let both = events.get(4..11) == Some(second);
    assert!(both || !journalled[1], "the second half is lost");
    assert_eq!(events[..4], *first);
    if !both {
        return;
    }
    check_whole(aborted, ran);
}

/// Checks that the second call was requested and ran, and the first one had ended.
fn check_whole(aborted: &LoopRecord, ran: &LoopRecord) {
    let ended = |number: u32| CallId::from(format!("{}.call-{number}", ran.loop_id));
    let asked: Vec<_> = aborted.messages.iter().map(|it| &it.message).collect();
    assert!(matches!(asked[0], Message::User { .. }), "{asked:?}");
    let last = asked.last();
    assert!(matches!(last, Some(Message::System { .. })), "{asked:?}");
    let ends = |id: &CallId| {
        let events = aborted.events.iter();
        let ends = events.filter(|event| {
            matches!(&event.kind, EventKind::ToolExecutionEnd { call_id, .. } if call_id == id)
        });
        ends.count()
    };
    assert_eq!((ends(&ended(0)), ends(&ended(1))), (1, 1));
}

/// Numbers of kills during an operation, and of those that undid it.
#[derive(Debug, Default)]
struct KillCounts {
    kills: usize,
    under_way: usize,
    undone: usize,
}

async fn kill_at_each(
    new_database: NewDatabase,
    kill_points: impl Iterator<Item = KillPoint>,
) -> KillCounts {
    let mut tally = KillCounts::default();
    let mut database = new_database();
    for moment in kill_points {
        let said = run_until(&moment, &database);
        tally.kills += 1;
        tally.under_way += usize::from(said.running.is_some());
        tally.undone += usize::from(check_database(&database, &said).await);
        match database.path() {
            Some(_) => database = new_database(),
            None => delete_all(&database).await,
        }
    }
    tally
}

/// Deletes all sessions: new tables for each kill would take longer than everything else.
async fn delete_all(database: &SharedDatabase) {
    let store = database.open();
    let page = patiently(async || store.list(ListQuery::default()).await).await;
    for info in page.expect("a page").sessions {
        let deleted = patiently(async || store.delete_in_use(&info.id).await).await;
        deleted.expect("deleted");
    }
}

/// Waits until the server has noticed that the killed process is gone: it may still run its last statement.
#[cfg(feature = "postgres")]
async fn wait_until_server_is_done(database: &SharedDatabase) {
    const COUNT: &str = "SELECT count(*) FROM pg_stat_activity \
         WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
    let client = database.connect().await;
    loop {
        let row = client.query_one(COUNT, &[]).await.expect("counted");
        if row.get::<_, i64>(0) == 0 {
            return;
        }
    }
}

/// Moments after the first lines with this prefix, each a little later than the one before.
fn kill_points(line: &'static str, count: usize, bytes: usize) -> impl Iterator<Item = KillPoint> {
    (0..count).map(move |number| KillPoint {
        line,
        nth: number % 5,
        bytes: number * bytes,
        ..KillPoint::default()
    })
}

async fn killed_after_a_step_ended(database: NewDatabase) {
    let tally = kill_at_each(database, kill_points("end ", 15, 17)).await;
    assert_eq!(tally.kills, 15);
}

async fn killed_while_creating_and_patching(database: NewDatabase) {
    let made = kill_at_each(database, kill_points("begin create", 6, 40)).await;
    let changed = kill_at_each(database, kill_points("begin patch", 6, 40)).await;
    assert!(
        made.under_way + changed.under_way > 0,
        "{made:?} {changed:?}"
    );
}

// proves: S4, S5
async fn killed_while_journalling(database: NewDatabase) {
    let tally = kill_at_each(database, kill_points("begin journal", 20, 13)).await;
    assert!(tally.under_way > 0, "{tally:?}");
}

// proves: S3, S4
async fn killed_while_committing(database: NewDatabase) {
    let tally = kill_at_each(database, kill_points("begin commit", 20, 29)).await;
    assert!(tally.under_way > 0, "{tally:?}");
}

/// Long enough that most of these kills interrupt a transaction.
// proves: S3, S4
async fn killed_in_the_middle_of_a_long_commit(database: NewDatabase) {
    let kill_points = (0..15).map(|number| KillPoint {
        line: "begin commit s1 2",
        bytes: number * 300,
        ..KillPoint::default()
    });
    let tally = kill_at_each(database, kill_points).await;
    assert!(tally.undone > 0, "{tally:?}");
}

/// Before and after each call for one session, which is then claimed and continued by somebody else.
// proves: S3, S4, S5
async fn killed_at_every_call(database: NewDatabase) {
    let stops =
        (0..CALLS).flat_map(|call| ["before", "after"].map(|when| format!("{when} {call}")));
    let kill_points = stops.map(|stop| KillPoint {
        stop,
        long_calls: Some(20),
        line: "stopped",
        ..KillPoint::default()
    });
    let tally = kill_at_each(database, kill_points).await;
    assert_eq!((tally.kills, tally.under_way), (2 * CALLS, 2 * CALLS));
}

/// `TURNERY_KILLS` sets the number of kills.
// proves: S3, S4, S5
async fn killed_at_random_moments(database: NewDatabase) {
    let count = env::var("TURNERY_KILLS").map_or(100, |count| count.parse().expect("a number"));
    let mut state = 16_u64;
    let mut below = move |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % bound).expect("small")
    };
    let kill_points = (0..count).map(|_| KillPoint {
        line: "begin",
        nth: below(25),
        bytes: below(600),
        long_calls: Some(20),
        ..KillPoint::default()
    });
    let tally = kill_at_each(database, kill_points).await;
    assert_eq!(tally.kills, count);
    assert!(tally.under_way > count / 4, "{tally:?}");
}
