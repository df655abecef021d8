//! Tests of continuing, rerunning, branching and compacting, and of per-prompt options.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain_replayed, finished, one_turn, run_text,
};
use chrono::DateTime;
use serde_json::json;
use turnery_agent::{
    ContinueError, PromptError, PromptHandle, PromptOptions, PromptResult, Session,
};
use turnery_engine::{
    Content, ContinuationKind, EventKind, LimitKind, LoopId, LoopRecord, Outcome, ReachedLimit,
    TurnStop, TurnTrigger,
};
use turnery_models::Thinking;

fn default_options() -> PromptOptions {
    PromptOptions::default()
}

async fn result_of(ticket: Result<PromptHandle, turnery_agent::StartError>) -> PromptResult {
    ticket.unwrap().result().await.unwrap()
}

async fn continue_error(ticket: Result<PromptHandle, turnery_agent::StartError>) -> ContinueError {
    match ticket.unwrap().result().await {
        Err(PromptError::Continue(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Summary of the only loop of a prompt.
fn loop_summary(result: &PromptResult) -> (ContinuationKind, TurnTrigger, Option<&str>, &str) {
    let record: &LoopRecord = &result.loops[0];
    let parent = record.parent_loop_id.as_ref().map(LoopId::as_str);
    let trigger = record.turns[0].triggered_by;
    (
        record.continuation_kind,
        trigger,
        parent.map(without_session_id),
        without_session_id(record.loop_id.as_str()),
    )
}

/// Removes the session id.
fn without_session_id(id: &str) -> &str {
    id.split_once('.').unwrap().1
}

/// Returns the messages of the next model call, in this session and in the same one reloaded.
async fn next_requests(world: &EmbeddingFixture, session: &Session) -> Vec<String> {
    let before = world.model.requests.lock().unwrap().len();
    run_text(session, "next").await;
    let live = world.model.request(before);
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    result_of(loaded.rerun(None, default_options())).await;
    assert_eq!(world.model.request(before + 1), live);
    live
}

// proves: UP-15
#[tokio::test(start_paused = true)]
async fn invalid_continuation_is_error_and_frees_session() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(
        continue_error(session.continue_loop(default_options())).await,
        ContinueError::ContextEmpty
    );
    assert_eq!(
        continue_error(session.compact(default_options())).await,
        ContinueError::ContextEmpty
    );
    assert_eq!(
        continue_error(session.rerun(None, default_options())).await,
        ContinueError::NothingToRerun
    );
    let stray = LoopId::from("other.puppet-one.1");
    let gone = ContinueError::NoSuchLoop(stray.clone());
    assert_eq!(
        continue_error(session.rerun(Some(stray.clone()), default_options())).await,
        gone
    );
    let branch = session.branch(stray, vec![Content::text("x")], default_options());
    assert_eq!(continue_error(branch).await, gone);
    run_text(&session, "hi").await;
    assert_eq!(
        continue_error(session.continue_loop(default_options())).await,
        ContinueError::Answered
    );
    assert_eq!(world.head(&session).await, 1);
}

// proves: LOOP-8, LOOP-10, LOOP-12, LOOP-18, LOOP-85, TURN-20, TURN-10
#[tokio::test(start_paused = true)]
async fn continue_resumes_after_model_error() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("c", "look")],
        &[ModelAct::Call("d", "look")],
        &[ModelAct::Say("done")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let first = result_of(session.prompt(vec![Content::text("hi")], one_turn())).await;
    assert!(matches!(
        first.outcome,
        Outcome::Stopped(TurnStop::MaxTurns(ReachedLimit {
            kind: LimitKind::Turns,
            ..
        }))
    ));
    let second = result_of(session.continue_loop(default_options())).await;
    let parent = second.loops[0].parent_loop_id.as_ref();
    assert_eq!(parent, first.loop_ids().next());
    let (default, goes_on) = (ContinuationKind::Default, TurnTrigger::Continuation);
    assert_eq!(
        loop_summary(&second),
        (default, goes_on, Some("puppet-one.1"), "puppet-one.2")
    );
    assert_eq!(
        world.model.request(1),
        ["hi", "", "done", "[Agent stopped: Max turns reached (1/1)]"]
    );
    assert!(matches!(second.outcome, Outcome::Finished(..)));
}

// proves: LOOP-19, LOOP-86, UP-12, UP-16, TURN-20
#[tokio::test(start_paused = true)]
pub(crate) async fn rerun_replaces_the_first_run() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one")],
        &[ModelAct::Say("wrong")],
        &[ModelAct::Say("wrong too")],
        &[ModelAct::Say("right")],
        &[ModelAct::Say("on")],
        &[ModelAct::Say("on")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "first").await;
    run_text(&session, "second").await;
    result_of(session.rerun(None, default_options())).await;
    let again = result_of(session.rerun(None, default_options())).await;
    let (rerun, goes_on) = (ContinuationKind::Rerun, TurnTrigger::Continuation);
    assert_eq!(
        loop_summary(&again),
        (rerun, goes_on, Some("puppet-one.3"), "puppet-one.4")
    );
    let tag = again.loops[0].tag.clone().unwrap();
    assert!(DateTime::parse_from_rfc3339(&tag).is_ok(), "{tag}");
    assert_eq!(world.model.request(2), ["first", "one", "second"]);
    assert_eq!(world.model.request(3), ["first", "one", "second"]);
    assert_eq!(
        next_requests(&world, &session).await,
        ["first", "one", "second", "right", "next"]
    );
}

// proves: LOOP-20, LOOP-87, TURN-21, TURN-22, UP-12, UP-16, TURN-10
#[tokio::test(start_paused = true)]
async fn branch_continues_from_earlier_loop() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one")],
        &[ModelAct::Say("two")],
        &[ModelAct::Call("c", "look")],
        &[ModelAct::Say("other")],
        &[ModelAct::Say("on")],
        &[ModelAct::Say("on")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let first = run_text(&session, "first").await;
    run_text(&session, "second").await;
    let from = first.loop_ids().next().unwrap().clone();
    let branch =
        result_of(session.branch(from, vec![Content::text("else")], default_options())).await;
    assert_eq!(
        loop_summary(&branch),
        (
            ContinuationKind::Branch,
            TurnTrigger::Branch,
            Some("puppet-one.1"),
            "puppet-one.3"
        )
    );
    assert_eq!(
        branch.loops[0].turns[1].triggered_by,
        TurnTrigger::Continuation
    );
    let tag = branch.loops[0].tag.as_deref().expect("a tag");
    assert!(DateTime::parse_from_rfc3339(tag).is_ok(), "{tag}");
    assert_eq!(
        next_requests(&world, &session).await,
        ["first", "one", "else", "", "done", "other", "next"]
    );
}

#[tokio::test(start_paused = true)]
async fn refused_rerun_leaves_session_unchanged() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("one")],
        &[ModelAct::Say("two")],
        &[ModelAct::Refuse],
        &[ModelAct::Say("on")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let first = run_text(&session, "first").await;
    run_text(&session, "second").await;
    let which = first.loop_ids().next().cloned();
    result_of(session.rerun(which, default_options())).await;
    run_text(&session, "next").await;
    assert_eq!(
        world.model.request(3),
        ["first", "one", "second", "two", "next"]
    );
}

// proves: LOOP-21, LOOP-46, LOOP-47, UP-13, D-11, I10, C-15, LOOP-48
#[tokio::test(start_paused = true)]
pub(crate) async fn requested_compaction_is_a_loop_without_turn() {
    let long = "word ".repeat(80).leak();
    let answer: &[ModelAct] = &[ModelAct::Say(long)];
    let summary: &[ModelAct] = &[ModelAct::Say("much was said"), ModelAct::Spend(50, 5)];
    let mut script = vec![answer; 20];
    script.push(summary);
    script.extend([answer; 2]);
    let world = EmbeddingFixture::with_settings(&script, |settings| settings.compact_at = 0);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    for _ in 0..20 {
        run_text(&session, "go on").await;
    }
    let compacted = result_of(session.compact(default_options())).await;
    let record = &compacted.loops[0];
    assert_eq!(record.continuation_kind, ContinuationKind::Compaction);
    assert_eq!(without_session_id(record.loop_id.as_str()), "puppet-one.21");
    let parent = record.parent_loop_id.as_ref().map(|id| id.as_str());
    assert_eq!(parent.map(without_session_id), Some("puppet-one.20"));
    assert!(record.turns.is_empty() && record.compaction_block.is_some());
    let kinds = record.events.iter().map(|event| &event.kind);
    let compactions = kinds.filter(|kind| {
        matches!(
            kind,
            EventKind::CompactionStarted { .. } | EventKind::CompactionEnded { .. }
        )
    });
    assert_eq!((compactions.count(), record.events.len()), (2, 4));
    assert_eq!(compacted.usage.total(), 0);
    let next = next_requests(&world, &session).await;
    assert!(next.len() < 42, "{}", next.len());
    assert!(next.iter().any(|text| text.contains("much was said")));
    // Nothing is lost (LOOP-48).
    let loops = world.loops(session.id()).await;
    let kept: usize = loops.iter().map(|record| record.messages.len()).sum();
    assert_eq!(kept, 44);
}

// proves: LOOP-28, LOOP-44, LOOP-4, LOOP-11, LOOP-35
#[tokio::test(start_paused = true)]
async fn prompt_options_apply_to_one_prompt() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("the first")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let options = PromptOptions {
        metadata: Some(json!({"request": 7, "trace": null})),
        model: Some("puppet/two".parse().unwrap()),
        ..default_options()
    };
    let second = result_of(session.prompt(vec![Content::text("hi")], options)).await;
    assert_eq!(second.outcome, finished("the second"));
    let record = &second.loops[0];
    assert_eq!(record.metadata, Some(json!({"request": 7, "trace": null})));
    let config = record.config.as_ref().unwrap();
    let expected = ("two", Some("puppet-two"));
    assert_eq!((&*config.model, config.config_id.as_deref()), expected);
    assert_eq!(without_session_id(record.loop_id.as_str()), "puppet-two.1");
    let first = run_text(&session, "hi").await;
    let record = &first.loops[0];
    assert_eq!(
        (
            &record.metadata,
            record.config.as_ref().unwrap().model.as_str()
        ),
        (&None, "one")
    );

    let options = PromptOptions {
        model: Some("puppet/three".parse().unwrap()),
        ..default_options()
    };
    let unknown = session.prompt(vec![Content::text("hi")], options).unwrap();
    assert!(matches!(unknown.result().await, Err(PromptError::Model(_))));
}

/// They are sent and recorded with the prompt's loop. The next prompt has the session's thinking level and the
/// agent's temperature again, another session the agent's level.
// proves: LOOP-42, LOOP-43, LOOP-44
#[tokio::test(start_paused = true)]
async fn thinking_and_temperature_apply_to_one_prompt() {
    let script: [&[ModelAct]; 3] = [
        &[ModelAct::Say("one")],
        &[ModelAct::Say("two")],
        &[ModelAct::Say("three")],
    ];
    let world = EmbeddingFixture::with_settings(&script, |settings| {
        settings.thinking = Thinking::Low;
        settings.temperature = Some(0.5);
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    session.set_thinking(Thinking::Medium).await.unwrap();
    let options = PromptOptions {
        thinking: Some(Thinking::High),
        temperature: Some(0.25),
        ..default_options()
    };
    let first = result_of(session.prompt(vec![Content::text("hi")], options)).await;
    let second = run_text(&session, "hi").await;
    assert_eq!(session.options().thinking, Thinking::Medium);
    let (other, _seen) = world.session(LARGE_CAPACITY).await;
    let third = run_text(&other, "hi").await;
    let recorded = [first, second, third].map(|result| {
        let config = result.loops[0].config.clone().unwrap();
        (config.thinking_level, config.temperature)
    });
    let level = |word: &str| Some(word.to_owned());
    assert_eq!(
        recorded,
        [
            (level("high"), Some(0.25)),
            (level("medium"), Some(0.5)),
            (level("low"), Some(0.5)),
        ]
    );
    let requests = world.model.requests.lock().unwrap();
    let sent = requests.iter().map(|it| (it.thinking, it.temperature));
    let expected = [
        (Thinking::High, Some(0.25)),
        (Thinking::Medium, Some(0.5)),
        (Thinking::Low, Some(0.5)),
    ];
    assert_eq!(sent.collect::<Vec<_>>(), expected);
}

// proves: LOOP-81
#[tokio::test(start_paused = true)]
async fn kept_fragments_are_not_replayed() {
    for (keep, kept) in [(false, 0), (true, 2)] {
        let world = EmbeddingFixture::with_settings(
            &[&[ModelAct::Say("hel"), ModelAct::Say("lo")]],
            |settings| {
                settings.keep_streaming = keep;
            },
        );
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "hi").await;
        session.close().await;
        let loops = world.loops(session.id()).await;
        let deltas = |event: &&turnery_engine::Event| matches!(event.kind, EventKind::Delta { .. });
        assert_eq!(loops[0].events.iter().filter(deltas).count(), kept);
        let (_loaded, mut seen) = world.open(session.id(), true).await;
        let replayed = drain_replayed(&mut seen);
        assert_eq!(replayed.iter().filter(deltas).count(), 0);
    }
}

// proves: LOOP-24, LOOP-88, TURN-17, TURN-10
#[tokio::test(start_paused = true)]
async fn spawned_prompt_records_its_parent_loop() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("done")], &[ModelAct::Say("done")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let options = PromptOptions {
        spawned_by: Some(LoopId::from("parent.puppet-one.5")),
        ..default_options()
    };
    let first = result_of(session.prompt(vec![Content::text("dig")], options.clone())).await;
    assert_eq!(
        loop_summary(&first),
        (
            ContinuationKind::Initial,
            TurnTrigger::SubAgent,
            Some("puppet-one.5"),
            "puppet-one.1"
        )
    );
    let second = result_of(session.prompt(vec![Content::text("deeper")], options)).await;
    assert_eq!(loop_summary(&second).2, Some("puppet-one.1"));
}
