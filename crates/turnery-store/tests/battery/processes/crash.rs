//! A process is killed at any moment of its work: what it was told is done is there whole, and
//! nothing is there by halves (S1, S3, S4, S5).

use super::{OURS, Other, role::say};
use crate::samples::*;
use std::{collections::HashMap, fmt::Display, future::Future, path::Path, sync::Arc};
use turnery_engine::{CallId, Event, EventKind, LoopRecord, LoopStatus, Message};
use turnery_store::{SessionInfo, SessionPatch, SqliteStore, Store};

/// Loops of a session; one of them is so long that its commit fills the log while it lasts.
const LOOPS: u32 = 4;
const LONG: u32 = 2;

fn loop_of(session: &str, number: u32) -> Arc<LoopRecord> {
    let record = record(session, number, "Well?");
    Arc::new(if number == LONG {
        with_calls(record, 500, &"line\n".repeat(1000))
    } else {
        with_calls(record, 2, "line\n")
    })
}

/// The two halves in which a loop is journalled: the second ends with a call that runs.
fn journal_of(record: &LoopRecord) -> [&[Event]; 2] {
    [&record.events[..4], &record.events[4..11]]
}

/// The role of the one that gets killed. Says `@begin NAME` and `@end NAME` around each operation, and
/// dots for as long as one lasts.
pub(super) async fn write_on(path: &Path) {
    let store = SqliteStore::open(path.to_path_buf());
    for session in 1_u32.. {
        let id = format!("s{session}");
        let key = id.as_str().into();
        step(format!("create {id}"), async {
            store.create(new_session(&id)).await
        })
        .await;
        let patch = SessionPatch {
            mode: Some("plan".into()),
            ..SessionPatch::default()
        };
        step(format!("patch {id}"), async {
            store.patch(&key, patch).await
        })
        .await;
        let lane = store.claim(&key, &owner("there")).await.expect("claimed");
        let lane = lane.lane;
        for number in 1..=LOOPS {
            let record = loop_of(&id, number);
            for (half, events) in journal_of(&record).into_iter().enumerate() {
                // A renewal comes after the journal, and so tells that it is written.
                step(format!("journal{half} {id} {number}"), async {
                    store.append(&lane, &record.loop_id, events.to_vec());
                    store.renew(&lane).await
                })
                .await;
            }
            let commit = commit(&lane, u64::from(number) - 1, &record);
            step(format!("commit {id} {number}"), async {
                store.commit(commit).await
            })
            .await;
        }
    }
}

/// The store begins when it is called, not when it is awaited: so the call must lie within `work`.
async fn step<T, E: Display>(name: String, work: impl Future<Output = Result<T, E>>) {
    say(&format!("\n{OURS}begin {name}\n"));
    let mut work = std::pin::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            () = tokio::task::yield_now() => say("."),
        }
    };
    if let Err(error) = done {
        panic!("{name}: {error}");
    }
    say(&format!("\n{OURS}end {name}\n"));
}

/// When to kill: at the `nth` line that begins so, and so many bytes later.
struct Moment {
    line: &'static str,
    nth: usize,
    bytes: usize,
}

/// What the killed process had said.
#[derive(Default)]
struct Said {
    done: Vec<String>,
    begun: Option<String>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let Some((_, ours)) = line.split_once(OURS) else {
            return;
        };
        if let Some(name) = ours.strip_prefix("begin ") {
            self.begun = Some(name.to_owned());
        } else if let Some(name) = ours.strip_prefix("end ") {
            assert_eq!(self.begun.take().as_deref(), Some(name));
            self.done.push(name.to_owned());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.done.iter().any(|done| done == name)
    }

    fn may_have(&self, name: &str) -> bool {
        self.has(name) || self.begun.as_deref() == Some(name)
    }
}

fn run_until(moment: &Moment, path: &Path) -> Said {
    let mut other = Other::start("writer", path);
    let mut said = Said::default();
    let mut met = 0;
    while met <= moment.nth {
        let line = other.hear().expect("it goes on for ever");
        met += usize::from(line.starts_with(moment.line));
        said.hear(&format!("{OURS}{line}"));
    }
    let mut rest = other.skip(moment.bytes);
    rest.extend(other.kill());
    let rest = String::from_utf8(rest).expect("text");
    // What comes after the last line end was cut short.
    let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().for_each(|line| said.hear(line));
    said
}

/// Open what was left, and hold it against what was said. True if a commit was under way and has left
/// no trace.
async fn inspect(path: &Path, said: &Said) -> bool {
    {
        let db = rusqlite::Connection::open(path).expect("opened");
        let check = |sql| db.query_row(sql, [], |row| row.get::<_, String>(0));
        assert_eq!(check("PRAGMA integrity_check").expect("checked"), "ok");
        assert!(
            check("PRAGMA foreign_key_check").is_err(),
            "no row is astray"
        );
    }
    let store = SqliteStore::open(path.to_path_buf());
    let page = store.list(turnery_store::ListQuery::default()).await;
    let page = page.expect("a page");
    let mut found: HashMap<String, SessionInfo> = HashMap::new();
    for info in page.sessions {
        found.insert(info.id.to_string(), info);
    }
    let mut undone = false;
    let begun = (1..).take_while(|session| said.may_have(&format!("create s{session}")));
    for session in begun {
        let id = format!("s{session}");
        match found.remove(&id) {
            Some(info) => undone |= inspect_session(&store, info, said).await,
            None => assert!(!said.has(&format!("create {id}")), "{id} is lost"),
        }
    }
    assert_eq!(found, HashMap::new());
    undone
}

async fn inspect_session(store: &SqliteStore, info: SessionInfo, said: &Said) -> bool {
    let id = info.id.to_string();
    let patched = info.mode == "plan";
    assert!(patched || !said.has(&format!("patch {id}")));
    assert!(!patched || said.may_have(&format!("patch {id}")));

    // Before anybody claims: whole commits, all of them, in order, and at most one not acknowledged.
    let before = store.loops(&info.id, 0).await.expect("loaded");
    for (number, record) in (1..).zip(&before) {
        assert_eq!(*record, loop_of(&id, number), "loop {number} is whole");
        assert!(said.may_have(&format!("commit {id} {number}")));
    }
    let kept = u32::try_from(before.len()).expect("few");
    assert!(
        !said.has(&format!("commit {id} {}", kept + 1)),
        "a commit is lost"
    );
    assert_eq!(info.head_version, u64::from(kept));
    let tip = (kept > 0).then(|| loop_id(&id, kept));
    assert_eq!(info.tip_loop_id, tip);

    // At once, though its holder's time has not run out.
    let opened = store.claim(&info.id, &owner("here")).await.expect("free");
    let after = store
        .loops(&info.id, u64::from(kept))
        .await
        .expect("loaded");
    assert_eq!(
        opened.info.head_version,
        u64::from(kept) + after.len() as u64
    );
    let next = kept + 1;
    let now = after.last().map(|record| record.loop_id.clone());
    assert_eq!(opened.info.tip_loop_id, now.or(tip));
    let journalled = [0, 1].map(|half| said.has(&format!("journal{half} {id} {next}")));
    assert!(after.len() <= 1);
    assert!(after.len() == 1 || journalled == [false, false]);
    if let Some(aborted) = after.first() {
        inspect_aborted(aborted, &loop_of(&id, next), journalled);
    }
    let again = loop_of(&id, next + 1);
    let head = opened.info.head_version;
    let committed = store.commit(commit(&opened.lane, head, &again)).await;
    assert_eq!(committed, Ok(head + 1));
    said.begun == Some(format!("commit {id} {next}"))
}

/// What was journalled, perhaps a half more than was acknowledged, and its calls closed.
fn inspect_aborted(aborted: &LoopRecord, ran: &LoopRecord, journalled: [bool; 2]) {
    let [first, second] = journal_of(ran);
    assert_eq!(aborted.loop_id, ran.loop_id);
    assert_eq!(aborted.status, LoopStatus::Aborted);
    // Its calls are in no message, so that only what was said before them can be shown to a model.
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

/// The second call was asked for and ran; the first one had ended.
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

/// How many of the kills came while an operation was under way, and how many of those undid it.
#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    under_way: usize,
    undone: usize,
}

async fn kill_at(moments: impl Iterator<Item = Moment>) -> Tally {
    let mut tally = Tally::default();
    for moment in moments {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sessions.db");
        let said = run_until(&moment, &path);
        tally.kills += 1;
        tally.under_way += usize::from(said.begun.is_some());
        tally.undone += usize::from(inspect(&path, &said).await);
    }
    tally
}

/// Moments after the first few lines that begin so, each a little later than the one before.
fn moments(line: &'static str, count: usize, bytes: usize) -> impl Iterator<Item = Moment> {
    (0..count).map(move |number| Moment {
        line,
        nth: number % 5,
        bytes: number * bytes,
    })
}

#[tokio::test]
async fn killed_after_an_answer() {
    let tally = kill_at(moments("end ", 15, 17)).await;
    assert_eq!(tally.kills, 15);
}

#[tokio::test]
async fn killed_while_sessions_are_made_and_changed() {
    let made = kill_at(moments("begin create", 6, 40)).await;
    let changed = kill_at(moments("begin patch", 6, 40)).await;
    assert!(
        made.under_way + changed.under_way > 0,
        "{made:?} {changed:?}"
    );
}

// proves: S4, S5
#[tokio::test]
async fn killed_while_journalling() {
    let tally = kill_at(moments("begin journal", 20, 13)).await;
    assert!(tally.under_way > 0, "{tally:?}");
}

// proves: S3, S4
#[tokio::test]
async fn killed_while_committing() {
    let tally = kill_at(moments("begin commit", 20, 29)).await;
    assert!(tally.under_way > 0, "{tally:?}");
}

/// Long enough that most of these kills cut a transaction short.
// proves: S3, S4
#[tokio::test]
async fn killed_in_the_middle_of_a_long_commit() {
    let moments = (0..15).map(|number| Moment {
        line: "begin commit s1 2",
        nth: 0,
        bytes: number * 300,
    });
    let tally = kill_at(moments).await;
    assert!(tally.undone > 0, "{tally:?}");
}
