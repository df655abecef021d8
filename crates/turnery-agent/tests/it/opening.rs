//! Opening a session again: replay or none, the same history, and two handles that keep apart.

use crate::world::{Act, ROOM, Seen, World, drain, live, say};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::{OpenError, OpenRequest, PromptError};
use turnery_engine::{EventKind, SessionId};
use turnery_store::SessionPatch;
use turnery_tools::Mode;

// proves: LOOP-82, ACP-57
#[tokio::test(start_paused = true)]
async fn load_shows_the_whole_conversation_and_resume_shows_nothing() {
    let world = World::new(&[
        &[Act::Say("one"), Act::Call("l", "look")],
        &[Act::Say("two")],
        &[Act::Say("three")],
    ]);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "look").result().await.unwrap();
    let lived: Vec<_> = live(&drain(&mut seen))
        .into_iter()
        .filter(|event| {
            matches!(
                event.kind,
                EventKind::LoopStart { .. }
                    | EventKind::MessageEnd { .. }
                    | EventKind::ToolCallRequested { .. }
                    | EventKind::ToolExecutionEnd { .. }
                    | EventKind::UsageReported { .. }
                    | EventKind::LoopEnd { .. }
            )
        })
        .collect();
    session.close().await;

    let (_again, mut seen) = world.open(session.id(), false).await;
    assert!(drain(&mut seen).is_empty());

    let (again, mut seen) = world.open(session.id(), true).await;
    let replayed: Vec<_> = drain(&mut seen)
        .into_iter()
        .map(|seen| match seen {
            Seen::Replay(event) => event,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        replayed, lived,
        "replay shows what was shown, but for what passes"
    );

    say(&again, "go on").result().await.unwrap();
    assert_eq!(
        world.puppet.request(2),
        ["look", "one", "done", "two", "go on"]
    );
}

// proves: LASH-33, C-29
#[tokio::test(start_paused = true)]
pub(crate) async fn a_second_handle_is_told_that_the_session_is_busy_and_then_catches_up() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Wait(signal.clone()), Act::Say("first")],
        &[Act::Say("second")],
    ]);
    let (one, mut seen) = world.session(ROOM).await;
    let (two, _seen) = world.open(one.id(), false).await;
    let running = say(&one, "a");
    seen.recv().await.unwrap();
    let busy = say(&two, "b").result().await;
    assert!(matches!(busy, Err(PromptError::Busy { .. })), "{busy:?}");
    signal.notify_one();
    running.result().await.unwrap();
    say(&two, "c").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["a", "first", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_in_its_own_folder() {
    let world = World::new(&[]);
    let (session, _seen) = world.session(ROOM).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let request = OpenRequest {
        cwd: elsewhere.path().canonicalize().unwrap(),
        roots: Vec::new(),
        mcp: Vec::new(),
        instructions: None,
    };
    let refused = world
        .agent
        .open(session.id(), request, false, |_| unreachable_ports())
        .await;
    assert!(matches!(refused.err(), Some(OpenError::OtherFolder { .. })));
}

/// A newer version may know modes that this one does not.
#[tokio::test(start_paused = true)]
async fn a_session_in_an_unknown_mode_is_opened_in_one_that_asks() {
    let cases = [
        (Mode::Auto, Mode::Ask),
        (Mode::Edit, Mode::Ask),
        (Mode::Ask, Mode::Ask),
        (Mode::Plan, Mode::Plan),
    ];
    for (configured, opened) in cases {
        let world = World::set(&[], |settings| settings.mode = configured);
        let (session, _seen) = world.session(ROOM).await;
        let patch = SessionPatch {
            mode: Some("turbo".to_owned()),
            ..SessionPatch::default()
        };
        world.store.patch(session.id(), patch).await.unwrap();
        let (again, _seen) = world.open(session.id(), false).await;
        assert_eq!(again.options().mode, opened, "{configured}");
        // For the version that knows it.
        let info = world.store.info(session.id()).await.unwrap();
        assert_eq!(info.mode, "turbo");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_there_says_so() {
    let world = World::new(&[]);
    let id = SessionId::from("nobody");
    let refused = world
        .agent
        .open(&id, world.request(), false, |_| unreachable_ports())
        .await;
    let text = refused.err().unwrap().to_string();
    assert_eq!(
        text,
        "there is no session nobody; list the sessions to see which there are"
    );
}

#[tokio::test(start_paused = true)]
async fn a_relative_or_missing_folder_is_refused() {
    let world = World::new(&[]);
    for cwd in ["relative", "/nowhere/at/all"] {
        let request = OpenRequest {
            cwd: cwd.into(),
            roots: Vec::new(),
            mcp: Vec::new(),
            instructions: None,
        };
        let refused = world.agent.create(request, |_| unreachable_ports()).await;
        assert!(matches!(refused.err(), Some(OpenError::Path(_))), "{cwd}");
    }
}

fn unreachable_ports() -> turnery_agent::Ports {
    turnery_agent::Ports::local(
        Arc::new(turnery_agent::Silent),
        Box::new(turnery_agent::Silent),
    )
}
