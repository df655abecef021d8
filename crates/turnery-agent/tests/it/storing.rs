//! A store that fails, and two handles on one session: nobody's context is wrong because of it.

use crate::{
    failing_store::FailingStore,
    world::{Act, ROOM, World, say, start},
};
use std::sync::atomic::Ordering;
use turnery_agent::{CancellationToken, PromptError, SetError};
use turnery_engine::CommitFault;
use turnery_tools::Mode;

/// LASH-35.
// proves: LASH-35, R4
#[tokio::test(start_paused = true)]
pub(crate) async fn a_prompt_that_could_not_be_stored_is_forgotten() {
    let store = FailingStore::new();
    let world = World::over(store.clone(), &[&[Act::Say("one")], &[Act::Say("two")]]);
    let (session, _seen) = world.session(ROOM).await;
    // A full disk takes no journal either, from which the next claim would learn of the loss.
    store.append.store(true, Ordering::SeqCst);
    store.commit.store(true, Ordering::SeqCst);
    let lost = say(&session, "first").result().await;
    assert!(
        matches!(lost, Err(PromptError::Lost(CommitFault::Store(_)))),
        "{lost:?}"
    );
    say(&session, "second").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["second"]);
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(info.title.as_deref(), Some("second"));
}

/// PROMPT-9.
// proves: UP-35
#[tokio::test(start_paused = true)]
pub(crate) async fn a_refused_prompt_is_not_in_the_next_context() {
    let world = World::new(&[&[Act::Say("no"), Act::Refuse], &[Act::Say("yes")]]);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "something bad").result().await.unwrap();
    say(&session, "something good").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["something good"]);
}

#[tokio::test(start_paused = true)]
async fn a_setting_does_not_hide_what_another_handle_did() {
    let world = World::new(&[&[Act::Say("first")], &[Act::Say("second")]]);
    let (one, _seen) = world.session(ROOM).await;
    let (two, _seen) = world.open(one.id(), false).await;
    say(&one, "a").result().await.unwrap();
    two.set_mode(Mode::Plan).await.unwrap();
    say(&two, "b").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["a", "first", "b"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_could_not_catch_up_does_so_at_the_next_prompt() {
    let store = FailingStore::new();
    let world = World::over(
        store.clone(),
        &[&[Act::Say("first")], &[Act::Say("second")]],
    );
    let (one, _seen) = world.session(ROOM).await;
    let (two, _seen) = world.open(one.id(), false).await;
    say(&one, "a").result().await.unwrap();
    store.loops.store(true, Ordering::SeqCst);
    let failed = say(&two, "b").result().await;
    assert!(
        matches!(failed, Err(PromptError::Lost(CommitFault::Store(_)))),
        "{failed:?}"
    );
    say(&two, "c").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["a", "first", "c"]);
}

/// MODE-1: what was refused has changed nothing.
#[tokio::test(start_paused = true)]
async fn a_setting_that_could_not_be_stored_is_not_in_force() {
    let store = FailingStore::new();
    let world = World::over(
        store.clone(),
        &[&[Act::Call("r", "ring")], &[Act::Say("so be it")]],
    );
    let (session, _seen) = world.session(ROOM).await;
    store.patch.store(true, Ordering::SeqCst);
    let refused = session.set_mode(Mode::Auto).await;
    assert!(matches!(refused, Err(SetError::Store(_))), "{refused:?}");
    assert_eq!(session.options().mode, Mode::Ask);
    let cancel = CancellationToken::new();
    let ticket = start(&session, "ring", cancel.clone());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    cancel.cancel();
    ticket.result().await.unwrap();
    assert_eq!(world.person.asked.lock().unwrap().len(), 1);
    assert!(world.ran.lock().unwrap().is_empty());
}
