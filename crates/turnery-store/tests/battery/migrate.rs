//! Tests the copying of sessions between stores.

use crate::{World, samples::*};
use std::sync::Arc;
use turnery_engine::{LoopRecord, SessionId};
use turnery_store::{
    NewSession, RememberedApproval, SessionPatch, SpawnRef, Store, StoreError, TranscriptNote,
    migrate::{CopyError, CopyOutcome, copy_session, sessions_to_copy},
};

async fn store_loop(store: &dyn Store, id: &str, record: LoopRecord) {
    let claimed = store.claim(&id.into(), &owner("a")).await.unwrap();
    let record = Arc::new(record);
    let mut commit = commit_of(&claimed.lane, claimed.info.head_version, &record);
    commit.release = true;
    store.commit(commit).await.unwrap();
}

fn note(text: &str) -> TranscriptNote {
    TranscriptNote {
        at: at(5),
        message: (*message(&loop_id("s1", 1), "note", user(text))).clone(),
    }
}

/// Fills a store with a session that has everything, and a child session.
async fn fill(store: &dyn Store) {
    let new = NewSession {
        folder: Some("/real/project".into()),
        ..new_session("s1")
    };
    store.create(new).await.unwrap();
    for number in 1..=3 {
        store_loop(store, "s1", record("s1", number, "question")).await;
    }
    store
        .add_notes(&"s1".into(), vec![note("one")])
        .await
        .unwrap();
    let patch = SessionPatch {
        title: Some(Some("A title".to_owned())),
        mode: Some("edit".to_owned()),
        thinking: Some("high".to_owned()),
        protocol: Some("code".to_owned()),
        archived: Some(true),
        always: Some(RememberedApproval::Allow("shell(ls)".to_owned())),
        ..SessionPatch::default()
    };
    store.patch(&"s1".into(), patch).await.unwrap();
    let reject = SessionPatch {
        always: Some(RememberedApproval::Reject("fetch".to_owned())),
        ..SessionPatch::default()
    };
    store.patch(&"s1".into(), reject).await.unwrap();
    let child = NewSession {
        spawned_by: Some(SpawnRef {
            session_id: "s1".into(),
            loop_id: loop_id("s1", 1),
            call_id: "c".into(),
        }),
        ..new_session("s2")
    };
    store.create(child).await.unwrap();
}

/// Returns a session without its version, which starts again in a copy.
async fn whole(store: &dyn Store, id: &str) -> impl PartialEq + std::fmt::Debug + use<> {
    let id = SessionId::from(id);
    let mut info = store.info(&id).await.unwrap();
    info.head_version = 0;
    let (loops, notes) = (
        store.loops(&id, 0).await.unwrap(),
        store.notes(&id).await.unwrap(),
    );
    (info, loops, notes)
}

#[tokio::test]
async fn copies_between_stores_are_whole() {
    for (from, to) in [
        (World::memory(), World::sqlite()),
        (World::sqlite(), World::memory()),
        (World::sqlite(), World::sqlite()),
    ] {
        let (from, to) = (&*from.store, &*to.store);
        fill(from).await;
        let mut ids = sessions_to_copy(from).await.unwrap();
        ids.sort();
        assert_eq!(ids, ["s1".into(), "s2".into()]);
        for expected in [CopyOutcome::Copied, CopyOutcome::Present] {
            assert_eq!(copy_session(from, to, &"s1".into()).await, Ok(expected));
        }
        assert_eq!(
            copy_session(from, to, &"s2".into()).await,
            Ok(CopyOutcome::Copied)
        );
        for id in ["s1", "s2"] {
            assert_eq!(whole(from, id).await, whole(to, id).await);
        }
        // Nobody holds a lane afterwards.
        for store in [from, to] {
            store.claim(&"s1".into(), &owner("b")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn interrupted_copy_is_completed() {
    let (from, to) = (World::sqlite(), World::sqlite());
    let (from, to) = (&*from.store, &*to.store);
    fill(from).await;
    to.create(new_session("s1")).await.unwrap();
    store_loop(to, "s1", record("s1", 1, "question")).await;
    // The folder of the copy was resolved elsewhere.
    let copied = copy_session(from, to, &"s1".into()).await;
    assert!(
        matches!(
            copied,
            Err(CopyError::Differs {
                what: "settings",
                ..
            })
        ),
        "{copied:?}"
    );
    to.delete(&"s1".into()).await.unwrap();
    let new = NewSession {
        folder: Some("/real/project".into()),
        ..new_session("s1")
    };
    to.create(new).await.unwrap();
    store_loop(to, "s1", record("s1", 1, "question")).await;
    assert_eq!(
        copy_session(from, to, &"s1".into()).await,
        Ok(CopyOutcome::Copied)
    );
    assert_eq!(whole(from, "s1").await, whole(to, "s1").await);
    // The source goes on.
    store_loop(from, "s1", record("s1", 4, "more")).await;
    from.add_notes(&"s1".into(), vec![note("two")])
        .await
        .unwrap();
    assert_eq!(
        copy_session(from, to, &"s1".into()).await,
        Ok(CopyOutcome::Copied)
    );
    assert_eq!(whole(from, "s1").await, whole(to, "s1").await);
}

#[tokio::test]
async fn copy_that_has_gone_on_is_kept() {
    let (from, to) = (World::sqlite(), World::sqlite());
    let (from, to) = (&*from.store, &*to.store);
    fill(from).await;
    copy_session(from, to, &"s1".into()).await.unwrap();
    store_loop(to, "s1", record("s1", 4, "more")).await;
    let before = whole(to, "s1").await;
    assert_eq!(
        copy_session(from, to, &"s1".into()).await,
        Err(CopyError::Diverged("s1".into()))
    );
    assert_eq!(whole(to, "s1").await, before);
}

#[tokio::test]
async fn session_in_use_is_not_copied() {
    let (from, to) = (World::sqlite(), World::sqlite());
    fill(&*from.store).await;
    let held = from.claim("holder").await.unwrap();
    let copied = copy_session(&*from.store, &*to.store, &"s1".into()).await;
    assert!(
        matches!(copied, Err(CopyError::Store(StoreError::Busy { .. }))),
        "{copied:?}"
    );
    let absent = to.store.info(&"s1".into()).await;
    assert_eq!(absent, Err(StoreError::NotFound("s1".into())));
    from.store.release(&held.lane).await.unwrap();
    copy_session(&*from.store, &*to.store, &"s1".into())
        .await
        .unwrap();
}

/// An effect that two stores have would be delivered twice.
#[tokio::test]
async fn undelivered_effect_keeps_a_session() {
    let (from, to) = (World::sqlite(), World::sqlite());
    let store = &*from.store;
    store.create(new_session("s1")).await.unwrap();
    let claimed = from.claim("a").await.unwrap();
    let record = Arc::new(record("s1", 1, "question"));
    let mut commit = commit_of(&claimed.lane, 0, &record);
    commit.release = true;
    commit.effects.push(turnery_store::PendingEffect {
        session_id: "s1".into(),
        key: "k".to_owned(),
        tool_name: "notify".to_owned(),
        effect: serde_json::json!({"kind": "emit"}),
    });
    store.commit(commit).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            copy_session(store, &*to.store, &"s1".into()).await,
            Err(CopyError::Undelivered("s1".into()))
        );
    }
    // It is free to be delivered.
    let taken = store.take_effect(&"s1".into(), &owner("b")).await.unwrap();
    let turnery_store::NextEffect::Taken(taken) = taken else {
        panic!("{taken:?}");
    };
    store.finish_effect(&taken).await.unwrap();
    copy_session(store, &*to.store, &"s1".into()).await.unwrap();
}
