//! What a session was set to and what its person said for good is there again when it is opened again.

use crate::world::{Act, ROOM, Seen, World, drain, say};
use std::sync::Arc;
use turnery_agent::{Answer, Ports};
use turnery_engine::{Content, EventKind, LlmMessage, Message};
use turnery_models::Thinking;
use turnery_store::{Always, MemoryStore, Remark, SessionPatch, SqliteStore, Store, export};

fn chose(id: &str) -> Answer {
    Answer::Chose(id.to_owned())
}

fn asked(world: &World) -> usize {
    world.person.asked.lock().unwrap().len()
}

/// PERM-6: yes and no alike, by load and by resume.
// proves: PERM-6, RES-2, THEME-6
#[tokio::test(start_paused = true)]
async fn always_holds_when_the_session_is_opened_again() {
    for (answer, rings) in [("allow_always", 3), ("reject_always", 0)] {
        let world = World::new(&[
            &[Act::Call("a", "ring")],
            &[Act::Say("one")],
            &[Act::Call("b", "ring")],
            &[Act::Say("two")],
            &[Act::Call("c", "ring")],
            &[Act::Say("three")],
        ])
        .answering(&[chose(answer)]);
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "ring").result().await.unwrap();
        session.close().await;
        for replay in [true, false] {
            let (session, _seen) = world.open(session.id(), replay).await;
            say(&session, "ring").result().await.unwrap();
            session.close().await;
        }
        assert_eq!(asked(&world), 1, "{answer}");
        assert_eq!(world.ran.lock().unwrap().len(), rings, "{answer}");
    }
}

/// PERM-6: it was said in one session, and of one sort of call. A copy is another session.
// proves: PERM-6
#[tokio::test(start_paused = true)]
async fn always_holds_nowhere_else() {
    let world = World::new(&[
        &[Act::Call("a", "ring")],
        &[Act::Say("one")],
        &[Act::Call("b", "ring")],
        &[Act::Say("two")],
        &[Act::Call("c", "ring")],
        &[Act::Say("three")],
        &[Act::Call("d", "ring")],
        &[Act::Say("four")],
    ])
    .answering(&[
        chose("allow_always"),
        chose("reject_once"),
        chose("reject_once"),
        chose("allow_once"),
    ]);
    let (first, _seen) = world.session(ROOM).await;
    say(&first, "ring").result().await.unwrap();
    let (second, _seen) = world.session(ROOM).await;
    say(&second, "ring").result().await.unwrap();
    assert_eq!(asked(&world), 2);
    let (ports, _seen) = world.ports(ROOM);
    let copied = world.agent.fork(first.id(), world.request(), |_| ports);
    let copy = copied.await.unwrap();
    say(&copy, "ring").result().await.unwrap();
    assert_eq!(asked(&world), 3);
    // What cannot be read as a rule allows nothing.
    let patch = SessionPatch {
        always: Some(Always::Allow("ring(".to_owned())),
        ..SessionPatch::default()
    };
    world.store.patch(second.id(), patch).await.unwrap();
    let (second, _seen) = world.open(second.id(), false).await;
    say(&second, "ring").result().await.unwrap();
    assert_eq!(asked(&world), 4);
    assert_eq!(world.ran.lock().unwrap().len(), 2);
}

/// CFG-7, LOOP-42.
// proves: CFG-7, RES-2
#[tokio::test(start_paused = true)]
async fn how_much_it_thinks_is_kept() {
    let world = World::new(&[]);
    let (session, _seen) = world.session(ROOM).await;
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
        .fork(session.id(), world.request(), |_| Ports::silent());
    assert_eq!(copied.await.unwrap().options().thinking, Thinking::High);
    // Others think as they are configured to; a word that nobody knows is no level.
    let (other, _seen) = world.session(ROOM).await;
    assert_eq!(other.options().thinking, Thinking::Default);
    let patch = SessionPatch {
        thinking: Some("madly".to_owned()),
        ..SessionPatch::default()
    };
    world.store.patch(other.id(), patch).await.unwrap();
    let (other, _seen) = world.open(other.id(), false).await;
    assert_eq!(other.options().thinking, Thinking::Default);
}

/// LOAD-1: what was said beside the conversation is shown when it was said, and no model sees it.
// proves: LOAD-1
#[tokio::test(start_paused = true)]
async fn what_was_said_beside_is_shown_in_its_place() {
    let world = World::new(&[&[Act::Say("one")], &[Act::Say("two")], &[Act::Say("three")]]);
    let (session, _seen) = world.session(ROOM).await;
    let beside = |text: &str| Remark {
        at: turnery_store::now(),
        message: LlmMessage {
            message_id: format!("{}.command.{text}", session.id()).into(),
            turn_id: None,
            message: Message::User {
                content: vec![Content::text(text)],
            },
        },
    };
    session.remark(vec![beside("first")]).await.unwrap();
    say(&session, "a").result().await.unwrap();
    session.remark(vec![beside("second")]).await.unwrap();
    say(&session, "b").result().await.unwrap();
    session.remark(vec![beside("third")]).await.unwrap();
    session.close().await;

    let (again, mut seen) = world.open(session.id(), true).await;
    let texts: Vec<String> = drain(&mut seen)
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Replay(event) => match event.kind {
                EventKind::MessageEnd { message } => Some(message.message.text()),
                _ => None,
            },
            Seen::Live(_) | Seen::Info(_) => None,
        })
        .collect();
    let expected = ["first", "a", "one", "second", "b", "two", "third"];
    assert_eq!(texts, expected);
    say(&again, "c").result().await.unwrap();
    assert_eq!(world.puppet.request(2), ["a", "one", "b", "two", "c"]);
}

/// What was stored before there were events is shown too: what was said, and each call in its final state.
// proves: LOAD-1, LOAD-7, LOOP-83
// A paused clock would run on while the disk is waited for.
#[tokio::test]
async fn what_is_older_than_events_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    shows_what_is_older(Arc::new(MemoryStore::new())).await;
    let file = folder.path().join("sessions.db");
    shows_what_is_older(Arc::new(SqliteStore::open(file))).await;
}

async fn shows_what_is_older(store: Arc<dyn Store>) {
    let script: [&[Act]; 4] = [
        &[Act::Say("one"), Act::Call("c", "look")],
        &[Act::Say("two")],
        &[Act::Say("three")],
        &[Act::Say("four")],
    ];
    let world = World::over(store, &script);
    let (session, _seen) = world.session(ROOM).await;
    for text in ["a", "b", "c"] {
        say(&session, text).result().await.unwrap();
    }
    session.close().await;
    let id = session.id();
    let document = export::export(&*world.store, id).await.unwrap();
    let mut old = serde_json::to_value(&document).unwrap();
    for at in [0, 2] {
        let fields = old["loops"][at].as_object_mut().unwrap();
        fields.remove("events");
        fields.remove("turns");
    }
    world.store.delete(id).await.unwrap();
    let old = export::Document::parse(&old.to_string()).unwrap();
    export::import(&*world.store, old).await.unwrap();

    let (_again, mut seen) = world.open(id, true).await;
    let shown: Vec<String> = drain(&mut seen)
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Replay(event) => match event.kind {
                EventKind::MessageEnd { message } => Some(message.message.text()),
                EventKind::ToolCallRequested { call, .. } => {
                    Some(format!("{} asked", call.call_id))
                }
                EventKind::ToolExecutionEnd {
                    call_id, envelope, ..
                } => Some(match envelope.result {
                    Ok(_) => format!("{call_id} done"),
                    Err(failure) => format!("{call_id} failed: {failure}"),
                }),
                _ => None,
            },
            Seen::Live(_) | Seen::Info(_) => None,
        })
        .collect();
    let expected = [
        "a", "one", "c asked", "done", "c done", "two", "b", "three", "c", "four",
    ];
    assert_eq!(shown, expected);
}
