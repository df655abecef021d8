//! Tests of effects: stored with their commit, taken by one owner at a time, and kept until they are finished.

use crate::{
    World, battery,
    commits::{claim_new_session, sample_record},
    samples::*,
};
use rusqlite::Connection;
use serde_json::json;
use std::time::Duration;
use turnery_store::{
    Commit, Lane, MAX_EFFECT_DELAY, NewSession, NextEffect, Owner, PendingEffect, SpawnRef,
    SqliteStore, Store, StoreError, TakenEffect,
    export::{export_session, import_session},
};

battery!(
    effects_are_taken_in_order_and_once,
    refused_commit_stores_no_effect,
    repeated_commit_stores_effects_once,
    taken_effect_is_free_after_the_lease,
    effect_of_a_dead_process_is_free,
    postponed_effect_lets_others_pass,
    late_postponement_changes_nothing,
    effect_of_a_child_is_delivered_by_its_parent,
    deleted_session_has_no_effects,
);

pub(crate) fn effect(session: &str, number: u32) -> PendingEffect {
    PendingEffect {
        session_id: session.into(),
        key: format!("{session}.cfg.1/call/{number}"),
        tool_name: "order".to_owned(),
        effect: json!({"kind": "emit", "type": "order.placed", "number": number}),
    }
}

pub(crate) fn commit_with_effects(lane: &Lane, head: u64, count: u32) -> Commit {
    Commit {
        effects: (0..count).map(|number| effect("s1", number)).collect(),
        ..commit_of(lane, head, &sample_record(1))
    }
}

async fn store_effects(world: &World, count: u32) -> Lane {
    let lane = claim_new_session(world).await;
    let commit = commit_with_effects(&lane, 0, count);
    world.store.commit(commit).await.unwrap();
    lane
}

async fn take(world: &World, name: &str) -> NextEffect {
    let taken = world.store.take_effect(&"s1".into(), &owner(name)).await;
    taken.unwrap()
}

fn taken(number: u32, attempt: u32) -> NextEffect {
    NextEffect::Taken(TakenEffect {
        pending: effect("s1", number),
        attempt,
    })
}

fn as_taken(next: NextEffect) -> TakenEffect {
    match next {
        NextEffect::Taken(taken) => taken,
        NextEffect::Later(_) | NextEffect::Empty => panic!("{next:?}"),
    }
}

pub(crate) async fn effects_are_taken_in_order_and_once(world: &World) {
    store_effects(world, 3).await;
    for (number, name) in [(0, "a"), (1, "b"), (2, "a")] {
        assert_eq!(take(world, name).await, taken(number, 1));
    }
    for name in ["a", "b"] {
        let next = take(world, name).await;
        assert!(matches!(next, NextEffect::Later(_)), "{next:?}");
    }
    for number in [1, 0, 2] {
        let done = as_taken(taken(number, 1));
        assert_eq!(world.store.finish_effect(&done).await, Ok(()));
        // Idempotent.
        assert_eq!(world.store.finish_effect(&done).await, Ok(()));
    }
    assert_eq!(take(world, "a").await, NextEffect::Empty);
}

/// S1: neither a lost lane nor a stale head leaves effects without their loop.
// proves: S1
pub(crate) async fn refused_commit_stores_no_effect(world: &World) {
    let old = claim_new_session(world).await;
    let lane = world.claim("a").await.unwrap().lane;
    let lost = Err(StoreError::LaneLost("s1".into()));
    let commit = commit_with_effects(&old, 0, 1);
    assert_eq!(world.store.commit(commit).await, lost);
    assert_eq!(take(world, "a").await, NextEffect::Empty);
    let stale = world.store.commit(commit_with_effects(&lane, 7, 1)).await;
    assert!(matches!(stale, Err(StoreError::HeadConflict { .. })));
    assert_eq!(take(world, "a").await, NextEffect::Empty);
    let other = Commit {
        records: vec![record("s2", 1, "Whose?").into()],
        ..commit_with_effects(&lane, 0, 1)
    };
    assert!(world.store.commit(other).await.is_err());
    assert_eq!(take(world, "a").await, NextEffect::Empty);
}

/// S2: the first attempt had stored them, and they may have been delivered since.
// proves: S2
pub(crate) async fn repeated_commit_stores_effects_once(world: &World) {
    let lane = store_effects(world, 1).await;
    let again = || world.store.commit(commit_with_effects(&lane, 0, 1));
    assert_eq!(again().await, Ok(1));
    let first = as_taken(take(world, "a").await);
    world.store.finish_effect(&first).await.unwrap();
    assert_eq!(again().await, Ok(1));
    assert_eq!(take(world, "a").await, NextEffect::Empty);
}

/// A live process keeps an effect as long as a lane: 30 seconds, and the minute that it may wait for a lock.
pub(crate) async fn taken_effect_is_free_after_the_lease(world: &World) {
    store_effects(world, 1).await;
    assert_eq!(take(world, "a").await, taken(0, 1));
    world.advance_clock(89);
    let next = take(world, "b").await;
    assert!(matches!(next, NextEffect::Later(_)), "{next:?}");
    world.advance_clock(2);
    assert_eq!(take(world, "b").await, taken(0, 2));
    let next = take(world, "a").await;
    assert!(matches!(next, NextEffect::Later(_)), "{next:?}");
}

async fn effect_of_a_dead_process_is_free(world: &World) {
    store_effects(world, 1).await;
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = Owner {
        id: "dead".to_owned(),
        process: format!("pid={}", child.id()),
    };
    child.wait().unwrap();
    let first = world.store.take_effect(&"s1".into(), &dead).await;
    assert_eq!(first, Ok(taken(0, 1)));
    assert_eq!(take(world, "a").await, taken(0, 2));
}

pub(crate) async fn postponed_effect_lets_others_pass(world: &World) {
    store_effects(world, 2).await;
    let (first, delay) = (as_taken(take(world, "a").await), Duration::from_secs(5));
    world.store.postpone_effect(&first, delay).await.unwrap();
    let second = as_taken(take(world, "a").await);
    assert_eq!(second.pending, effect("s1", 1));
    world.store.finish_effect(&second).await.unwrap();
    assert_eq!(take(world, "a").await, NextEffect::Later(delay));
    world.advance_clock(4);
    let left = Duration::from_secs(1);
    assert_eq!(take(world, "b").await, NextEffect::Later(left));
    world.advance_clock(1);
    let again = as_taken(take(world, "b").await);
    assert_eq!((&again.pending, again.attempt), (&first.pending, 2));
    let delay = MAX_EFFECT_DELAY * 2;
    world.store.postpone_effect(&again, delay).await.unwrap();
    assert_eq!(take(world, "a").await, NextEffect::Later(MAX_EFFECT_DELAY));
}

async fn late_postponement_changes_nothing(world: &World) {
    store_effects(world, 1).await;
    let late = as_taken(take(world, "a").await);
    world.advance_clock(91);
    assert_eq!(take(world, "b").await, taken(0, 2));
    let delay = Duration::from_secs(1);
    world.store.postpone_effect(&late, delay).await.unwrap();
    world.advance_clock(2);
    let next = take(world, "a").await;
    assert!(matches!(next, NextEffect::Later(_)), "{next:?}");
}

async fn effect_of_a_child_is_delivered_by_its_parent(world: &World) {
    let parent = claim_new_session(world).await;
    let child = NewSession {
        spawned_by: Some(SpawnRef {
            session_id: "s1".into(),
            loop_id: loop_id("s1", 1),
            call_id: "call".into(),
        }),
        ..new_session("child")
    };
    world.store.create(child).await.unwrap();
    let claimed = world.store.claim(&"child".into(), &owner("b")).await;
    let lane = claimed.unwrap().lane;
    let commit = Commit {
        records: vec![record("child", 1, "What now?").into()],
        ..commit_with_effects(&lane, 0, 1)
    };
    world.store.commit(commit).await.unwrap();
    let of_child = world.store.take_effect(&"child".into(), &owner("b")).await;
    assert_eq!(of_child, Ok(NextEffect::Empty));
    assert_eq!(take(world, "a").await, taken(0, 1));
    world.store.release(&lane).await.unwrap();
    world.store.release(&parent).await.unwrap();
}

async fn deleted_session_has_no_effects(world: &World) {
    let lane = store_effects(world, 1).await;
    world.store.release(&lane).await.unwrap();
    assert_eq!(world.store.delete(&"s1".into()).await, Ok(true));
    assert_eq!(take(world, "a").await, NextEffect::Empty);
    world.store.create(new_session("s1")).await.unwrap();
    assert_eq!(take(world, "a").await, NextEffect::Empty);
    assert_eq!(world.store.check(None).await, Ok(Vec::new()));
}

/// A damaged effect is reported and not delivered, and the next one is.
#[tokio::test]
async fn damaged_effect_is_not_delivered() {
    for change in ["tool_name = 'pay'", "effect = '{'", "checksum = 7"] {
        let (_folder, path) = crate::temp_database();
        let store = SqliteStore::open(path.clone());
        store.create(new_session("s1")).await.unwrap();
        let (id, owner) = ("s1".into(), owner("a"));
        let lane = store.claim(&id, &owner).await.unwrap().lane;
        store
            .commit(commit_with_effects(&lane, 0, 2))
            .await
            .unwrap();
        store.release(&lane).await.unwrap();
        let sql = format!("UPDATE outbox SET {change} WHERE outbox = 1");
        Connection::open(&path).unwrap().execute(&sql, ()).unwrap();
        assert_eq!(store.take_effect(&id, &owner).await, Ok(taken(1, 1)));
        let next = store.take_effect(&id, &owner).await.unwrap();
        assert!(matches!(next, NextEffect::Later(_)), "{next:?}");
        let damage = store.check(Some(&id)).await.unwrap();
        let [damage] = damage.as_slice() else {
            panic!("{change}: {damage:?}");
        };
        let text = damage.to_string();
        assert!(text.starts_with("effect 1 cannot be delivered: "), "{text}");
        let repaired = store.repair(&id).await.unwrap();
        assert_eq!(repaired.left, [], "{change}");
        store.finish_effect(&as_taken(taken(1, 1))).await.unwrap();
        let next = store.take_effect(&id, &owner).await;
        assert_eq!(next, Ok(NextEffect::Empty), "{change}");
    }
}

/// Effects are not part of a document: an imported session does not order again.
#[tokio::test]
async fn import_brings_no_effects() {
    let world = World::memory();
    store_effects(&world, 1).await;
    let store = &*world.store;
    let document = export_session(store, &"s1".into()).await;
    let renamed = document.unwrap().with_session_id(&"s2".into()).unwrap();
    let copied = import_session(store, renamed).await;
    let next = store.take_effect(&copied.unwrap().id, &owner("a")).await;
    assert_eq!(next, Ok(NextEffect::Empty));
}
