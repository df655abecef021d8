//! Tests of a failing store and of two handles on one session: neither gets a wrong context.

use crate::{
    candidate_folders::{
        assert_no_folders, evaluate, in_mode, read, repository_with_store, writer,
    },
    failing_store::{ALWAYS, FailingStore},
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, drain_replayed, live_events, run_text,
        start, start_text, yield_while,
    },
};
use std::{
    fs,
    sync::{Arc, atomic::Ordering},
};
use turnery_agent::{CancellationToken, PromptError, SelectionStrategy, SetOptionError};
use turnery_engine::{CommitError, Event, EventKind};
use turnery_store::SqliteStore;
use turnery_tools::Mode;

/// LASH-35.
// proves: LASH-35, R4
#[tokio::test(start_paused = true)]
pub(crate) async fn unstored_prompt_is_not_in_next_context() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(
        store.clone(),
        &[&[ModelAct::Say("one")], &[ModelAct::Say("two")]],
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    // A full disk takes no journal either, from which the next claim would learn of the loss.
    store.drop_appends.store(true, Ordering::SeqCst);
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    let lost = start_text(&session, "first").result().await;
    assert!(
        matches!(lost, Err(PromptError::Lost(CommitError::Store(_)))),
        "{lost:?}"
    );
    store.failing_commits.store(0, Ordering::SeqCst);
    let shown = live_events(&drain(&mut seen));
    let second = run_text(&session, "second").await;
    assert_eq!(world.model.request(1), ["second"]);
    // LOOP-10: nor is it confused with what was shown of the lost one.
    assert_ne!(second.loops[0].loop_id, shown[0].loop_id);
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(info.title.as_deref(), Some("second"));
}

/// Another writer's commit makes the prompt an error, not an outcome.
// proves: LASH-34, LASH-35
#[tokio::test(start_paused = true)]
async fn moved_head_is_an_error_of_the_prompt() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(store.clone(), &[&[ModelAct::Say("one")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    store.head_moves.store(true, Ordering::SeqCst);
    let lost = start_text(&session, "first").result().await;
    assert!(
        matches!(lost, Err(PromptError::Lost(CommitError::HeadConflict))),
        "{lost:?}"
    );
    let shown = live_events(&drain(&mut seen));
    let is_end = |event: &Event| matches!(event.kind, EventKind::LoopEnd { .. });
    assert!(!shown.iter().any(is_end), "{shown:?}");
    assert_eq!(world.loops(session.id()).await, []);
}

/// PROMPT-9.
// proves: UP-35
#[tokio::test(start_paused = true)]
pub(crate) async fn refused_prompt_is_not_in_next_context() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("no"), ModelAct::Refuse],
        &[ModelAct::Say("yes")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "something bad").await;
    run_text(&session, "something good").await;
    assert_eq!(world.model.request(1), ["something good"]);
}

#[tokio::test(start_paused = true)]
async fn setting_change_keeps_work_of_other_handle() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("first")], &[ModelAct::Say("second")]]);
    let (one, _seen) = world.session(LARGE_CAPACITY).await;
    let (two, _seen) = world.open(one.id(), false).await;
    run_text(&one, "a").await;
    two.set_mode(Mode::Plan).await.unwrap();
    run_text(&two, "b").await;
    assert_eq!(world.model.request(1), ["a", "first", "b"]);
}

#[tokio::test(start_paused = true)]
async fn failed_refresh_is_retried_at_next_prompt() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(
        store.clone(),
        &[&[ModelAct::Say("first")], &[ModelAct::Say("second")]],
    );
    let (one, _seen) = world.session(LARGE_CAPACITY).await;
    let (two, _seen) = world.open(one.id(), false).await;
    run_text(&one, "a").await;
    store.fail_loops.store(true, Ordering::SeqCst);
    let failed = start_text(&two, "b").result().await;
    assert!(
        matches!(failed, Err(PromptError::Lost(CommitError::Store(_)))),
        "{failed:?}"
    );
    run_text(&two, "c").await;
    assert_eq!(world.model.request(1), ["a", "first", "c"]);
}

/// MODE-1: a rejected change has no effect.
#[tokio::test(start_paused = true)]
async fn unstored_setting_is_not_applied() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_store(
        store.clone(),
        &[&[ModelAct::Call("r", "ring")], &[ModelAct::Say("so be it")]],
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.fail_patch.store(true, Ordering::SeqCst);
    let refused = session.set_mode(Mode::Auto).await;
    assert!(
        matches!(refused, Err(SetOptionError::Store(_))),
        "{refused:?}"
    );
    assert_eq!(session.options().mode, Mode::Ask);
    let cancel = CancellationToken::new();
    let ticket = start(&session, "ring", cancel.clone());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    cancel.cancel();
    ticket.result().await.unwrap();
    assert_eq!(world.client.asked.lock().unwrap().len(), 1);
    assert!(world.ran.lock().unwrap().is_empty());
}

/// A loop that cannot be read is left out and named: to the client at the end of the replay, to the model
/// of that session alone in one message that stays. The transcript's notes are named too.
#[tokio::test]
async fn damaged_session_opens_with_notice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = Arc::new(SqliteStore::open(path.clone()));
    let hello: &[ModelAct] = &[ModelAct::Say("hello")];
    let world = EmbeddingFixture::with_store(store, &[hello; 5]);
    let (first, _seen) = world.session(LARGE_CAPACITY).await;
    let (second, _seen) = world.session(LARGE_CAPACITY).await;
    for session in [&first, &second] {
        run_text(session, "hi").await;
    }
    let id = first.id().clone();
    first.close().await;
    let db = rusqlite::Connection::open(&path).unwrap();
    let write = |word: &str| {
        let change =
            "UPDATE loops SET continuation_kind = ?2 WHERE session_id = ?1 AND version = 1";
        assert_eq!(db.execute(change, [id.as_str(), word]).unwrap(), 1);
    };
    let note = "INSERT INTO remarks (session_id, body) VALUES (?1, '{')";
    db.execute(note, [id.as_str()]).unwrap();
    write("sideways");

    let (opened, mut shown) = world.open(&id, true).await;
    let replayed = drain_replayed(&mut shown).into_iter();
    let kinds: Vec<_> = replayed.map(|event| event.kind).collect();
    let [EventKind::MessageEnd { message }] = &kinds[..] else {
        panic!("{kinds:?}");
    };
    let notice = message.message.text();
    let loop_id = format!("loop {id}.");
    for part in [
        "is damaged",
        &loop_id,
        "sideways",
        "note 1 of",
        "sessions repair",
    ] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    run_text(&opened, "on").await;
    opened.close().await;
    // Without a replay as well.
    let (opened, _seen) = world.open(&id, false).await;
    run_text(&opened, "go on").await;
    opened.close().await;
    let request = world.model.request(3);
    assert!(request[0].contains("history of this session is damaged in 1 place(s)"));
    assert_eq!(request[1..], ["on", "hello", "go on"]);
    assert_eq!(world.model.request(2), request[..2]);

    let other = second.id().clone();
    second.close().await;
    let (again, mut shown) = world.open(&other, true).await;
    let shown = format!("{:?}", drain(&mut shown));
    assert!(!shown.contains("damaged"), "{shown}");
    run_text(&again, "and on").await;
    assert_eq!(world.model.request(4), ["hi", "hello", "and on"]);
    // All that is stored is looked at when the world ends.
    write("initial");
    db.execute("DELETE FROM remarks", ()).unwrap();
}

/// Damage of the journal is named when the session is opened, with a replay and without.
// proves: S5, LOAD-1
#[tokio::test]
async fn damaged_journal_is_reported_on_open() {
    for replay in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let store = Arc::new(SqliteStore::open(path.clone()));
        let script: [&[ModelAct]; 2] = [&[ModelAct::Call("a", "hang")], &[ModelAct::Say("two")]];
        let world = EmbeddingFixture::with_store(store, &script);
        let (first, _seen) = world.session(LARGE_CAPACITY).await;
        let _ticket = start_text(&first, "first");
        // The journal is written before the model is called, and before the tool runs.
        yield_while(|| world.ran.lock().unwrap().is_empty()).await;
        let db = rusqlite::Connection::open(&path).unwrap();
        let damage = "UPDATE journal SET body = body || ' ' WHERE seq > 0";
        assert!(db.execute(damage, []).unwrap() > 0);
        let free = "UPDATE sessions SET owner_id = NULL, process = NULL, expires_at = NULL";
        db.execute(free, []).unwrap();
        let (second, mut shown) = world.open(first.id(), replay).await;
        let shown = format!("{:?}", drain(&mut shown));
        assert_eq!(shown.contains("the journal of loop"), replay, "{shown}");
        run_text(&second, "second").await;
        let request = world.model.request(1).concat();
        assert!(request.contains("history of this session is damaged"));
    }
}

/// The changes are kept although the group is not stored, and the error says where.
#[tokio::test]
async fn changes_of_unstored_group_are_kept() {
    let store = FailingStore::new();
    let world = repository_with_store(store.clone(), &[writer("a", "f")], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    store.head_moves.store(true, Ordering::SeqCst);
    let lost = evaluate(
        &session,
        in_mode(&["a"], Mode::Edit),
        SelectionStrategy::First,
    )
    .await;
    let Err(PromptError::Lost(CommitError::Store(reason))) = lost else {
        panic!("{lost:?}");
    };
    let (_, kept) = reason
        .split_once(
            "look whether the changes of candidate 1 (puppet/a) were applied; they are kept in ",
        )
        .unwrap_or_else(|| panic!("{reason}"));
    assert_eq!(
        fs::read_to_string(format!("{kept}/files/f")).unwrap(),
        "a\n"
    );
    fs::remove_dir_all(kept).unwrap();
    assert_eq!(read(&world, "f"), "first\n");
    assert_no_folders(&world, &session);
}
