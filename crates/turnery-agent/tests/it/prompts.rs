//! Tests that prompts run one at a time and that a result comes after all events and the commit.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, drain, finished, live_events, run_text,
    start_text,
};
use std::{collections::HashSet, sync::Arc};
use tokio::sync::Notify;
use turnery_agent::{MAX_QUEUED_PROMPTS, PromptOptions, StartError};
use turnery_engine::{Content, EventKind, ModelErrorKind, Outcome, ProviderFailure, TurnStop};

// proves: R5, C-11
#[tokio::test(start_paused = true)]
pub(crate) async fn result_follows_all_events_and_the_commit() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hel"), ModelAct::Say("lo")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "hi").await;
    assert_eq!(result.outcome, finished("hel\nlo"));
    // Nothing may come after this point; all is there now.
    let events = live_events(&drain(&mut seen));
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
async fn second_prompt_waits_and_sees_the_first() {
    let signal = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one"), ModelAct::Wait(signal.clone())],
        &[ModelAct::Say("two")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let first = start_text(&session, "first");
    let second = start_text(&session, "second");
    signal.notify_one();
    assert_eq!(first.result().await.unwrap().outcome, finished("one"));
    assert_eq!(second.result().await.unwrap().outcome, finished("two"));
    assert_eq!(world.model.request(1), ["first", "one", "second"]);
    // Never interleaved: the events of each loop lie together.
    let loops: Vec<_> = live_events(&drain(&mut seen))
        .into_iter()
        .map(|event| event.loop_id)
        .collect();
    let mut runs = loops.clone();
    runs.dedup();
    assert_eq!(runs.len(), 2, "{loops:?}");
}

// proves: ACP-57, C-29
#[tokio::test(start_paused = true)]
pub(crate) async fn prompts_run_in_arrival_order() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("1")],
        &[ModelAct::Say("2")],
        &[ModelAct::Say("3")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let tickets = ["a", "b", "c"].map(|text| start_text(&session, text));
    for ticket in tickets {
        ticket.result().await.unwrap();
    }
    assert_eq!(world.model.request(2), ["a", "1", "b", "2", "c"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_prompts_are_limited() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let mut tickets = Vec::new();
    for _ in 0..MAX_QUEUED_PROMPTS {
        tickets.push(start_text(&session, "again"));
    }
    let refused = session.start(Vec::new(), turnery_agent::CancellationToken::new());
    assert_eq!(refused.err(), Some(StartError::Full(64)));
    assert_eq!(session.cancel_prompts(), 64);
    for ticket in tickets {
        assert_eq!(
            ticket.result().await.unwrap().outcome,
            Outcome::Stopped(TurnStop::Cancelled)
        );
    }
}

/// A model that always names its calls alike: in one prompt, after the session is opened again, in a rerun, in a branch,
/// and after another handle has extended the session.
// proves: ACP-24, TOOL-2, LASH-76
#[tokio::test(start_paused = true)]
async fn call_ids_are_unique_in_the_session() {
    let (call, say) = ([ModelAct::Call("c", "look")], [ModelAct::Say("ok")]);
    let mut script: Vec<&[ModelAct]> = vec![&call, &call, &say];
    script.extend([&call[..], &say].repeat(3));
    script.extend([&say[..], &call, &say]);
    let world = EmbeddingFixture::new(&script);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let first = run_text(&session, "look twice").await;
    session.close().await;
    let (session, mut seen_again) = world.open(session.id(), false).await;
    run_text(&session, "look").await;
    let options = PromptOptions::default;
    let rerun = session.rerun(None, options()).unwrap();
    rerun.result().await.unwrap();
    let from = first.loops[0].loop_id.clone();
    let branch = session.branch(from, vec![Content::text("look")], options());
    branch.unwrap().result().await.unwrap();
    let (other, _other_seen) = world.open(session.id(), false).await;
    run_text(&other, "go on").await;
    run_text(&session, "look").await;
    let items = [drain(&mut seen), drain(&mut seen_again)].concat();
    let ids: Vec<String> = live_events(&items)
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallRequested { call, .. } => Some(call.call_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
    let distinct: HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 6, "{ids:?}");
}

// proves: LASH-18
#[tokio::test(start_paused = true)]
async fn model_error_or_panic_ends_only_the_prompt() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Fail],
        &[ModelAct::Say("x"), ModelAct::Panic],
        &[ModelAct::Say("fine")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let failed = run_text(&session, "one").await;
    let failure = ProviderFailure::Failed {
        kind: ModelErrorKind::Overloaded,
        message: "too much to do".to_owned(),
    };
    let stop = TurnStop::ProviderError(failure);
    assert_eq!(failed.outcome, Outcome::Stopped(stop));
    let panicked = run_text(&session, "two").await;
    assert!(matches!(
        panicked.outcome,
        Outcome::Stopped(TurnStop::ProviderError(_))
    ));
    assert_eq!(run_text(&session, "three").await.outcome, finished("fine"));
}

#[tokio::test(start_paused = true)]
async fn title_is_shown_once() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("a")], &[ModelAct::Say("b")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "\n  Fix the bug \nplease").await;
    run_text(&session, "and another").await;
    let titles: Vec<_> = drain(&mut seen)
        .into_iter()
        .filter_map(|seen| match seen {
            ShownItem::Info(title) => Some(title),
            ShownItem::Live(_) | ShownItem::Replay(_) => None,
        })
        .collect();
    assert_eq!(titles, [Some("Fix the bug".to_owned())]);
}
