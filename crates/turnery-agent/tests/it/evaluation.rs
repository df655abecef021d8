//! Tests of evaluation: one prompt under several configurations, one answer, one commit.

use crate::{
    failing_store::{ALWAYS, FailingStore},
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, TestModel, drain, live_events,
        run_text, usage_of, yield_while,
    },
};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::Notify;
use turnery_agent::{
    CancellationToken, Candidate, ObservedEvent, PromptError, PromptHandle, PromptOptions,
    PromptResult, SelectionStrategy, Session,
};
use turnery_engine::{
    CommitError, Content, ContinuationKind, EventKind, LoopId, LoopRecord, LoopStatus, Message,
    Outcome, TurnStop, oracle, usage::source,
};
use turnery_models::ModelName;
use turnery_store::MemoryStore;

pub(crate) fn three_models() -> [Arc<TestModel>; 3] {
    [
        TestModel::new("a", &[&[ModelAct::Say("from a"), ModelAct::Spend(10, 5)]]),
        TestModel::new("b", &[&[ModelAct::Say("from b"), ModelAct::Spend(10, 1)]]),
        TestModel::new("c", &[&[ModelAct::Say("from c"), ModelAct::Spend(10, 9)]]),
    ]
}

pub(crate) fn fixture_with(others: &[Arc<TestModel>]) -> EmbeddingFixture {
    EmbeddingFixture::with_models(Arc::new(MemoryStore::new()), others)
}

pub(crate) fn candidates(models: &[&str]) -> Vec<Candidate> {
    let name =
        |model: &&str| Candidate::from(format!("puppet/{model}").parse::<ModelName>().unwrap());
    models.iter().map(name).collect()
}

pub(crate) async fn evaluate(
    session: &Session,
    models: &[&str],
    pick: SelectionStrategy,
) -> Result<PromptResult, PromptError> {
    evaluate_with_cancel(session, models, pick, CancellationToken::new()).await
}

pub(crate) async fn evaluate_with_cancel(
    session: &Session,
    models: &[&str],
    pick: SelectionStrategy,
    cancel: CancellationToken,
) -> Result<PromptResult, PromptError> {
    let options = PromptOptions::cancelled_by(cancel);
    start_evaluation(session, models, pick, options)
        .result()
        .await
}

pub(crate) fn start_evaluation(
    session: &Session,
    models: &[&str],
    pick: SelectionStrategy,
    options: PromptOptions,
) -> PromptHandle {
    let input = vec![Content::text("which?")];
    let ticket = session.evaluate(input, candidates(models), pick, options);
    ticket.unwrap()
}

fn judge(name: &str) -> SelectionStrategy {
    SelectionStrategy::Judge(Some(format!("puppet/{name}").parse().unwrap()))
}

/// Returns the loop ids without the session, and the winner's index.
pub(crate) fn loop_ids_and_winner(result: &PromptResult) -> (Vec<&str>, usize) {
    let ids = result.loop_ids().map(short_id).collect();
    let selected = |record: &&Arc<LoopRecord>| record.parallel_group.as_ref().unwrap().is_selected;
    let mut winners = result.loops.iter().enumerate();
    let (place, _) = winners.find(|(_, record)| selected(record)).unwrap();
    assert_eq!(result.loops.iter().filter(selected).count(), 1);
    (ids, place)
}

pub(crate) fn short_id(id: &LoopId) -> &str {
    id.as_str().split_once('.').unwrap().1
}

/// Returns the model messages that a client has read, streamed or settled, each once.
fn messages_read(seen: &[ShownItem]) -> Vec<String> {
    let mut open = None;
    let mut texts = Vec::new();
    for event in live_events(seen) {
        match event.kind {
            EventKind::Delta { message_id, delta } => {
                assert_eq!(delta.block(), 0);
                open = Some(message_id);
                texts.push(format!("{delta:?}"));
            }
            EventKind::MessageEnd { message } => {
                if matches!(message.message, Message::Assistant { .. }) {
                    assert_eq!(open.take(), Some(message.message_id.clone()));
                }
            }
            _ => {}
        }
    }
    texts
}

// proves: LOOP-70, LOOP-72, LOOP-73, LOOP-74, LOOP-75, LOOP-76, LOOP-77, LOOP-12, LOOP-71, LOOP-92, UP-17, LOOP-11
#[tokio::test(start_paused = true)]
async fn each_strategy_selects_its_winner() {
    for (pick, place, model) in [
        (SelectionStrategy::First, 0, "puppet-a.1"),
        (SelectionStrategy::FewestTokens, 2, "puppet-b.3"),
        (SelectionStrategy::MostTokens, 1, "puppet-c.2"),
    ] {
        let world = fixture_with(&three_models());
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        // The order of the candidates is not that of their ids.
        let result = evaluate(&session, &["a", "c", "b"], pick).await.unwrap();
        assert_eq!(
            loop_ids_and_winner(&result),
            (vec!["puppet-a.1", "puppet-c.2", "puppet-b.3"], place)
        );
        assert_eq!(result.usage, usage_of(30, 15));
        // Branches are told apart by what they ran with.
        let configs = result.loops.iter().map(|record| {
            let config = record.config.as_ref().expect("a snapshot");
            (config.provider.as_str(), config.model.as_str())
        });
        let expected = [("puppet", "a"), ("puppet", "c"), ("puppet", "b")];
        assert_eq!(configs.collect::<Vec<_>>(), expected);
        for record in &result.loops {
            let group = record.parallel_group.as_ref().unwrap();
            assert_eq!(
                group.all_loop_ids,
                result.loop_ids().cloned().collect::<Vec<_>>()
            );
            assert_eq!(short_id(&group.selected_loop_id), model);
            assert_eq!(group.selected_config_index as usize, place);
            assert_eq!(
                (group.evaluation_usage, &group.judge),
                (usage_of(0, 0), &None)
            );
            assert_eq!(record.status, LoopStatus::Completed);
            let won = short_id(&record.loop_id) == model;
            assert_eq!((record.on_chain, group.is_selected), (won, won));
            assert_eq!(oracle::check_stored(&record.events), Ok(()));
        }
        // The client reads the winner alone, once, in a stream that is in order.
        let seen = live_events(&drain(&mut seen));
        let stored = world.loops(session.id()).await;
        let shown: Vec<&str> = seen.iter().map(|event| short_id(&event.loop_id)).collect();
        assert!(shown.iter().all(|id| *id == model), "{shown:?}");
        assert_eq!(oracle::check_live(&seen), Ok(()));
        // Announced with all others, and ended after the ends of all.
        let first = &seen.first().unwrap().kind;
        let agent_id = "turnery".to_owned();
        let loop_ids: Vec<LoopId> = result.loop_ids().cloned().collect();
        assert_eq!(*first, EventKind::ParallelStart { agent_id, loop_ids });
        let EventKind::ParallelEnd { winner, judge, .. } = &seen.last().unwrap().kind else {
            panic!("{seen:?}");
        };
        assert_eq!((short_id(winner), judge), (model, &None));
        assert_eq!(stored, result.loops);
        run_text(&session, "plain").await;
        let stored = world.loops(session.id()).await;
        assert_eq!(stored[3].parallel_group, None);
        assert_eq!(short_id(&stored[3].loop_id), "puppet-one.4");
    }
}

// proves: S6, R4, C-15, LOOP-22, UP-17
#[tokio::test(start_paused = true)]
async fn group_is_committed_once_with_only_winner_on_chain() {
    let models = three_models();
    let world = fixture_with(&models);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hello").await;
    let first = world.store.info(session.id()).await.unwrap();
    drain(&mut seen);
    let result = evaluate(&session, &["a", "b", "c"], SelectionStrategy::FewestTokens)
        .await
        .unwrap();
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!((first.head_version, info.head_version), (1, 2));
    assert_eq!(info.tip_loop_id, Some(result.loops[1].loop_id.clone()));
    // All begin from the same conversation.
    for model in &models {
        assert_eq!(model.request(0), ["hello", "", "which?"]);
    }
    for record in &result.loops {
        assert_eq!(record.continuation_kind, ContinuationKind::Initial);
        assert_eq!(record.parent_loop_id, first.tip_loop_id);
    }
    assert_eq!(
        messages_read(&drain(&mut seen)),
        ["Text { block: 0, text: \"from b\" }"]
    );
    run_text(&session, "next").await;
    let expected = ["hello", "", "which?", "from b", "next"];
    assert_eq!(world.model.request(1), expected);
    // A reloaded session is in the same state.
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    loaded
        .rerun(None, PromptOptions::default())
        .unwrap()
        .result()
        .await
        .unwrap();
    assert_eq!(world.model.request(2), expected);
}

/// A losing answer can be continued.
// proves: UP-17
#[tokio::test(start_paused = true)]
async fn losers_are_kept_for_branching() {
    let world = fixture_with(&three_models());
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &["a", "b"], SelectionStrategy::First)
        .await
        .unwrap();
    let other = result.loops[1].loop_id.clone();
    let input = vec![Content::text("but why?")];
    let ticket = session.branch(other, input, PromptOptions::default());
    ticket.unwrap().result().await.unwrap();
    assert_eq!(world.model.request(0), ["which?", "from b", "but why?"]);
    // A reload shows the same.
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    run_text(&loaded, "I see").await;
    let expected = ["which?", "from b", "but why?", "", "I see"];
    assert_eq!(world.model.request(1), expected);
}

// proves: LOOP-76, I10, I5, D-14
#[tokio::test(start_paused = true)]
async fn judge_sees_only_answers_and_is_counted_once() {
    let [a, b, c] = three_models();
    let wise = TestModel::new(
        "wise",
        &[&[ModelAct::Say("Answer 3."), ModelAct::Spend(100, 2)]],
    );
    let world = fixture_with(&[a, b, c, Arc::clone(&wise)]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hello").await;
    let result = evaluate(&session, &["a", "b", "c"], judge("wise"))
        .await
        .unwrap();
    assert_eq!(loop_ids_and_winner(&result).1, 2);
    for record in &result.loops {
        let group = record.parallel_group.as_ref().unwrap();
        assert_eq!(group.evaluation_usage, usage_of(100, 2));
        assert_eq!(group.judge.as_deref(), Some("puppet/wise"));
    }
    assert_eq!(result.usage, usage_of(30, 15));
    let report = session.usage_report().await.unwrap();
    assert_eq!(report.by_source()[source::EVALUATION], usage_of(100, 2));
    assert_eq!(report.by_source()[source::TURN], usage_of(30, 15));
    assert_eq!(report.by_model()["puppet/wise"], usage_of(100, 2));
    assert_eq!(report.total(), usage_of(130, 17));
    let shown = wise.request(0);
    assert_eq!(
        shown,
        [
            "<earlier>\nuser: hello\n</earlier>\n\n<request>\nwhich?\n</request>\n\n\
          <answer number=\"1\">\nfrom a\n</answer>\n\n<answer number=\"2\">\nfrom b\n</answer>\n\n\
          <answer number=\"3\">\nfrom c\n</answer>\n\nWhich answer is best? Reply with 1 to 3."
        ]
    );
}

// proves: UP-17
#[tokio::test(start_paused = true)]
async fn undecided_judge_falls_back_to_first() {
    for (acts, why, spent) in [
        (&[ModelAct::Fail][..], "too much to do", usage_of(0, 0)),
        (
            &[ModelAct::Say("none"), ModelAct::Spend(4, 1)],
            "it named no answer",
            usage_of(4, 1),
        ),
        (&[ModelAct::Say("9")], "it named no answer", usage_of(0, 0)),
        (&[ModelAct::Panic], "bug in turnery", usage_of(0, 0)),
    ] {
        let [a, b, _] = three_models();
        let world = fixture_with(&[a, b, TestModel::new("wise", &[acts])]);
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        let result = evaluate(&session, &["b", "a"], judge("wise"))
            .await
            .unwrap();
        assert_eq!(loop_ids_and_winner(&result).1, 0);
        let issues: Vec<&str> = result.issues().collect();
        assert_eq!(issues.len(), 1, "{issues:?}");
        assert!(issues[0].starts_with("the judge puppet/wise did not choose ("));
        assert!(issues[0].contains(why), "{issues:?}");
        let group = result.loops[1].parallel_group.clone().unwrap();
        assert_eq!(group.evaluation_usage, spent);
        let seen = live_events(&drain(&mut seen));
        assert_eq!(oracle::check_live(&seen), Ok(()));
        let is_issue = |kind: &EventKind| matches!(kind, EventKind::Issue { .. });
        assert_eq!(seen.iter().filter(|event| is_issue(&event.kind)).count(), 1);
        for record in &result.loops {
            assert_eq!(oracle::check_stored(&record.events), Ok(()));
        }
    }
}

// proves: UP-17
#[tokio::test(start_paused = true)]
async fn failed_candidate_is_kept_and_never_wins() {
    let failing = TestModel::new("bad", &[&[ModelAct::Fail]]);
    let [a, _, _] = three_models();
    let wise = TestModel::new("wise", &[]);
    let world = fixture_with(&[failing, a, Arc::clone(&wise)]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &["bad", "a"], judge("wise"))
        .await
        .unwrap();
    assert_eq!(
        loop_ids_and_winner(&result),
        (vec!["puppet-bad.1", "puppet-a.2"], 1)
    );
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    assert!(matches!(
        result.loops[0].outcome,
        Some(Outcome::Stopped(TurnStop::ProviderError(_)))
    ));
    // There was nothing to choose.
    assert_eq!(wise.requests.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn first_error_is_reported_if_all_fail() {
    let bad = TestModel::new("bad", &[&[ModelAct::Fail], &[ModelAct::Fail]]);
    let world = fixture_with(&[bad]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &["bad", "bad"], SelectionStrategy::MostTokens)
        .await
        .unwrap();
    assert_eq!(
        loop_ids_and_winner(&result),
        (vec!["puppet-bad.1", "puppet-bad.2"], 0)
    );
    assert!(matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::ProviderError(_))
    ));
    assert_eq!(world.head(&session).await, 1);
}

// proves: LASH-91
#[tokio::test(start_paused = true)]
async fn cancel_ends_all_candidates_and_commits_once() {
    let cancel = CancellationToken::new();
    let begun = Arc::new(Notify::new());
    let hang = TestModel::new("x", &[&[ModelAct::Say("half"), ModelAct::Hang]]);
    let also = TestModel::new(
        "y",
        &[&[ModelAct::Wait(Arc::clone(&begun)), ModelAct::Hang]],
    );
    let world = fixture_with(&[Arc::clone(&hang), Arc::clone(&also)]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let run = evaluate_with_cancel(
        &session,
        &["x", "y"],
        SelectionStrategy::First,
        cancel.clone(),
    );
    let (result, ()) = tokio::join!(run, async {
        yield_while(|| {
            *also.active_calls.lock().unwrap() == 0 || *hang.active_calls.lock().unwrap() == 0
        })
        .await;
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(
        loop_ids_and_winner(&result),
        (vec!["puppet-x.1", "puppet-y.2"], 0)
    );
    assert_eq!(
        (
            *hang.active_calls.lock().unwrap(),
            *also.active_calls.lock().unwrap()
        ),
        (0, 0)
    );
    assert_eq!(world.head(&session).await, 1);
    assert_eq!(world.loops(session.id()).await, result.loops);
}

#[tokio::test(start_paused = true)]
async fn cancel_keeps_finished_candidates_and_ends_judge() {
    let cancel = CancellationToken::new();
    let [a, b, _] = three_models();
    let wise = TestModel::new("wise", &[&[ModelAct::Hang]]);
    let world = fixture_with(&[a, b, Arc::clone(&wise)]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let run = evaluate_with_cancel(&session, &["b", "a"], judge("wise"), cancel.clone());
    let (result, ()) = tokio::join!(run, async {
        yield_while(|| *wise.active_calls.lock().unwrap() == 0).await;
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!(loop_ids_and_winner(&result).1, 0);
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    assert_eq!(*wise.active_calls.lock().unwrap(), 0);
}

// proves: R4, S5
#[tokio::test(start_paused = true)]
async fn unstored_group_is_recovered() {
    let store = FailingStore::new();
    let world = EmbeddingFixture::with_models(store.clone(), &three_models());
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    store.failing_commits.store(ALWAYS, Ordering::SeqCst);
    let lost = evaluate(&session, &["a", "b"], SelectionStrategy::FewestTokens).await;
    let why = CommitError::Store("the disk is full".to_owned());
    assert_eq!(lost, Err(PromptError::Lost(why)));
    assert_eq!(live_events(&drain(&mut seen)), []);
    store.failing_commits.store(0, Ordering::SeqCst);
    run_text(&session, "next").await;
    // The winner, by the journal.
    let request = world.model.request(0);
    let [asked, answer, notice, next] = &request[..] else {
        panic!("{request:?}");
    };
    assert_eq!([asked, answer, next], ["which?", "from b", "next"]);
    assert!(notice.contains("interrupted"), "{notice}");
}

#[tokio::test(start_paused = true)]
async fn candidates_are_read_only_and_never_ask() {
    let rings = TestModel::new(
        "r",
        &[
            &[ModelAct::Call("1", "ring")],
            &[ModelAct::Say("I may not")],
        ],
    );
    let looks = TestModel::new(
        "l",
        &[&[ModelAct::Call("1", "look")], &[ModelAct::Say("I looked")]],
    );
    let world = fixture_with(&[rings, looks]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    session.set_mode(turnery_tools::Mode::Auto).await.unwrap();
    evaluate(&session, &["r", "l"], SelectionStrategy::First)
        .await
        .unwrap();
    assert_eq!(*world.ran.lock().unwrap(), ["look"]);
    assert_eq!(world.client.asked.lock().unwrap().len(), 0);
    assert_eq!(session.options().mode, turnery_tools::Mode::Auto);
}

// proves: UP-15
#[tokio::test(start_paused = true)]
async fn no_candidates_means_session_model() {
    let world = fixture_with(&three_models());
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &[], judge("a")).await.unwrap();
    assert_eq!(loop_ids_and_winner(&result), (vec!["puppet-one.1"], 0));
    let unknown = evaluate(&session, &["a", "nobody"], SelectionStrategy::First).await;
    assert!(matches!(unknown, Err(PromptError::Model(_))), "{unknown:?}");
    let ticket = session.evaluate(
        Vec::new(),
        candidates(&["a"]),
        SelectionStrategy::First,
        PromptOptions::default(),
    );
    let refused = ticket.unwrap().result().await;
    assert!(
        matches!(refused, Err(PromptError::Continue(_))),
        "{refused:?}"
    );
}

/// The prompt continues in the frame that the winner opened, with the winner's model.
// proves: LASH-13
#[tokio::test(start_paused = true)]
async fn frame_of_winner_is_entered() {
    let [a, ..] = three_models();
    let acts: &[&[ModelAct]] = &[&[ModelAct::Call("1", "switch")], &[ModelAct::Say("dug")]];
    let digs = TestModel::new("d", acts);
    let world = fixture_with(&[Arc::clone(&digs), a]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(&session, &["d", "a"], SelectionStrategy::First)
        .await
        .unwrap();
    let ids: Vec<&str> = result.loop_ids().map(short_id).collect();
    assert_eq!(ids, ["puppet-d.1", "puppet-a.2", "puppet-d.3"]);
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    assert_eq!(digs.request(1), ["dig here"]);
    assert_eq!(result.loops[2].parallel_group, None);
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(
        (info.head_version, info.title.as_deref()),
        (2, Some("which?"))
    );
    let titles = drain(&mut seen).into_iter();
    let titles: Vec<_> = titles
        .filter_map(|seen| match seen {
            ShownItem::Info(title) => title,
            ShownItem::Live(_) | ShownItem::Replay(_) => None,
        })
        .collect();
    assert_eq!(titles, ["which?"]);
}

/// Interjections during an evaluation go to the next prompt.
#[tokio::test(start_paused = true)]
async fn interjection_during_evaluation_becomes_next_prompt() {
    let go = Arc::new(Notify::new());
    let waits = TestModel::new(
        "w",
        &[&[ModelAct::Wait(Arc::clone(&go)), ModelAct::Say("done")]],
    );
    let world = fixture_with(&[Arc::clone(&waits)]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let run = evaluate(&session, &["w"], SelectionStrategy::First);
    let (result, ()) = tokio::join!(run, async {
        yield_while(|| *waits.active_calls.lock().unwrap() == 0).await;
        session.steer(vec![Content::text("and tests")]).unwrap();
        go.notify_one();
    });
    assert_eq!(loop_ids_and_winner(&result.unwrap()).1, 0);
    run_text(&session, "last").await;
    assert_eq!(world.model.request(0), ["which?", "done", "and tests"]);
}

/// Activities are observed while candidates run. The second finishes long before the first, but its end is reported
/// after it.
// proves: R4
#[tokio::test(start_paused = true)]
async fn candidate_ends_are_shown_in_order() {
    let long = std::time::Duration::from_secs(60);
    let slow = TestModel::new(
        "slow",
        &[&[ModelAct::Pause(long), ModelAct::Say("from slow")]],
    );
    let [a, b, _] = three_models();
    let world = fixture_with(&[slow, a, b]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let mut observer = session.observe(None);
    let models = ["slow", "a", "b"];
    evaluate(&session, &models, SelectionStrategy::FewestTokens)
        .await
        .unwrap();
    let mut observed = Vec::new();
    while observed
        .last()
        .is_none_or(|last| last != "winner puppet-b.3")
    {
        match observer.next().await.unwrap() {
            ObservedEvent::Committed { loop_id, .. } => {
                observed.push(format!("end of {}", short_id(&loop_id)))
            }
            ObservedEvent::Activity(activity) => {
                observed.push(format!("activity of {}", short_id(&activity.id.loop_id)))
            }
            ObservedEvent::CandidatesStarted { loop_ids } => {
                observed.push(format!("start of {}", loop_ids.len()))
            }
            ObservedEvent::WinnerSelected { loop_id } => {
                observed.push(format!("winner {}", short_id(&loop_id)))
            }
            other => panic!("{other:?}"),
        }
    }
    observed.dedup();
    assert_eq!(
        observed,
        [
            "start of 3",
            "activity of puppet-a.2",
            "activity of puppet-b.3",
            "activity of puppet-slow.1",
            "end of puppet-slow.1",
            "end of puppet-a.2",
            "end of puppet-b.3",
            "winner puppet-b.3"
        ]
    );
}
