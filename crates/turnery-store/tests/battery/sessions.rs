//! Making, changing and removing sessions.

use crate::{World, battery, samples::*};
use std::path::PathBuf;
use turnery_store::{SessionInfo, SessionPatch, StoreError};

battery!(
    a_session_is_found_as_it_was_made,
    an_id_is_given_once,
    an_unknown_session_is_named,
    a_patch_changes_what_it_names,
    deleting_takes_all_and_twice_is_fine,
);

async fn a_session_is_found_as_it_was_made(world: &World) {
    let made = world.store.create(new_session("s1")).await;
    let expected = SessionInfo {
        id: "s1".into(),
        cwd: PathBuf::from("/home/ann/project"),
        roots: vec![PathBuf::from("/home/ann/library")],
        title: None,
        model: "offline/echo".into(),
        mode: "ask".into(),
        created_at: at(0),
        updated_at: at(0),
        head_version: 0,
        tip_loop_id: None,
    };
    assert_eq!(made, Ok(expected.clone()));
    assert_eq!(world.store.info(&"s1".into()).await, Ok(expected));
}

async fn an_id_is_given_once(world: &World) {
    world.store.create(new_session("s1")).await.unwrap();
    let again = world.store.create(new_session("s1")).await;
    assert_eq!(again, Err(StoreError::Exists("s1".into())));
}

async fn an_unknown_session_is_named(world: &World) {
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

async fn a_patch_changes_what_it_names(world: &World) {
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
        ..SessionPatch::default()
    };
    let expected = SessionInfo {
        title: None,
        model: "offline/other".into(),
        roots: vec!["/srv".into()],
        updated_at: at(77),
        ..expected
    };
    assert_eq!(store.patch(&id, patch).await, Ok(expected));
}

/// DEL-1, DEL-2.
async fn deleting_takes_all_and_twice_is_fine(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let lane = store.claim(&id, &owner("a")).await.unwrap().lane;
    let record = record("s1", 1, "Hello").into();
    store.commit(commit(&lane, 0, &record)).await.unwrap();
    store.append(&lane, &loop_id("s1", 2), events("s1", 2, "More"));

    assert_eq!(store.delete(&id).await, Ok(true));
    assert_eq!(store.delete(&id).await, Ok(false));
    let missing = StoreError::NotFound(id.clone());
    assert_eq!(
        store.commit(commit(&lane, 1, &record)).await,
        Err(missing.clone())
    );
    assert_eq!(store.release(&lane).await, Ok(()));

    // A new session of that id has nothing of the old one.
    store.create(new_session("s1")).await.unwrap();
    let opened = store.claim(&id, &owner("b")).await.unwrap();
    assert_eq!(opened.info.head_version, 0);
    assert_eq!(store.loops(&id, 0).await, Ok(Vec::new()));
}
