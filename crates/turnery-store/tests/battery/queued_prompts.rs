//! Tests of queued prompts: kept in order until they were run or withdrawn, and apart from effects.

use crate::{World, battery, commits::claim_new_session, effects, samples::*};
use turnery_engine::Content;
use turnery_store::{
    NextEffect, PromptRemoval, QueuedPrompt, StoreError,
    migrate::{CopyError, CopyOutcome, copy_session},
};

battery!(
    prompts_wait_in_their_order,
    prompt_queued_again_waits_once,
    prompt_for_no_session_is_refused,
    withdrawn_prompt_is_gone,
    started_prompt_is_not_withdrawn,
    started_prompt_waits_until_it_has_run,
    waiting_prompt_is_no_effect,
    effects_are_no_prompts,
    deleted_session_has_no_prompts,
    session_is_not_copied_while_a_prompt_waits,
);

fn prompt(number: u32) -> QueuedPrompt {
    QueuedPrompt {
        id: format!("prompt-{number}").as_str().into(),
        content: vec![Content::text(format!("question {number}"))],
        head_version: u64::from(number),
    }
}

async fn queue(world: &World, numbers: &[u32]) {
    for number in numbers {
        let queued = world.store.queue_prompt(&"s1".into(), prompt(*number));
        queued.await.unwrap();
    }
}

async fn waiting(world: &World) -> Vec<QueuedPrompt> {
    world.store.queued_prompts(&"s1".into()).await.unwrap()
}

async fn remove(world: &World, number: u32, removal: PromptRemoval) -> bool {
    let (session, id) = ("s1".into(), prompt(number).id);
    let removed = world.store.remove_queued_prompt(&session, &id, removal);
    removed.await.unwrap()
}

async fn start(world: &World, number: u32) -> bool {
    let (session, id) = ("s1".into(), prompt(number).id);
    let started = world.store.start_queued_prompt(&session, &id);
    started.await.unwrap()
}

pub(crate) async fn prompts_wait_in_their_order(world: &World) {
    // Needs no lane: somebody else holds it.
    claim_new_session(world).await;
    assert_eq!(waiting(world).await, []);
    queue(world, &[3, 1, 2]).await;
    assert_eq!(waiting(world).await, [3, 1, 2].map(prompt));
    assert!(remove(world, 3, PromptRemoval::Run).await);
    assert_eq!(waiting(world).await, [1, 2].map(prompt));
}

async fn prompt_queued_again_waits_once(world: &World) {
    claim_new_session(world).await;
    queue(world, &[1, 2, 1]).await;
    assert_eq!(waiting(world).await, [1, 2].map(prompt));
    assert!(remove(world, 1, PromptRemoval::Run).await);
    assert!(!remove(world, 1, PromptRemoval::Run).await);
    assert_eq!(waiting(world).await, [2].map(prompt));
}

async fn prompt_for_no_session_is_refused(world: &World) {
    let queued = world.store.queue_prompt(&"s1".into(), prompt(1)).await;
    assert_eq!(queued, Err(StoreError::NotFound("s1".into())));
    assert_eq!(waiting(world).await, []);
    assert!(!start(world, 1).await);
    assert!(!remove(world, 1, PromptRemoval::Withdrawn).await);
}

async fn withdrawn_prompt_is_gone(world: &World) {
    claim_new_session(world).await;
    queue(world, &[1, 2]).await;
    assert!(remove(world, 1, PromptRemoval::Withdrawn).await);
    assert!(!start(world, 1).await);
    assert_eq!(waiting(world).await, [2].map(prompt));
}

pub(crate) async fn started_prompt_is_not_withdrawn(world: &World) {
    claim_new_session(world).await;
    queue(world, &[1, 2]).await;
    assert!(start(world, 1).await);
    assert!(!remove(world, 1, PromptRemoval::Withdrawn).await);
    assert!(remove(world, 2, PromptRemoval::Withdrawn).await);
    assert_eq!(waiting(world).await, [1].map(prompt));
}

/// The process that started it may have died before it did anything.
pub(crate) async fn started_prompt_waits_until_it_has_run(world: &World) {
    claim_new_session(world).await;
    queue(world, &[1, 2]).await;
    for _ in 0..2 {
        assert!(start(world, 1).await);
        assert_eq!(waiting(world).await, [1, 2].map(prompt));
    }
    assert!(remove(world, 1, PromptRemoval::Run).await);
    assert!(!start(world, 1).await);
}

pub(crate) async fn waiting_prompt_is_no_effect(world: &World) {
    claim_new_session(world).await;
    queue(world, &[1]).await;
    let next = world.store.take_effect(&"s1".into(), &owner("a")).await;
    assert_eq!(next, Ok(NextEffect::Empty));
    assert_eq!(waiting(world).await, [1].map(prompt));
    assert_eq!(world.store.check(Some(&"s1".into())).await, Ok(Vec::new()));
}

async fn effects_are_no_prompts(world: &World) {
    let lane = claim_new_session(world).await;
    queue(world, &[1]).await;
    let commit = effects::commit_with_effects(&lane, 0, 1);
    world.store.commit(commit).await.unwrap();
    assert_eq!(waiting(world).await, [1].map(prompt));
    let next = world.store.take_effect(&"s1".into(), &owner("a")).await;
    let Ok(NextEffect::Taken(taken)) = next else {
        panic!("{next:?}");
    };
    assert_eq!(taken.pending, effects::effect("s1", 0));
    let key = taken.pending.key.as_str().into();
    let store = &world.store;
    assert_eq!(
        store.start_queued_prompt(&"s1".into(), &key).await,
        Ok(false)
    );
    let removed = store.remove_queued_prompt(&"s1".into(), &key, PromptRemoval::Run);
    assert_eq!(removed.await, Ok(false));
}

async fn deleted_session_has_no_prompts(world: &World) {
    let lane = claim_new_session(world).await;
    queue(world, &[1]).await;
    world.store.release(&lane).await.unwrap();
    world.store.delete(&"s1".into()).await.unwrap();
    assert_eq!(waiting(world).await, []);
    world.store.create(new_session("s1")).await.unwrap();
    assert_eq!(waiting(world).await, []);
}

/// Both copies of the prompt would be run.
async fn session_is_not_copied_while_a_prompt_waits(world: &World) {
    let lane = claim_new_session(world).await;
    world.store.release(&lane).await.unwrap();
    queue(world, &[1]).await;
    let target = World::memory();
    let id = "s1".into();
    let copy = || copy_session(&*world.store, &*target.store, &id);
    assert_eq!(copy().await, Err(CopyError::PromptWaits("s1".into())));
    assert!(remove(world, 1, PromptRemoval::Withdrawn).await);
    assert_eq!(copy().await, Ok(CopyOutcome::Copied));
}
