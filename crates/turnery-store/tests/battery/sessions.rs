//! Tests creating, changing and deleting sessions.

use crate::{World, battery, samples::*};
use std::{path::PathBuf, sync::Arc};
use turnery_store::{
    ListQuery, NewSession, Owner, SessionInfo, SessionPatch, SpawnRef, StoreError,
};

battery!(
    created_session_is_read_back,
    duplicate_id_is_refused,
    unknown_session_is_named_in_the_error,
    patch_changes_only_named_fields,
    delete_removes_everything_and_is_idempotent,
    child_session_has_its_parent_and_is_not_listed,
    delete_removes_child_sessions,
    delete_ends_in_a_cycle_of_parents,
    delete_in_use_is_refused,
    expired_lane_does_not_block_delete,
);

/// A session created by a call in the first loop of `parent`.
fn child_session(id: &str, parent: &str) -> NewSession {
    NewSession {
        spawned_by: Some(SpawnRef {
            session_id: parent.into(),
            loop_id: loop_id(parent, 1),
            call_id: "c1".into(),
        }),
        ..new_session(id)
    }
}

/// These fields and no others: a session has no temperature.
// proves: LOOP-44
async fn created_session_is_read_back(world: &World) {
    let made = world.store.create(new_session("s1")).await;
    let expected = SessionInfo {
        id: "s1".into(),
        cwd: PathBuf::from("/home/ann/project"),
        folder: PathBuf::from("/home/ann/project"),
        roots: vec![PathBuf::from("/home/ann/library")],
        title: None,
        model: "offline/echo".into(),
        mode: "ask".into(),
        created_at: at(0),
        updated_at: at(0),
        head_version: 0,
        tip_loop_id: None,
        spawned_by: None,
        thinking: None,
        protocol: None,
        always: Vec::new(),
        archived: false,
    };
    assert_eq!(made, Ok(expected.clone()));
    assert_eq!(world.info().await, Ok(expected));
}

async fn duplicate_id_is_refused(world: &World) {
    world.store.create(new_session("s1")).await.unwrap();
    let again = world.store.create(new_session("s1")).await;
    assert_eq!(again, Err(StoreError::Exists("s1".into())));
}

async fn unknown_session_is_named_in_the_error(world: &World) {
    let store = &world.store;
    let missing = StoreError::NotFound("s9".into());
    let id = "s9".into();
    assert_eq!(store.info(&id).await, Err(missing.clone()));
    assert_eq!(store.loops(&id, 0).await, Err(missing.clone()));
    assert_eq!(
        store.claim(&id, &owner("a")).await.unwrap_err(),
        missing.clone()
    );
    let patch = SessionPatch::default();
    assert_eq!(store.patch(&id, patch).await, Err(missing));
}

async fn patch_changes_only_named_fields(world: &World) {
    let store = &world.store;
    let before = store.create(new_session("s1")).await.unwrap();
    let id = "s1".into();
    let patch = SessionPatch {
        title: Some(Some("Fix the build".into())),
        mode: Some("plan".into()),
        ..SessionPatch::default()
    };
    let after = store.patch(&id, patch).await.unwrap();
    let expected = SessionInfo {
        title: Some("Fix the build".into()),
        mode: "plan".into(),
        ..before
    };
    assert_eq!(after, expected);
    assert_eq!(store.info(&id).await, Ok(expected.clone()));

    let patch = SessionPatch {
        title: Some(None),
        model: Some("offline/other".into()),
        roots: Some(vec!["/srv".into()]),
        updated_at: Some(at(77)),
        thinking: Some("high".into()),
        protocol: Some("code".into()),
        ..SessionPatch::default()
    };
    let expected = SessionInfo {
        title: None,
        model: "offline/other".into(),
        roots: vec!["/srv".into()],
        updated_at: at(77),
        thinking: Some("high".into()),
        protocol: Some("code".into()),
        ..expected
    };
    assert_eq!(store.patch(&id, patch).await, Ok(expected.clone()));
    assert_eq!(store.info(&id).await, Ok(expected));
}

/// DEL-1, DEL-2.
async fn delete_removes_everything_and_is_idempotent(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    let record = Arc::new(record("s1", 1, "Hello"));
    store.commit(commit_of(&lane, 0, &record)).await.unwrap();
    store.append(&lane, &loop_id("s1", 2), events("s1", 2, "More"));

    let holder = "another client of this process".to_owned();
    let busy = StoreError::Busy {
        session: id.clone(),
        holder: holder.clone(),
    };
    assert_eq!(store.delete(&id).await, Err(busy));
    assert_eq!(store.loops(&id, 0).await, Ok(vec![Arc::clone(&record)]));
    assert_eq!(store.delete_in_use(&id).await, Ok(Some(vec![holder])));
    assert_eq!(store.delete_in_use(&id).await, Ok(None));
    assert_eq!(store.delete(&id).await, Ok(false));
    let missing = StoreError::NotFound(id.clone());
    assert_eq!(
        store.commit(commit_of(&lane, 1, &record)).await,
        Err(missing.clone())
    );
    assert_eq!(store.release(&lane).await, Ok(()));

    // A new session with that id has nothing of the old one.
    store.create(new_session("s1")).await.unwrap();
    let opened = store.claim(&id, &owner("b")).await.unwrap();
    assert_eq!(opened.info.head_version, 0);
    assert_eq!(store.loops(&id, 0).await, Ok(Vec::new()));
}

/// S7: the child exists before its parent's loop is stored, and is found by its id.
// proves: LOOP-88
pub(crate) async fn child_session_has_its_parent_and_is_not_listed(world: &World) {
    let store = &world.store;
    store.create(new_session("s1")).await.unwrap();
    let made = store.create(child_session("s2", "s1")).await.unwrap();
    let spawned_by = Some(SpawnRef {
        session_id: "s1".into(),
        loop_id: "s1.cfg.1".into(),
        call_id: "c1".into(),
    });
    assert_eq!(made.spawned_by, spawned_by);
    assert_eq!(store.info(&"s2".into()).await.unwrap(), made);
    let lane = store.claim(&"s2".into(), &owner("a")).await.unwrap();
    assert_eq!(lane.info.spawned_by, spawned_by);

    let ids = async |query| {
        let page = store.list(query).await.unwrap();
        let ids = page.sessions.iter().map(|info| info.id.to_string());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(ListQuery::default()).await, ["s1"]);
    let all = ListQuery {
        spawned: true,
        ..ListQuery::default()
    };
    assert_eq!(ids(all).await, ["s2", "s1"]);
}

pub(crate) async fn delete_removes_child_sessions(world: &World) {
    let store = &world.store;
    for (id, parent) in [("s2", "s1"), ("s3", "s2"), ("s4", "s1"), ("s5", "s9")] {
        store.create(child_session(id, parent)).await.unwrap();
    }
    store.create(new_session("s1")).await.unwrap();
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    for id in ["s1", "s2", "s3", "s4"] {
        let missing = Err(StoreError::NotFound(id.into()));
        assert_eq!(store.info(&id.into()).await, missing);
    }
    // A session whose parent is missing stays, and can be opened directly.
    assert!(store.info(&"s5".into()).await.is_ok());
    assert_eq!(store.delete(&"s5".into()).await, Ok(true));
}

/// turnery never creates a cycle, but an imported document may contain one.
async fn delete_ends_in_a_cycle_of_parents(world: &World) {
    let store = &world.store;
    store.create(child_session("s1", "s2")).await.unwrap();
    store.create(child_session("s2", "s1")).await.unwrap();
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    assert_eq!(store.delete(&"s2".into()).await, Ok(false));
}

/// A session is in use while it or a descendant is held; a child that is not held can be deleted.
async fn delete_in_use_is_refused(world: &World) {
    let store = &world.store;
    store.create(new_session("s1")).await.unwrap();
    for (id, parent) in [("s2", "s1"), ("s3", "s2"), ("s4", "s1")] {
        store.create(child_session(id, parent)).await.unwrap();
    }
    let lane = store.claim(&"s3".into(), &owner("a")).await.unwrap().lane;
    let busy = StoreError::Busy {
        session: "s3".into(),
        holder: "another client of this process".to_owned(),
    };
    for id in ["s1", "s2", "s3"] {
        assert_eq!(store.delete(&id.into()).await, Err(busy.clone()), "{id}");
    }
    assert_eq!(store.delete(&"s4".into()).await, Ok(true));
    assert!(store.info(&"s1".into()).await.is_ok());
    store.release(&lane).await.unwrap();
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    for id in ["s1", "s2", "s3"] {
        let missing = Err(StoreError::NotFound(id.into()));
        assert_eq!(store.info(&id.into()).await, missing);
    }
}

/// A holder whose process is gone, or whose lease expired, blocks nothing.
async fn expired_lane_does_not_block_delete(world: &World) {
    let store = &world.store;
    for (id, process) in [("s1", "pid=4194305"), ("s2", "elsewhere")] {
        store.create(new_session(id)).await.unwrap();
        let owner = Owner {
            id: "a".into(),
            process: process.into(),
        };
        store.claim(&id.into(), &owner).await.unwrap();
    }
    let busy = StoreError::Busy {
        session: "s2".into(),
        holder: "another process".to_owned(),
    };
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    assert_eq!(store.delete(&"s2".into()).await, Err(busy));
    // The holder may be on another machine, whose clock may be a minute late.
    world.advance_clock(31 + 60);
    assert_eq!(store.delete(&"s2".into()).await, Ok(true));
}
