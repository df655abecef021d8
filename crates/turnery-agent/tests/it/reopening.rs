//! Tests that options and remembered approvals are restored when a session is opened again.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, choose, drain_replayed, run_text,
};
use std::sync::Arc;
use turnery_agent::ClientPorts;
use turnery_engine::{EventKind, LlmMessage, Message};
use turnery_models::Thinking;
use turnery_store::{
    MemoryStore, RememberedApproval, SessionPatch, SqliteStore, Store, TranscriptNote, export,
};

fn permission_requests(world: &EmbeddingFixture) -> usize {
    world.client.asked.lock().unwrap().len()
}

/// PERM-6: approvals and rejections, by load and by resume.
// proves: PERM-6, RES-2, THEME-6
#[tokio::test(start_paused = true)]
async fn remembered_approval_survives_reopening() {
    for (answer, rings) in [("allow_always", 3), ("reject_always", 0)] {
        let world = EmbeddingFixture::new(&[
            &[ModelAct::Call("a", "ring")],
            &[ModelAct::Say("one")],
            &[ModelAct::Call("b", "ring")],
            &[ModelAct::Say("two")],
            &[ModelAct::Call("c", "ring")],
            &[ModelAct::Say("three")],
        ])
        .with_answers(&[choose(answer)]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "ring").await;
        session.close().await;
        for replay in [true, false] {
            let (session, _seen) = world.open(session.id(), replay).await;
            run_text(&session, "ring").await;
            session.close().await;
        }
        assert_eq!(permission_requests(&world), 1, "{answer}");
        assert_eq!(world.ran.lock().unwrap().len(), rings, "{answer}");
    }
}

/// PERM-6: an approval is valid for one session and one kind of call; a copy is another session.
// proves: PERM-6, THEME-6
#[tokio::test(start_paused = true)]
async fn remembered_approval_is_limited_to_its_session() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("a", "ring")],
        &[ModelAct::Say("one")],
        &[ModelAct::Call("b", "ring")],
        &[ModelAct::Say("two")],
        &[ModelAct::Call("c", "ring")],
        &[ModelAct::Say("three")],
        &[ModelAct::Call("d", "ring")],
        &[ModelAct::Say("four")],
        &[ModelAct::CallWith("e", "ring", r#"{"how": "--softly"}"#)],
        &[ModelAct::Say("five")],
    ])
    .with_answers(&[
        choose("allow_always"),
        choose("reject_once"),
        choose("reject_once"),
        choose("allow_once"),
        choose("reject_once"),
    ]);
    let (first, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&first, "ring").await;
    let (second, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&second, "ring").await;
    assert_eq!(permission_requests(&world), 2);
    let (ports, _seen) = world.ports(LARGE_CAPACITY);
    let copied = world.agent.fork(first.id(), world.request(), |_| ports);
    let copy = copied.await.unwrap();
    run_text(&copy, "ring").await;
    assert_eq!(permission_requests(&world), 3);
    // An unreadable rule allows nothing.
    let patch = SessionPatch {
        always: Some(RememberedApproval::Allow("ring(".to_owned())),
        ..SessionPatch::default()
    };
    world.store.patch(second.id(), patch).await.unwrap();
    let (second, _seen) = world.open(second.id(), false).await;
    run_text(&second, "ring").await;
    assert_eq!(permission_requests(&world), 4);
    // Nor does the approval cover another command.
    run_text(&first, "softly").await;
    assert_eq!(permission_requests(&world), 5);
    assert_eq!(world.ran.lock().unwrap().len(), 2);
}

/// CFG-7, LOOP-42.
// proves: CFG-7, RES-2, LOOP-44
#[tokio::test(start_paused = true)]
async fn thinking_level_survives_reopening() {
    let world = EmbeddingFixture::new(&[]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(session.options().thinking, Thinking::Default);
    session.set_thinking(Thinking::High).await.unwrap();
    session.close().await;
    for replay in [true, false] {
        let (session, _seen) = world.open(session.id(), replay).await;
        assert_eq!(session.options().thinking, Thinking::High);
        session.close().await;
    }
    let copied = world
        .agent
        .fork(session.id(), world.request(), |_| ClientPorts::silent());
    assert_eq!(copied.await.unwrap().options().thinking, Thinking::High);
    // Other sessions use the configured level; an unknown word is no level.
    let (other, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(other.options().thinking, Thinking::Default);
    let patch = SessionPatch {
        thinking: Some("madly".to_owned()),
        ..SessionPatch::default()
    };
    world.store.patch(other.id(), patch).await.unwrap();
    let (other, _seen) = world.open(other.id(), false).await;
    assert_eq!(other.options().thinking, Thinking::Default);
}

/// The temperature is the agent's of today: a session keeps none.
// proves: LOOP-43, LOOP-44
#[tokio::test(start_paused = true)]
async fn reopened_session_has_agents_temperature() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let world = |temperature| {
        let script: &[&[ModelAct]] = &[&[ModelAct::Say("hello")]];
        EmbeddingFixture::build(
            Arc::clone(&store),
            script,
            &[],
            |settings| settings.temperature = Some(temperature),
            |tools| tools,
        )
    };
    let before = world(0.5);
    let (session, _seen) = before.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    session.close().await;
    let after = world(0.75);
    let (ports, _seen) = after.ports(LARGE_CAPACITY);
    let opened = after
        .agent
        .open(session.id(), before.request(), false, |_| ports);
    let session = opened.await.unwrap();
    run_text(&session, "hi").await;
    let recorded = after.loops(session.id()).await;
    let recorded = recorded
        .iter()
        .map(|record| record.config.as_ref()?.temperature);
    assert_eq!(recorded.collect::<Vec<_>>(), [Some(0.5), Some(0.75)]);
    let sent = after.model.requests.lock().unwrap()[0].temperature;
    assert_eq!(sent, Some(0.75));
}

/// LOAD-1: transcript notes are replayed at their times, and never sent to a model.
// proves: LOAD-1
#[tokio::test(start_paused = true)]
async fn transcript_notes_are_replayed_in_place() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one")],
        &[ModelAct::Say("two")],
        &[ModelAct::Say("three")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let beside = |text: &str| TranscriptNote {
        at: turnery_store::now(),
        message: LlmMessage {
            message_id: format!("{}.command.{text}", session.id()).into(),
            turn_id: None,
            message: Message::user(text),
        },
    };
    session.add_notes(vec![beside("first")]).await.unwrap();
    run_text(&session, "a").await;
    session.add_notes(vec![beside("second")]).await.unwrap();
    run_text(&session, "b").await;
    session.add_notes(vec![beside("third")]).await.unwrap();
    session.close().await;

    let (again, mut seen) = world.open(session.id(), true).await;
    let texts: Vec<String> = drain_replayed(&mut seen)
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::MessageEnd { message } => Some(message.message.text()),
            _ => None,
        })
        .collect();
    let expected = ["first", "a", "one", "second", "b", "two", "third"];
    assert_eq!(texts, expected);
    run_text(&again, "c").await;
    assert_eq!(world.model.request(2), ["a", "one", "b", "two", "c"]);
}

/// Loops stored before events existed are replayed too: messages, and each call in its final state.
// proves: LOAD-1, LOAD-7, LOOP-83
// A paused clock would run on while the disk is waited for.
#[tokio::test]
async fn records_without_events_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    check_legacy_replay(Arc::new(MemoryStore::new())).await;
    let file = folder.path().join("sessions.db");
    check_legacy_replay(Arc::new(SqliteStore::open(file))).await;
}

async fn check_legacy_replay(store: Arc<dyn Store>) {
    let script: [&[ModelAct]; 4] = [
        &[ModelAct::Say("one"), ModelAct::Call("c", "look")],
        &[ModelAct::Say("two")],
        &[ModelAct::Say("three")],
        &[ModelAct::Say("four")],
    ];
    let world = EmbeddingFixture::with_store(store, &script);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    for text in ["a", "b", "c"] {
        run_text(&session, text).await;
    }
    session.close().await;
    let id = session.id();
    let document = export::export_session(&*world.store, id).await.unwrap();
    let mut old = serde_json::to_value(&document).unwrap();
    for at in [0, 2] {
        let fields = old["loops"][at].as_object_mut().unwrap();
        fields.remove("events");
        fields.remove("turns");
    }
    world.store.delete(id).await.unwrap();
    let old = export::SessionDocument::parse(&old.to_string()).unwrap();
    export::import_session(&*world.store, old).await.unwrap();

    let (_again, mut seen) = world.open(id, true).await;
    let shown: Vec<String> = drain_replayed(&mut seen)
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::MessageEnd { message } => Some(message.message.text()),
            EventKind::ToolCallRequested { call, .. } => Some(format!("{} asked", call.call_id)),
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } => Some(match envelope.result {
                Ok(_) => format!("{call_id} done"),
                Err(failure) => format!("{call_id} failed: {failure}"),
            }),
            _ => None,
        })
        .collect();
    let expected = [
        "a", "one", "c asked", "done", "c done", "two", "b", "three", "c", "four",
    ];
    assert_eq!(shown, expected);
}
