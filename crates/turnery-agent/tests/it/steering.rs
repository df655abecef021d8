//! Words to a running prompt: heard soon, heard at the end, or not lost at least.

use crate::world::{Act, ROOM, World, say, start};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::{CancellationToken, SayError, Session, WORDS_WAITING};
use turnery_engine::{Content, Outcome, QueueMode, TurnStop};

fn words(text: &str) -> Vec<Content> {
    vec![Content::text(text)]
}

/// All that the session says once nobody is at work in it any more.
async fn settled(world: &World, session: &Session) -> Vec<Vec<String>> {
    session.close().await;
    let loops = world.store.loops(session.id(), 0).await.unwrap();
    let texts = |record: &turnery_engine::LoopRecord| {
        record.messages.iter().map(|m| m.message.text()).collect()
    };
    loops.iter().map(|record| texts(record)).collect()
}

// proves: UP-5, TURN-19, LOOP-91
#[tokio::test(start_paused = true)]
async fn steering_is_heard_after_the_call_at_work_and_skips_the_others() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Call("a", "ring"), Act::Call("b", "look")],
        &[Act::Say("as you wish")],
    ]);
    let world = world.answering(&[turnery_agent::Answer::Chose("allow_once".to_owned())]);
    *world.person.thinks.lock().unwrap() = std::time::Duration::from_secs(1);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "go");
    world.person.called.notified().await;
    session.steer(words("rather not")).unwrap();
    signal.notify_one();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops.len(), 1);
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    let request = world.puppet.request(1);
    assert_eq!(request[request.len() - 1], "rather not");
    assert!(request[3].contains("skipped"), "{request:?}");
}

// proves: UP-6, LOOP-90
#[tokio::test(start_paused = true)]
async fn a_follow_up_is_heard_once_the_loop_would_end() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Wait(signal.clone()), Act::Call("a", "look")],
        &[Act::Say("that is it")],
        &[Act::Say("and that")],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "go");
    session.follow_up(words("and then?")).unwrap();
    signal.notify_one();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops.len(), 1);
    assert_eq!(world.puppet.request(1), ["go", "", "done"]);
    assert_eq!(
        world.puppet.request(2),
        ["go", "", "done", "that is it", "and then?"]
    );
}

// proves: UP-5
#[tokio::test(start_paused = true)]
async fn words_are_heard_one_at_a_time_or_all_at_once() {
    for (mode, last) in [(QueueMode::OneAtATime, "two"), (QueueMode::All, "three")] {
        let signal = Arc::new(Notify::new());
        let wait: &[Act] = &[Act::Wait(signal.clone()), Act::Call("c", "look")];
        let say_on: &[Act] = &[Act::Say("on")];
        let world = World::set(&[wait, say_on, say_on, say_on], |settings| {
            settings.steering = mode;
        });
        let (session, _seen) = world.session(ROOM).await;
        let ticket = say(&session, "one");
        session.steer(words("two")).unwrap();
        session.steer(words("three")).unwrap();
        signal.notify_one();
        ticket.result().await.unwrap();
        assert_eq!(world.puppet.request(1).last().unwrap(), last);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_running_prompt_nothing_is_said() {
    let world = World::new(&[&[Act::Say("hello")]]);
    let (session, _seen) = world.session(ROOM).await;
    assert_eq!(session.steer(words("psst")), Err(SayError::Idle));
    say(&session, "hi").result().await.unwrap();
    assert_eq!(session.follow_up(words("psst")), Err(SayError::Idle));
    session.close().await;
    assert_eq!(session.steer(words("psst")), Err(SayError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_takes_no_more_words_than_it_says() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[&[Act::Wait(signal.clone()), Act::Say("hello")]]);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "hi");
    assert_eq!(session.steer(Vec::new()), Err(SayError::Empty));
    for _ in 0..WORDS_WAITING {
        session.follow_up(words("more")).unwrap();
    }
    let full = Err(SayError::Full(WORDS_WAITING));
    assert_eq!(session.follow_up(words("more")), full);
    session.cancel_running_turns();
    ticket.result().await.unwrap();
}

// proves: UP-5
#[tokio::test(start_paused = true)]
pub(crate) async fn what_was_said_too_late_is_the_next_prompt_before_those_that_wait() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Wait(signal.clone()), Act::Fail],
        &[Act::Say("late")],
        &[Act::Say("second")],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let first = say(&session, "first");
    let second = say(&session, "second");
    session.steer(words("too late")).unwrap();
    signal.notify_one();
    first.result().await.unwrap();
    second.result().await.unwrap();
    assert_eq!(
        settled(&world, &session).await,
        [
            vec!["first", ""],
            vec!["too late", "late"],
            vec!["second", "second"]
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_said_to_a_cancelled_prompt_is_kept_and_calls_no_model() {
    let world = World::new(&[&[Act::Hang]]);
    let (session, _seen) = world.session(ROOM).await;
    let cancel = CancellationToken::new();
    let ticket = start(&session, "first", cancel.clone());
    while *world.puppet.alive.lock().unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    session.steer(words("wait")).unwrap();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    let kept = settled(&world, &session).await;
    assert!(kept.concat().contains(&"wait".to_owned()), "{kept:?}");
    assert_eq!(world.puppet.requests.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_knows_what_was_heard_and_what_came_too_late_is_not_run() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Wait(signal.clone()), Act::Call("a", "look")],
        &[Act::Wait(signal.clone()), Act::Fail],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "go");
    // The same words twice: the first is heard, the second is not.
    let heard = session.try_steer(words("left")).unwrap();
    let late = session.try_steer(words("left")).unwrap();
    let end = session.try_follow_up(words("and then?")).unwrap();
    signal.notify_one();
    // Known while the prompt still runs: the second call waits for the signal.
    assert_eq!(heard.result().await, Ok(()));
    signal.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(late.result().await, Err(SayError::Idle));
    assert_eq!(end.result().await, Err(SayError::Idle));
    assert_eq!(world.puppet.requests.lock().unwrap().len(), 2);
    assert_eq!(settled(&world, &session).await.len(), 1);
}
