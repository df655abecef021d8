//! Prompts run one after the other; a prompt's result comes after all its events and its commit.

use crate::world::{Act, ROOM, Seen, World, drain, live, say};
use std::sync::Arc;
use tokio::sync::Notify;
use turnery_agent::{PROMPTS_WAITING, StartError};
use turnery_engine::{Detail, EventKind, FaultKind, Outcome, TurnFinish, TurnStop};

fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() })
}

// proves: R5, C-11
#[tokio::test(start_paused = true)]
pub(crate) async fn a_result_comes_after_every_event_and_the_commit() {
    let world = World::new(&[&[Act::Say("hel"), Act::Say("lo")]]);
    let (session, mut seen) = world.session(ROOM).await;
    let result = say(&session, "hi").result().await.unwrap();
    assert_eq!(result.outcome, finished("hel\nlo"));
    // Nothing may come after this point; all is there now.
    let events = live(&drain(&mut seen));
    assert!(matches!(
        events.last().unwrap().kind,
        EventKind::LoopEnd { .. }
    ));
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(info.head_version, 1);
    assert_eq!(info.title.as_deref(), Some("hi"));
}

// proves: LOOP-2, ACP-57, C-29
#[tokio::test(start_paused = true)]
async fn a_second_prompt_waits_its_turn_and_sees_the_first() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Say("one"), Act::Wait(signal.clone())],
        &[Act::Say("two")],
    ]);
    let (session, mut seen) = world.session(ROOM).await;
    let first = say(&session, "first");
    let second = say(&session, "second");
    signal.notify_one();
    assert_eq!(first.result().await.unwrap().outcome, finished("one"));
    assert_eq!(second.result().await.unwrap().outcome, finished("two"));
    assert_eq!(world.puppet.request(1), ["first", "one", "second"]);
    // Never interleaved: the events of each loop lie together.
    let loops: Vec<_> = live(&drain(&mut seen))
        .into_iter()
        .map(|event| event.loop_id)
        .collect();
    let mut runs = loops.clone();
    runs.dedup();
    assert_eq!(runs.len(), 2, "{loops:?}");
}

// proves: ACP-57, C-29
#[tokio::test(start_paused = true)]
pub(crate) async fn prompts_run_in_the_order_in_which_they_came() {
    let world = World::new(&[&[Act::Say("1")], &[Act::Say("2")], &[Act::Say("3")]]);
    let (session, _seen) = world.session(ROOM).await;
    let tickets = ["a", "b", "c"].map(|text| say(&session, text));
    for ticket in tickets {
        ticket.result().await.unwrap();
    }
    assert_eq!(world.puppet.request(2), ["a", "1", "b", "2", "c"]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_prompts_may_wait() {
    let world = World::new(&[&[Act::Hang]]);
    let (session, _seen) = world.session(ROOM).await;
    let mut tickets = Vec::new();
    for _ in 0..PROMPTS_WAITING {
        tickets.push(say(&session, "again"));
    }
    let refused = session.start(Vec::new(), turnery_agent::CancellationToken::new());
    assert_eq!(refused.err(), Some(StartError::Full(64)));
    assert_eq!(session.cancel_running_turns(), 64);
    for ticket in tickets {
        assert_eq!(
            ticket.result().await.unwrap().outcome,
            Outcome::Stopped(TurnStop::Cancelled)
        );
    }
}

// proves: ACP-24
#[tokio::test(start_paused = true)]
async fn calls_with_the_same_id_are_told_apart() {
    let world = World::new(&[
        &[Act::Call("c", "look")],
        &[Act::Call("c", "look")],
        &[Act::Say("ok")],
    ]);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "look twice").result().await.unwrap();
    let mut ids: Vec<String> = live(&drain(&mut seen))
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallRequested { call, .. } => Some(call.call_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 2);
    ids.dedup();
    assert_eq!(ids.len(), 2, "{ids:?}");
}

// proves: LASH-18
#[tokio::test(start_paused = true)]
async fn a_failing_model_and_a_panicking_one_end_the_prompt_but_not_the_session() {
    let world = World::new(&[
        &[Act::Fail],
        &[Act::Say("x"), Act::Panic],
        &[Act::Say("fine")],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let failed = say(&session, "one").result().await.unwrap();
    assert_eq!(failed.outcome, Outcome::Stopped(TurnStop::ProviderError));
    assert_eq!(
        failed.detail,
        Some(Detail::Provider {
            kind: FaultKind::Overloaded,
            message: "too much to do".to_owned(),
        })
    );
    let panicked = say(&session, "two").result().await.unwrap();
    assert_eq!(panicked.outcome, Outcome::Stopped(TurnStop::ProviderError));
    assert_eq!(
        say(&session, "three").result().await.unwrap().outcome,
        finished("fine")
    );
}

// proves: TURN-48, ACP-39, C-5
#[tokio::test(start_paused = true)]
async fn a_panicking_tool_is_a_failed_call() {
    let world = World::new(&[&[Act::Call("p", "panic")], &[Act::Say("never mind")]]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "break").result().await.unwrap();
    assert_eq!(result.outcome, finished("never mind"));
    assert!(
        world.puppet.request(1)[2].contains("broke"),
        "{:?}",
        world.puppet.request(1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_title_is_shown_once() {
    let world = World::new(&[&[Act::Say("a")], &[Act::Say("b")]]);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "\n  Fix the bug \nplease")
        .result()
        .await
        .unwrap();
    say(&session, "and another").result().await.unwrap();
    let titles: Vec<_> = drain(&mut seen)
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Info(title) => Some(title),
            Seen::Live(_) | Seen::Replay(_) => None,
        })
        .collect();
    assert_eq!(titles, [Some("Fix the bug".to_owned())]);
}
