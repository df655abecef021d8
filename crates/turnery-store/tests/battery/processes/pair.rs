//! Tests two processes with one session or one new database: the first wins, the second gets an error.

use super::{OtherProcess, SharedDatabase, process_battery};
use crate::{effects, samples::*};
use std::sync::Arc;
use turnery_engine::SessionId;
use turnery_store::{Lane, ListQuery, NextEffect, Store, StoreError};

process_battery!(
    busy_names_the_process,
    killed_process_loses_its_lane,
    head_moved_by_another_process_is_a_conflict,
    one_of_two_commits_at_the_same_head_is_made,
    two_processes_take_turns,
    each_effect_is_taken_by_one_process,
);

type NewDatabase = fn() -> SharedDatabase;

struct TwoProcesses {
    store: Arc<dyn Store>,
    other: OtherProcess,
    id: SessionId,
    database: SharedDatabase,
}

async fn two_processes(database: NewDatabase) -> TwoProcesses {
    let database = database();
    let store = database.open();
    store.create(new_session("s1")).await.expect("made");
    TwoProcesses {
        other: OtherProcess::start("obedient", &database),
        store,
        id: "s1".into(),
        database,
    }
}

impl TwoProcesses {
    async fn claim(&self) -> Result<Lane, StoreError> {
        let opened = self.store.claim(&self.id, &owner("here")).await;
        opened.map(|opened| opened.lane)
    }
}

/// UP-27: the second process learns who holds the lane, in both directions.
// proves: LASH-33, UP-27
async fn busy_names_the_process(database: NewDatabase) {
    let mut scene = two_processes(database).await;
    assert_eq!(scene.other.request("claim s1 there"), "fence 1");
    let busy = StoreError::Busy {
        session: "s1".into(),
        holder: format!("process {}", scene.other.pid()),
    };
    assert_eq!(scene.claim().await, Err(busy));
    assert_eq!(scene.other.request("release"), "released");
    assert_eq!(scene.claim().await.unwrap().fence, 2);
    assert_eq!(
        scene.other.request("claim s1 there"),
        format!(
            "session s1 is busy: process {} is at work in it",
            std::process::id()
        )
    );
}

/// UP-27: the lease of the dead holder need not expire.
// proves: UP-27
async fn killed_process_loses_its_lane(database: NewDatabase) {
    let mut scene = two_processes(database).await;
    assert_eq!(scene.other.request("claim s1 there"), "fence 1");
    scene.other.kill();
    let lane = scene.claim().await.unwrap();
    assert_eq!(lane.fence, 2);
    let record = record("s1", 1, "Anybody?").into();
    assert_eq!(
        scene.store.commit(commit_of(&lane, 0, &record)).await,
        Ok(1)
    );
}

/// S1: a commit of another process is not overwritten.
// proves: LASH-34, LASH-35, S1, S8
async fn head_moved_by_another_process_is_a_conflict(database: NewDatabase) {
    let mut scene = two_processes(database).await;
    scene.other.request("claim s1 there");
    assert_eq!(scene.other.request("commit 1 0"), "version 1");
    scene.other.request("release");
    let lane = scene.claim().await.unwrap();
    let mine = record("s1", 2, "Mine?").into();
    let conflict = StoreError::HeadConflict {
        expected: 0,
        actual: 1,
    };
    let refused = scene.store.commit(commit_of(&lane, 0, &mine)).await;
    assert_eq!(refused, Err(conflict));
    assert_eq!(scene.store.commit(commit_of(&lane, 1, &mine)).await, Ok(2));
    let loops = scene.store.loops(&scene.id, 0).await.unwrap();
    assert_eq!(*loops[0], record("s1", 1, "And?"));
    assert_eq!(loops[1], mine);
    // The other process has lost its lane.
    assert_eq!(
        scene.other.request("commit 3 2"),
        "somebody else has taken over session s1"
    );
}

/// Of a commit and a commit of a later claim at the same time, exactly one is made, and nothing of the other.
// proves: S1
async fn one_of_two_commits_at_the_same_head_is_made(database: NewDatabase) {
    let database = database();
    let stores = [(); 2].map(|()| database.open());
    stores[0].create(new_session("s1")).await.unwrap();
    let id = "s1".into();
    for head in 0..100_u32 {
        let old = stores[0].claim(&id, &owner("here")).await.unwrap().lane;
        let (mine, theirs) = (
            record("s1", 2 * head + 1, "Mine?"),
            record("s1", 2 * head + 2, "Theirs?"),
        );
        let expected = u64::from(head);
        let first = stores[0].commit(commit_of(&old, expected, &mine.into()));
        let second = async {
            let lane = stores[1].claim(&id, &owner("here")).await.unwrap().lane;
            stores[1]
                .commit(commit_of(&lane, expected, &theirs.into()))
                .await
        };
        let both = tokio::join!(first, second);
        let made = [&both.0, &both.1].map(|it| *it == Ok(expected + 1));
        assert_ne!(made[0], made[1], "{both:?}");
        let info = stores[0].info(&id).await.unwrap();
        let loops = stores[0].loops(&id, 0).await.unwrap();
        assert_eq!(
            (info.head_version, loops.len() as u64),
            (expected + 1, expected + 1)
        );
    }
}

async fn two_processes_take_turns(database: NewDatabase) {
    let mut scene = two_processes(database).await;
    for round in 0..20_u32 {
        let fence = format!("fence {}", 2 * round + 1);
        assert_eq!(scene.other.request("claim s1 there"), fence);
        let (number, head) = (2 * round + 1, 2 * round);
        let version = format!("version {}", head + 1);
        let told = scene.other.request(&format!("commit {number} {head}"));
        assert_eq!(told, version);
        assert_eq!(scene.other.request("release"), "released");
        let lane = scene.claim().await.unwrap();
        let mine = record("s1", number + 1, "Mine?").into();
        let head = u64::from(head) + 1;
        let committed = scene.store.commit(commit_of(&lane, head, &mine)).await;
        assert_eq!(committed, Ok(head + 1));
        scene.store.release(&lane).await.unwrap();
    }
    let loops = scene.store.loops(&scene.id, 0).await.unwrap();
    let ids: Vec<_> = loops.iter().map(|record| record.loop_id.clone()).collect();
    let expected: Vec<_> = (1..=40).map(|number| loop_id("s1", number)).collect();
    assert_eq!(ids, expected);
}

/// Many processes open files that do not exist yet: each finds its session in the end.
#[tokio::test]
async fn new_database_opens_in_many_processes_at_once() {
    let scene = two_processes(SharedDatabase::sqlite).await;
    let mut others: Vec<OtherProcess> = (0..4)
        .map(|_| OtherProcess::start("obedient", &scene.database))
        .collect();
    for round in 0..40 {
        let file = format!("new-{round}.db");
        for other in &mut others {
            assert_eq!(other.request(&format!("open {file}")), "opened");
        }
        for (number, other) in others.iter_mut().enumerate() {
            other.send_line(&format!("create s{number}"));
        }
        for (number, other) in others.iter_mut().enumerate() {
            assert_eq!(other.read_line(), Some(format!("made s{number}")));
        }
        assert_eq!(sessions(&scene.database.beside(&file)).await, 4);
    }
}

async fn sessions(database: &SharedDatabase) -> usize {
    let page = database
        .open()
        .list(ListQuery::default())
        .await
        .expect("a page");
    page.sessions.len()
}

/// Two processes take effects at the same time: each is taken by one of them. Once a process is killed, the other
/// takes its effects too.
async fn each_effect_is_taken_by_one_process(database: NewDatabase) {
    const COUNT: u32 = 60;
    let mut scene = two_processes(database).await;
    let lane = scene.claim().await.unwrap();
    let commit = effects::commit_with_effects(&lane, 0, COUNT);
    scene.store.commit(commit).await.unwrap();
    scene.other.send_line("take s1");
    let take_all = async || {
        let mut keys = Vec::new();
        while let NextEffect::Taken(taken) = scene
            .store
            .take_effect(&scene.id, &owner("here"))
            .await
            .unwrap()
        {
            keys.push(taken.pending.key);
        }
        keys
    };
    let here = take_all().await;
    let there = scene.other.read_line().expect("an answer");
    let there = there.split_whitespace().map(str::to_owned);
    let all = |keys: Vec<String>| {
        let mut keys = keys;
        keys.sort();
        keys
    };
    let there: Vec<String> = there.collect();
    let mut expected = all((0..COUNT).map(|it| effects::effect("s1", it).key).collect());
    assert_eq!(all([here.clone(), there.clone()].concat()), expected);
    scene.other.kill();
    expected.retain(|key| there.contains(key));
    assert_eq!(all(take_all().await), expected);
}
