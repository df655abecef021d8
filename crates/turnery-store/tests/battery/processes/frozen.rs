//! Stops a process past its lease, so that another one takes its session over: the stopped process can neither journal
//! nor commit afterwards, and is told (UP-27).

use super::{OtherProcess, SharedDatabase, process_battery};
use crate::samples::*;
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, sync::Arc, time::Duration};
use turnery_store::{Clock, SqliteStore, Store, StoreError};

process_battery!(
    stopped_process_loses_its_session,
    stopped_process_without_successor_goes_on,
);

type NewDatabase = fn() -> SharedDatabase;

const TAKEN_OVER: &str = "somebody else has taken over session s1";

impl OtherProcess {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }

    /// Stops the process, and waits until all of its threads stand still.
    async fn stop(&self) {
        self.signal(Signal::STOP);
        let is_stopped = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
            tasks.flatten().all(|task| {
                let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                let state = stat
                    .rsplit_once(") ")
                    .map(|(_, rest)| rest.starts_with('T'));
                state.unwrap_or(true)
            })
        };
        while !is_stopped() {
            tokio::task::yield_now().await;
        }
    }
}

/// Opens the database as if this much time had passed since the last heartbeat. Unit: seconds.
async fn open_after(database: &SharedDatabase, seconds: u64) -> Arc<dyn Store> {
    #[cfg(feature = "postgres")]
    if database.address().is_some() {
        shift_heartbeats(database, seconds).await;
        return database.open();
    }
    let later = Duration::from_secs(seconds);
    let monotonic = move || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::from_secs(now.tv_sec.try_into().unwrap()) + later
    };
    let clock = Clock::with_monotonic(move || Clock::system().now() + later, monotonic);
    let path = database.path().unwrap().to_path_buf();
    Arc::new(SqliteStore::with_clock(path, clock))
}

/// Makes all heartbeats older by this much. The time of a lease is that of the server, so nothing else has to change.
#[cfg(feature = "postgres")]
async fn shift_heartbeats(database: &SharedDatabase, seconds: u64) {
    let client = database.connect().await;
    let schema = database.schema();
    let sql = format!(
        "UPDATE \"{schema}\".hosts SET heartbeat_at = heartbeat_at - interval '{seconds} seconds'"
    );
    client.batch_execute(&sql).await.unwrap();
}

// proves: UP-27, C-12, S1
async fn stopped_process_loses_its_session(database: NewDatabase) {
    let database = database();
    let store = database.open();
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let mut other = OtherProcess::start("obedient", &database);
    assert_eq!(other.request("claim s1 there"), "fence 1");
    assert_eq!(other.request("journal 1"), "renewed");
    other.stop().await;
    // A live process keeps its session for another minute after its lease of 30 seconds.
    let busy = StoreError::Busy {
        session: "s1".into(),
        holder: format!("process {}", other.pid()),
    };
    let early = open_after(&database, 70).await;
    assert_eq!(early.claim(&id, &owner("here")).await, Err(busy));
    let late = open_after(&database, 1000).await;
    let opened = late.claim(&id, &owner("here")).await.unwrap();
    assert_eq!((opened.lane.fence, opened.info.head_version), (2, 1));
    // It finds this when it is woken.
    other.send_line("journal 2");
    let mine = Arc::new(record("s1", 2, "Mine?"));
    let committed = late.commit(commit_of(&opened.lane, 1, &mine)).await;
    assert_eq!(committed, Ok(2));
    other.signal(Signal::CONT);
    assert_eq!(other.read_line().as_deref(), Some(TAKEN_OVER));
    assert_eq!(other.request("journal 3"), TAKEN_OVER);
    assert_eq!(other.request("commit 3 2"), TAKEN_OVER);
    assert_eq!(other.request("renew"), TAKEN_OVER);
    assert_eq!(other.request("release"), "released");
    assert_eq!(late.renew(&opened.lane).await, Ok(()));
    // Nothing of it was journalled, so nothing is recovered.
    let again = late.claim(&id, &owner("here")).await.unwrap();
    assert_eq!((again.info.head_version, again.last_number), (2, 2));
    let loops = late.loops(&id, 0).await.unwrap();
    let ids: Vec<_> = loops.iter().map(|it| it.loop_id.clone()).collect();
    assert_eq!(ids, [loop_id("s1", 1), loop_id("s1", 2)]);
    assert_eq!(loops[1], mine);
}

/// Nobody took the session, so the process still has it, however late it is.
// proves: UP-27
async fn stopped_process_without_successor_goes_on(database: NewDatabase) {
    let database = database();
    let store = database.open();
    store.create(new_session("s1")).await.unwrap();
    let mut other = OtherProcess::start("obedient", &database);
    assert_eq!(other.request("claim s1 there"), "fence 1");
    other.stop().await;
    let late = open_after(&database, 1000).await;
    other.signal(Signal::CONT);
    assert_eq!(other.request("renew"), "renewed");
    assert_eq!(other.request("commit 1 0"), "version 1");
    let loops = late.loops(&"s1".into(), 0).await.unwrap();
    assert_eq!(*loops[0], record("s1", 1, "And?"));
}

/// Whether a process of another machine runs is unknown, so its heartbeat decides, by the clock of the server.
// proves: UP-27
#[cfg(feature = "postgres")]
#[tokio::test]
async fn silent_host_of_another_machine_loses_its_session() {
    let database = SharedDatabase::postgres();
    let store = database.open();
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let mut other = OtherProcess::start("obedient", &database);
    assert_eq!(other.request("claim s1 there"), "fence 1");
    let client = database.connect().await;
    let moved = format!(
        "UPDATE \"{}\".hosts SET machine = 'elsewhere', \
         heartbeat_at = clock_timestamp() + interval '1 hour'",
        database.schema()
    );
    client.batch_execute(&moved).await.unwrap();
    other.kill();
    let busy = store.claim(&id, &owner("here")).await;
    let holder = "of another machine";
    assert!(
        matches!(&busy, Err(StoreError::Busy { holder: found, .. }) if found.ends_with(holder)),
        "{busy:?}"
    );
    shift_heartbeats(&database, 3600 + 30).await;
    let opened = store.claim(&id, &owner("here")).await;
    assert_eq!(opened.unwrap().lane.fence, 2);
}
