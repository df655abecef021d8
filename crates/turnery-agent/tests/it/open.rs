//! Tests of opening a session again: with or without replay, the same history, and two independent handles.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, drain, live_events, run_text, start_text,
};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::{ClientPorts, OpenError, OpenRequest, PromptError};
use turnery_engine::{EventKind, SessionId};
use turnery_store::{ListQuery, SessionPatch};
use turnery_tools::Mode;

// proves: LOOP-82, ACP-57
#[tokio::test(start_paused = true)]
async fn load_replays_all_and_resume_nothing() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one"), ModelAct::Call("l", "look")],
        &[ModelAct::Say("two")],
        &[ModelAct::Say("three")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "look").await;
    let lived: Vec<_> = live_events(&drain(&mut seen))
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
            ShownItem::Replay(event) => event,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        replayed, lived,
        "replay shows what was shown, but for what passes"
    );

    run_text(&again, "go on").await;
    assert_eq!(
        world.model.request(2),
        ["look", "one", "done", "two", "go on"]
    );
}

// proves: LASH-33, C-29
#[tokio::test(start_paused = true)]
pub(crate) async fn second_handle_gets_busy_then_catches_up() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Say("first")],
        &[ModelAct::Say("second")],
    ]);
    let (one, mut seen) = world.session(LARGE_CAPACITY).await;
    let (two, _seen) = world.open(one.id(), false).await;
    let running = start_text(&one, "a");
    seen.recv().await.unwrap();
    let busy = start_text(&two, "b").result().await;
    assert!(matches!(busy, Err(PromptError::Busy { .. })), "{busy:?}");
    signal.notify_one();
    running.result().await.unwrap();
    run_text(&two, "c").await;
    assert_eq!(world.model.request(1), ["a", "first", "c"]);
}

#[tokio::test(start_paused = true)]
async fn session_opens_only_in_its_own_folder() {
    let world = EmbeddingFixture::new(&[]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let request = OpenRequest::folder(elsewhere.path().canonicalize().unwrap());
    let refused = world
        .agent
        .open(session.id(), request, false, |_| ClientPorts::silent())
        .await;
    assert!(matches!(refused.err(), Some(OpenError::OtherFolder { .. })));
}

/// A command that may write beside the folder can put a link in its place.
#[tokio::test(start_paused = true)]
async fn link_replacing_folder_is_rejected() {
    let world = EmbeddingFixture::new(&[]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let folder = world.request().cwd;
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    std::fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    let request = || OpenRequest::folder(folder.clone());
    let ports = |_: &SessionId| ClientPorts::silent();
    let id = session.id();
    for replay in [true, false] {
        let refused = world.agent.open(id, request(), replay, ports).await;
        let error = refused.err().unwrap();
        assert!(matches!(error, OpenError::FolderLeadsElsewhere { .. }));
        let message = error.to_string();
        let wanted = format!(
            "session {id} belongs to {0}, but {0} leads to {1} now: put the folder back in its place, or begin a \
             new session",
            folder.display(),
            elsewhere.display()
        );
        assert_eq!(message, wanted);
    }
    let refused = world.agent.fork(id, request(), ports).await;
    match refused.err() {
        Some(OpenError::FolderLeadsElsewhere {
            session,
            expected,
            found,
            ..
        }) => assert_eq!((&session, expected, found), (id, folder, elsewhere)),
        other => panic!("{other:?}"),
    }
    let all = world.store.list(ListQuery::default()).await.unwrap();
    assert_eq!(all.sessions.len(), 1, "the copy is removed");
}

/// The user's own symlink to the folder still opens the session, as does the folder itself.
#[tokio::test(start_paused = true)]
async fn session_opens_by_any_path_to_its_folder() {
    let world = EmbeddingFixture::new(&[]);
    let beside = tempfile::tempdir().unwrap();
    let link = beside.path().canonicalize().unwrap().join("link");
    let folder = world.request().cwd;
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    let ports = |_: &SessionId| ClientPorts::silent();
    let request = || OpenRequest::folder(link.clone());
    let session = world.agent.create(request(), ports).await.unwrap();
    for cwd in [link.clone(), folder] {
        let request = OpenRequest::folder(cwd);
        let opened = world.agent.open(session.id(), request, false, ports).await;
        assert!(opened.is_ok(), "{:?}", opened.err());
    }
}

/// A newer version may know modes that this one does not.
#[tokio::test(start_paused = true)]
async fn unknown_mode_falls_back_to_ask() {
    let cases = [
        (Mode::Auto, Mode::Ask),
        (Mode::Edit, Mode::Ask),
        (Mode::Ask, Mode::Ask),
        (Mode::Plan, Mode::Plan),
    ];
    for (configured, opened) in cases {
        let world = EmbeddingFixture::with_settings(&[], |settings| settings.mode = configured);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
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
async fn missing_session_is_not_found() {
    let world = EmbeddingFixture::new(&[]);
    let id = SessionId::from("nobody");
    let refused = world
        .agent
        .open(&id, world.request(), false, |_| ClientPorts::silent())
        .await;
    let text = refused.err().unwrap().to_string();
    assert_eq!(
        text,
        "there is no session nobody; list the sessions to see which there are"
    );
}

#[tokio::test(start_paused = true)]
async fn relative_or_missing_folder_is_rejected() {
    let world = EmbeddingFixture::new(&[]);
    for cwd in ["relative", "/nowhere/at/all"] {
        let request = OpenRequest::folder(cwd.into());
        let refused = world.agent.create(request, |_| ClientPorts::silent()).await;
        assert!(matches!(refused.err(), Some(OpenError::Path(_))), "{cwd}");
    }
}
