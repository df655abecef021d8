//! Tests who may commit: claims, renewals, dead holders (UP-27).

use crate::{World, battery, samples::*};
use std::{process::Command, time::Duration};
use turnery_store::{Clock, Owner, SqliteStore, Store, StoreError};

battery!(
    a_lane_has_one_holder,
    each_claim_gets_a_higher_fence,
    lease_expires_unless_renewed,
    live_holder_keeps_its_lane_while_a_commit_waits,
    delete_is_refused_while_the_holder_is_alive,
    late_holder_without_successor_may_commit,
    dead_holder_is_replaced_at_once,
    release_keeps_a_newer_holder,
    a_lost_lane_is_not_renewed,
);

// proves: LASH-33, UP-27
pub(crate) async fn a_lane_has_one_holder(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let mut first = owner("a");
    first.process = "the machine in the cellar".into();
    store.claim(&id, &first).await.unwrap();
    let busy = StoreError::Busy {
        session: id.clone(),
        holder: "another process".into(),
    };
    assert_eq!(store.claim(&id, &owner("b")).await, Err(busy));
}

// proves: UP-27
pub(crate) async fn each_claim_gets_a_higher_fence(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let mut fences = Vec::new();
    for name in ["a", "b", "a"] {
        let lane = store.claim(&id, &owner(name)).await.unwrap().lane;
        store.renew(&lane).await.unwrap();
        store.release(&lane).await.unwrap();
        fences.push(lane.fence);
    }
    assert_eq!(fences, [1, 2, 3]);
}

pub(crate) async fn lease_expires_unless_renewed(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    // A local holder may be waiting to commit for another minute.
    world.advance_clock(89);
    assert!(store.claim(&id, &owner("b")).await.is_err());
    store.renew(&lane).await.unwrap();
    world.advance_clock(89);
    assert!(store.claim(&id, &owner("b")).await.is_err());
    world.advance_clock(1);
    let next = store.claim(&id, &owner("b")).await.unwrap().lane;
    assert_eq!(next.fence, 2);
    assert_eq!(store.renew(&lane).await, Err(StoreError::LaneLost(id)));
}

/// A commit may wait a minute for another program's lock, and cannot renew its lane meanwhile.
// proves: UP-27
pub(crate) async fn live_holder_keeps_its_lane_while_a_commit_waits(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    world.advance_clock(29 + 60);
    let refused = store.claim(&id, &owner("b")).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })));
    let record = record("s1", 1, "Is it paid for?").into();
    assert_eq!(store.commit(commit_of(&lane, 0, &record)).await, Ok(1));
}

/// A live holder may still be working, however late it is.
// proves: UP-27
async fn delete_is_refused_while_the_holder_is_alive(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    world.advance_clock(1000);
    let refused = store.delete(&id).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })));
    store.release(&lane).await.unwrap();
    assert_eq!(store.delete(&id).await, Ok(true));
}

async fn late_holder_without_successor_may_commit(world: &World) {
    let store = &world.store;
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&"s1".into(), &owner("a")).await.unwrap().lane;
    world.advance_clock(1000);
    assert_eq!(store.renew(&lane).await, Ok(()));
    world.advance_clock(1000);
    let record = record("s1", 1, "Still here").into();
    assert_eq!(store.commit(commit_of(&lane, 0, &record)).await, Ok(1));
}

// proves: UP-27
async fn dead_holder_is_replaced_at_once(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let dead = Owner {
        id: "a".into(),
        process: format!("pid={}", child.id()),
    };
    let old = store.claim(&id, &dead).await.unwrap().lane;
    let new = store.claim(&id, &owner("b")).await.unwrap().lane;
    assert_eq!((old.fence, new.fence), (1, 2));
    assert_eq!(store.renew(&old).await, Err(StoreError::LaneLost(id)));
}

// proves: UP-27
pub(crate) async fn release_keeps_a_newer_holder(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let old = store.claim(&id, &owner("a")).await.unwrap().lane;
    world.advance_clock(90);
    let new = store.claim(&id, &owner("b")).await.unwrap().lane;
    store.release(&old).await.unwrap();
    store.release(&old).await.unwrap();
    assert_eq!(store.renew(&new).await, Ok(()));
}

pub(crate) async fn a_lost_lane_is_not_renewed(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    store.release(&lane).await.unwrap();
    let lost = Err(StoreError::LaneLost(id));
    assert_eq!(store.renew(&lane).await, lost);
}

/// Two processes of one machine whose wall clocks differ: the monotonic clock decides.
// proves: UP-27
#[tokio::test]
#[cfg(target_os = "linux")]
async fn clock_ahead_does_not_take_over_a_lane() {
    let (_folder, path) = crate::temp_database();
    let store = |wall: u64, steady: u64| {
        let steady = Duration::from_secs(steady);
        let clock = Clock::with_monotonic(move || at(wall), move || steady);
        SqliteStore::with_clock(path.clone(), clock)
    };
    let id = "s1".into();
    let holder = store(1000, 500);
    holder.create(new_session("s1")).await.unwrap();
    let lane = holder.claim(&id, &owner("a")).await.unwrap().lane;
    for wall in [0, 1000, 1031, 1_000_000] {
        let refused = store(wall, 589).claim(&id, &owner("b")).await;
        assert!(matches!(refused, Err(StoreError::Busy { .. })), "{wall}");
    }
    store(7, 520).renew(&lane).await.unwrap();
    let refused = store(1_000_000, 609).claim(&id, &owner("b")).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })));
    let next = store(0, 610).claim(&id, &owner("b")).await.unwrap().lane;
    assert_eq!(next.fence, 2);
}
