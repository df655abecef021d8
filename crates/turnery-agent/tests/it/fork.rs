//! Tests of forking a session: the same history under new ids, or nothing at all.

use crate::fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, run_text};
use std::sync::Arc;
use turnery_agent::{ClientPorts, OpenError, OpenRequest};
use turnery_engine::SessionId;
use turnery_store::ListQuery;

fn silent_ports(_: &SessionId) -> ClientPorts {
    ClientPorts::silent()
}

/// The oracle does not check records: the copy is the source's text with the session id replaced. Calls and
/// messages keep their ids, which are unique within a session only.
// proves: LOOP-10, LOOP-13, LOOP-64, I9
#[tokio::test(start_paused = true)]
async fn fork_is_a_copy_under_other_ids() {
    let world = EmbeddingFixture::new(&[
        &[
            ModelAct::Say("one"),
            ModelAct::Call("l", "look"),
            ModelAct::Spend(10, 5),
        ],
        &[ModelAct::Say("two")],
        &[ModelAct::Refuse],
        &[ModelAct::Say("three")],
        &[ModelAct::Say("four"), ModelAct::Spend(2, 1)],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    for text in ["look", "refuse this", "go on"] {
        run_text(&session, text).await;
    }
    drain(&mut seen);
    let copy = world
        .agent
        .fork(session.id(), world.request(), silent_ports)
        .await
        .unwrap();
    assert_ne!(copy.id(), session.id());

    let source = world.loops(session.id()).await;
    let copied = world.loops(copy.id()).await;
    assert_eq!(source.len(), 3);
    let source_text = serde_json::to_string(&source).unwrap();
    let mut told_apart = copied.clone();
    for (record, source) in told_apart.iter_mut().zip(&source) {
        let record = Arc::make_mut(record);
        assert_eq!(record.copied_from.take().as_ref(), Some(&source.loop_id));
    }
    let copied_text = serde_json::to_string(&told_apart).unwrap();
    // No id of the source is left: messages and turns have names of their own too.
    assert!(!copied_text.contains(session.id().as_str()));
    for record in &copied {
        assert_eq!(record.loop_id.session_id(), *copy.id());
        for event in &record.events {
            assert_eq!(
                (&event.session_id, &event.loop_id),
                (copy.id(), &record.loop_id)
            );
        }
    }
    assert_eq!(
        copied_text.replace(copy.id().as_str(), session.id().as_str()),
        source_text
    );
    let before = world.store.info(session.id()).await.unwrap();
    let after = world.store.info(copy.id()).await.unwrap();
    assert_eq!(after.title, before.title);
    let tip = after.tip_loop_id.unwrap().to_string();
    let expected = before.tip_loop_id.unwrap().to_string();
    assert_eq!(
        tip.replace(copy.id().as_str(), session.id().as_str()),
        expected
    );

    // Copied usage counts in the source.
    let spent = async |session: &turnery_agent::Session| {
        let report = session.usage_report().await.unwrap();
        report.total().total()
    };
    assert_eq!(spent(&session).await, 15);
    assert_eq!(spent(&copy).await, 0);

    // The next prompt follows what was copied; the refused one is not in it.
    run_text(&copy, "and then").await;
    assert_eq!(
        world.model.request(4),
        ["look", "one", "done", "two", "go on", "three", "and then"]
    );
    assert_eq!(world.loops(session.id()).await.len(), 3);
    let copied = world.loops(copy.id()).await;
    assert_eq!(copied.len(), 4);
    assert_eq!(copied[3].copied_from, None);
    assert_eq!(spent(&copy).await, 3);
    assert_eq!(spent(&session).await, 15);
}

// proves: LOOP-12
#[tokio::test(start_paused = true)]
async fn empty_session_can_be_forked() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("one")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let copy = world
        .agent
        .fork(session.id(), world.request(), silent_ports)
        .await
        .unwrap();
    run_text(&copy, "hi").await;
    let loops = world.loops(copy.id()).await;
    assert_eq!(loops.len(), 1);
    assert_eq!(loops[0].session_id, *copy.id());
}

#[tokio::test(start_paused = true)]
async fn failed_fork_leaves_nothing_behind() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("one")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    let elsewhere = OpenRequest::folder(std::env::temp_dir());
    let refused = world
        .agent
        .fork(session.id(), elsewhere, silent_ports)
        .await;
    match refused.err() {
        Some(OpenError::OtherFolder { session: named, .. }) => assert_eq!(named, *session.id()),
        other => panic!("{other:?}"),
    }
    let all = world.store.list(ListQuery::default()).await.unwrap();
    assert_eq!(all.sessions.len(), 1);
}
