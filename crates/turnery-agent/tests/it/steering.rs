//! Tests of steering and follow-ups: delivered soon, at the end, or at least not lost.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, choose, run_text, start, start_text, yield_while,
};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::{CancellationToken, InterjectError, MAX_PENDING_INTERJECTIONS, Session};
use turnery_engine::{Content, Outcome, QueueMode, TurnStop};

fn text_content(text: &str) -> Vec<Content> {
    vec![Content::text(text)]
}

/// Closes the session, which cancels its prompts, and returns the message texts of each stored loop.
async fn final_messages(world: &EmbeddingFixture, session: &Session) -> Vec<Vec<String>> {
    session.close().await;
    let loops = world.loops(session.id()).await;
    let texts = |record: &turnery_engine::LoopRecord| {
        record.messages.iter().map(|m| m.message.text()).collect()
    };
    loops.iter().map(|record| texts(record)).collect()
}

// proves: UP-5, TURN-19, LOOP-91
#[tokio::test(start_paused = true)]
async fn steering_follows_running_call_and_skips_the_rest() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("a", "ring"), ModelAct::Call("b", "look")],
        &[ModelAct::Say("as you wish")],
    ]);
    let world = world.with_answers(&[choose("allow_once")]);
    *world.client.delay.lock().unwrap() = std::time::Duration::from_secs(1);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "go");
    world.client.was_asked.notified().await;
    session.steer(text_content("rather not")).unwrap();
    signal.notify_one();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops.len(), 1);
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    let request = world.model.request(1);
    assert_eq!(request[request.len() - 1], "rather not");
    assert!(request[3].contains("skipped"), "{request:?}");
}

// proves: UP-6, LOOP-90
#[tokio::test(start_paused = true)]
async fn follow_up_is_delivered_at_loop_end() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Call("a", "look")],
        &[ModelAct::Say("that is it")],
        &[ModelAct::Say("and that")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "go");
    session.follow_up(text_content("and then?")).unwrap();
    signal.notify_one();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops.len(), 1);
    assert_eq!(world.model.request(1), ["go", "", "done"]);
    assert_eq!(
        world.model.request(2),
        ["go", "", "done", "that is it", "and then?"]
    );
}

// proves: UP-5
#[tokio::test(start_paused = true)]
async fn queue_mode_delivers_one_or_all() {
    for (mode, last) in [(QueueMode::OneAtATime, "two"), (QueueMode::All, "three")] {
        let signal = Arc::new(Notify::new());
        let wait: &[ModelAct] = &[ModelAct::Wait(signal.clone()), ModelAct::Call("c", "look")];
        let say_on: &[ModelAct] = &[ModelAct::Say("on")];
        let world = EmbeddingFixture::with_settings(&[wait, say_on, say_on, say_on], |settings| {
            settings.steering = mode;
        });
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let ticket = start_text(&session, "one");
        session.steer(text_content("two")).unwrap();
        session.steer(text_content("three")).unwrap();
        signal.notify_one();
        ticket.result().await.unwrap();
        assert_eq!(world.model.request(1).last().unwrap(), last);
    }
}

#[tokio::test(start_paused = true)]
async fn interjection_without_prompt_is_rejected() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(
        session.steer(text_content("psst")),
        Err(InterjectError::Idle)
    );
    run_text(&session, "hi").await;
    assert_eq!(
        session.follow_up(text_content("psst")),
        Err(InterjectError::Idle)
    );
    session.close().await;
    assert_eq!(
        session.steer(text_content("psst")),
        Err(InterjectError::Closed)
    );
}

#[tokio::test(start_paused = true)]
async fn interjections_per_prompt_are_limited() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[&[ModelAct::Wait(signal.clone()), ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "hi");
    assert_eq!(session.steer(Vec::new()), Err(InterjectError::Empty));
    for _ in 0..MAX_PENDING_INTERJECTIONS {
        session.follow_up(text_content("more")).unwrap();
    }
    let full = Err(InterjectError::Full(MAX_PENDING_INTERJECTIONS));
    assert_eq!(session.follow_up(text_content("more")), full);
    session.cancel_prompts();
    ticket.result().await.unwrap();
}

// proves: UP-5
#[tokio::test(start_paused = true)]
pub(crate) async fn late_interjection_becomes_the_next_prompt() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Fail],
        &[ModelAct::Say("late")],
        &[ModelAct::Say("second")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let first = start_text(&session, "first");
    let second = start_text(&session, "second");
    session.steer(text_content("too late")).unwrap();
    signal.notify_one();
    first.result().await.unwrap();
    second.result().await.unwrap();
    assert_eq!(
        final_messages(&world, &session).await,
        [
            vec!["first", ""],
            vec!["too late", "late"],
            vec!["second", "second"]
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interjection_to_cancelled_prompt_calls_no_model() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    yield_while(|| *world.model.active_calls.lock().unwrap() == 0).await;
    session.steer(text_content("wait")).unwrap();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    let kept = final_messages(&world, &session).await;
    assert!(kept.concat().contains(&"wait".to_owned()), "{kept:?}");
    assert_eq!(world.model.requests.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn receipt_reports_delivery_and_late_is_not_run() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Call("a", "look")],
        &[ModelAct::Wait(signal.clone()), ModelAct::Fail],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "go");
    // Equal content twice: the first is delivered, the second is not.
    let heard = session.try_steer(text_content("left")).unwrap();
    let late = session.try_steer(text_content("left")).unwrap();
    let end = session.try_follow_up(text_content("and then?")).unwrap();
    signal.notify_one();
    // Known while the prompt still runs: the second call waits for the signal.
    assert_eq!(heard.result().await, Ok(()));
    signal.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(late.result().await, Err(InterjectError::Idle));
    assert_eq!(end.result().await, Err(InterjectError::Idle));
    assert_eq!(world.model.requests.lock().unwrap().len(), 2);
    assert_eq!(final_messages(&world, &session).await.len(), 1);
}
