//! Evaluating: one prompt under several configurations, one answer, one commit.

use crate::{
    failing_store::{FOR_GOOD, FailingStore},
    world::{Act, Puppet, ROOM, Seen, World, drain, live, say},
};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::Notify;
use turnery_agent::{
    CancellationToken, Candidate, Observed, Pick, PromptError, PromptOptions, PromptResult, Session,
};
use turnery_engine::{
    CommitFault, Content, ContinuationKind, EventKind, LoopId, LoopRecord, LoopStatus, Message,
    Outcome, TurnStop, Usage, oracle, usage::source,
};
use turnery_models::ModelName;
use turnery_store::MemoryStore;

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

pub(crate) fn three() -> [Arc<Puppet>; 3] {
    [
        Puppet::new("a", &[&[Act::Say("from a"), Act::Spend(10, 5)]]),
        Puppet::new("b", &[&[Act::Say("from b"), Act::Spend(10, 1)]]),
        Puppet::new("c", &[&[Act::Say("from c"), Act::Spend(10, 9)]]),
    ]
}

pub(crate) fn world(others: &[Arc<Puppet>]) -> World {
    World::among(Arc::new(MemoryStore::new()), others)
}

pub(crate) fn tried(models: &[&str]) -> Vec<Candidate> {
    let name =
        |model: &&str| Candidate::from(format!("puppet/{model}").parse::<ModelName>().unwrap());
    models.iter().map(name).collect()
}

pub(crate) async fn evaluate(
    session: &Session,
    models: &[&str],
    pick: Pick,
) -> Result<PromptResult, PromptError> {
    cancelled_by(session, models, pick, CancellationToken::new()).await
}

pub(crate) async fn cancelled_by(
    session: &Session,
    models: &[&str],
    pick: Pick,
    cancel: CancellationToken,
) -> Result<PromptResult, PromptError> {
    let options = PromptOptions::cancelled_by(cancel);
    let input = vec![Content::text("which?")];
    let ticket = session.evaluate(input, tried(models), pick, options);
    ticket.unwrap().result().await
}

fn judge(name: &str) -> Pick {
    Pick::Judge(Some(format!("puppet/{name}").parse().unwrap()))
}

/// The loops, each without its session, and the winner's place.
pub(crate) fn made(result: &PromptResult) -> (Vec<&str>, usize) {
    let ids = result.loop_ids().map(short).collect();
    let selected = |record: &&Arc<LoopRecord>| record.parallel_group.as_ref().unwrap().is_selected;
    let mut winners = result.loops.iter().enumerate();
    let (place, _) = winners.find(|(_, record)| selected(record)).unwrap();
    assert_eq!(result.loops.iter().filter(selected).count(), 1);
    (ids, place)
}

pub(crate) fn short(id: &LoopId) -> &str {
    id.as_str().split_once('.').unwrap().1
}

/// What a client has read of the model, streamed or settled, each message once.
fn read(seen: &[Seen]) -> Vec<String> {
    let mut open = None;
    let mut texts = Vec::new();
    for event in live(seen) {
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

// proves: LOOP-70, LOOP-72, LOOP-73, LOOP-74, LOOP-75, LOOP-76, LOOP-77, LOOP-12, LOOP-71, UP-17
#[tokio::test(start_paused = true)]
async fn each_strategy_has_its_winner() {
    for (pick, place, model) in [
        (Pick::First, 0, "puppet-a.1"),
        (Pick::FewestTokens, 1, "puppet-b.2"),
        (Pick::MostTokens, 2, "puppet-c.3"),
    ] {
        let world = world(&three());
        let (session, mut seen) = world.session(ROOM).await;
        let result = evaluate(&session, &["a", "b", "c"], pick).await.unwrap();
        assert_eq!(
            made(&result),
            (vec!["puppet-a.1", "puppet-b.2", "puppet-c.3"], place)
        );
        assert_eq!(result.usage, usage(30, 15));
        for record in &result.loops {
            let group = record.parallel_group.as_ref().unwrap();
            assert_eq!(
                group.all_loop_ids,
                result.loop_ids().cloned().collect::<Vec<_>>()
            );
            assert_eq!(short(&group.selected_loop_id), model);
            assert_eq!(group.selected_config_index as usize, place);
            assert_eq!((group.evaluation_usage, &group.judge), (usage(0, 0), &None));
            assert_eq!(record.status, LoopStatus::Completed);
            let won = short(&record.loop_id) == model;
            assert_eq!((record.on_chain, group.is_selected), (won, won));
            assert_eq!(oracle::check_stored(&record.events), Ok(()));
        }
        // The client reads the winner alone, once, in a stream that is in order.
        let seen = live(&drain(&mut seen));
        let stored = world.store.loops(session.id(), 0).await.unwrap();
        let shown: Vec<&str> = seen.iter().map(|event| short(&event.loop_id)).collect();
        assert!(shown.iter().all(|id| *id == model), "{shown:?}");
        assert_eq!(oracle::check(&seen), Ok(()));
        // Announced with all others, and concluded when the ends of all are told.
        let first = &seen.first().unwrap().kind;
        let agent_id = "turnery".to_owned();
        let loop_ids: Vec<LoopId> = result.loop_ids().cloned().collect();
        assert_eq!(*first, EventKind::ParallelStart { agent_id, loop_ids });
        let EventKind::ParallelEnd { winner, judge, .. } = &seen.last().unwrap().kind else {
            panic!("{seen:?}");
        };
        assert_eq!((short(winner), judge), (model, &None));
        assert_eq!(stored, result.loops);
        say(&session, "plain").result().await.unwrap();
        let stored = world.store.loops(session.id(), 0).await.unwrap();
        assert_eq!(stored[3].parallel_group, None);
        assert_eq!(short(&stored[3].loop_id), "puppet-one.4");
    }
}

// proves: S6, R4, C-15, LOOP-22
#[tokio::test(start_paused = true)]
async fn a_group_is_committed_once_and_the_next_prompt_sees_the_winner_only() {
    let world = world(&three());
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "hello").result().await.unwrap();
    let first = world.store.info(session.id()).await.unwrap();
    drain(&mut seen);
    let result = evaluate(&session, &["a", "b", "c"], Pick::FewestTokens)
        .await
        .unwrap();
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!((first.head_version, info.head_version), (1, 2));
    assert_eq!(info.tip_loop_id, Some(result.loops[1].loop_id.clone()));
    for record in &result.loops {
        assert_eq!(record.continuation_kind, ContinuationKind::Initial);
        assert_eq!(record.parent_loop_id, first.tip_loop_id);
    }
    assert_eq!(
        read(&drain(&mut seen)),
        ["Text { block: 0, text: \"from b\" }"]
    );
    say(&session, "next").result().await.unwrap();
    let expected = ["hello", "", "which?", "from b", "next"];
    assert_eq!(world.puppet.request(1), expected);
    // A session that is loaded anew stands where this one does.
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    loaded
        .rerun(None, PromptOptions::default())
        .unwrap()
        .result()
        .await
        .unwrap();
    assert_eq!(world.puppet.request(2), expected);
}

/// Another answer can be gone on from after all.
// proves: UP-17
#[tokio::test(start_paused = true)]
async fn the_others_are_kept_and_can_be_gone_on_from() {
    let world = world(&three());
    let (session, _seen) = world.session(ROOM).await;
    let result = evaluate(&session, &["a", "b"], Pick::First).await.unwrap();
    let other = result.loops[1].loop_id.clone();
    let input = vec![Content::text("but why?")];
    let ticket = session.branch(other, input, PromptOptions::default());
    ticket.unwrap().result().await.unwrap();
    assert_eq!(world.puppet.request(0), ["which?", "from b", "but why?"]);
    // And so it is for whoever loads the session.
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    say(&loaded, "I see").result().await.unwrap();
    let expected = ["which?", "from b", "but why?", "", "I see"];
    assert_eq!(world.puppet.request(1), expected);
}

// proves: LOOP-76, I10, I5, D-14
#[tokio::test(start_paused = true)]
async fn a_judge_sees_the_answers_alone_and_is_paid_for_once() {
    let [a, b, c] = three();
    let wise = Puppet::new("wise", &[&[Act::Say("Answer 3."), Act::Spend(100, 2)]]);
    let world = world(&[a, b, c, Arc::clone(&wise)]);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "hello").result().await.unwrap();
    let result = evaluate(&session, &["a", "b", "c"], judge("wise"))
        .await
        .unwrap();
    assert_eq!(made(&result).1, 2);
    for record in &result.loops {
        let group = record.parallel_group.as_ref().unwrap();
        assert_eq!(group.evaluation_usage, usage(100, 2));
        assert_eq!(group.judge.as_deref(), Some("puppet/wise"));
    }
    assert_eq!(result.usage, usage(30, 15));
    let report = session.usage_report().await.unwrap();
    assert_eq!(report.by_source()[source::EVALUATION], usage(100, 2));
    assert_eq!(report.by_source()[source::TURN], usage(30, 15));
    assert_eq!(report.by_model()["puppet/wise"], usage(100, 2));
    assert_eq!(report.total(), usage(130, 17));
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
async fn a_judge_that_does_not_choose_leaves_it_to_the_first() {
    for (acts, why, spent) in [
        (&[Act::Fail][..], "too much to do", usage(0, 0)),
        (
            &[Act::Say("none"), Act::Spend(4, 1)],
            "it named no answer",
            usage(4, 1),
        ),
        (&[Act::Say("9")], "it named no answer", usage(0, 0)),
        (&[Act::Panic], "fault of turnery", usage(0, 0)),
    ] {
        let [a, b, _] = three();
        let world = world(&[a, b, Puppet::new("wise", &[acts])]);
        let (session, mut seen) = world.session(ROOM).await;
        let result = evaluate(&session, &["b", "a"], judge("wise"))
            .await
            .unwrap();
        assert_eq!(made(&result).1, 0);
        let issues: Vec<&str> = result.issues().collect();
        assert_eq!(issues.len(), 1, "{issues:?}");
        assert!(issues[0].starts_with("the judge puppet/wise did not choose ("));
        assert!(issues[0].contains(why), "{issues:?}");
        let group = result.loops[1].parallel_group.clone().unwrap();
        assert_eq!(group.evaluation_usage, spent);
        let seen = live(&drain(&mut seen));
        assert_eq!(oracle::check(&seen), Ok(()));
        let told = |kind: &EventKind| matches!(kind, EventKind::Issue { .. });
        assert_eq!(seen.iter().filter(|event| told(&event.kind)).count(), 1);
        for record in &result.loops {
            assert_eq!(oracle::check_stored(&record.events), Ok(()));
        }
    }
}

// proves: UP-17
#[tokio::test(start_paused = true)]
async fn a_candidate_that_fails_is_kept_and_never_chosen() {
    let failing = Puppet::new("bad", &[&[Act::Fail]]);
    let [a, _, _] = three();
    let wise = Puppet::new("wise", &[]);
    let world = world(&[failing, a, Arc::clone(&wise)]);
    let (session, _seen) = world.session(ROOM).await;
    let result = evaluate(&session, &["bad", "a"], judge("wise"))
        .await
        .unwrap();
    assert_eq!(made(&result), (vec!["puppet-bad.1", "puppet-a.2"], 1));
    assert!(matches!(result.outcome, Outcome::Finished(_)));
    assert_eq!(
        result.loops[0].outcome,
        Some(Outcome::Stopped(TurnStop::ProviderError))
    );
    // There was nothing to choose.
    assert_eq!(wise.requests.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn when_all_fail_the_first_failure_is_told() {
    let bad = Puppet::new("bad", &[&[Act::Fail], &[Act::Fail]]);
    let world = world(&[bad]);
    let (session, _seen) = world.session(ROOM).await;
    let result = evaluate(&session, &["bad", "bad"], Pick::MostTokens)
        .await
        .unwrap();
    assert_eq!(made(&result), (vec!["puppet-bad.1", "puppet-bad.2"], 0));
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::ProviderError));
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(info.head_version, 1);
}

// proves: LASH-91
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_all_and_is_stored_once() {
    let cancel = CancellationToken::new();
    let begun = Arc::new(Notify::new());
    let hang = Puppet::new("x", &[&[Act::Say("half"), Act::Hang]]);
    let also = Puppet::new("y", &[&[Act::Wait(Arc::clone(&begun)), Act::Hang]]);
    let world = world(&[Arc::clone(&hang), Arc::clone(&also)]);
    let (session, _seen) = world.session(ROOM).await;
    let run = cancelled_by(&session, &["x", "y"], Pick::First, cancel.clone());
    let (result, ()) = tokio::join!(run, async {
        while *also.alive.lock().unwrap() == 0 || *hang.alive.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(made(&result), (vec!["puppet-x.1", "puppet-y.2"], 0));
    assert_eq!(
        (*hang.alive.lock().unwrap(), *also.alive.lock().unwrap()),
        (0, 0)
    );
    let info = world.store.info(session.id()).await.unwrap();
    assert_eq!(info.head_version, 1);
    assert_eq!(
        world.store.loops(session.id(), 0).await.unwrap(),
        result.loops
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_spares_what_is_finished_and_ends_the_judge() {
    let cancel = CancellationToken::new();
    let [a, b, _] = three();
    let wise = Puppet::new("wise", &[&[Act::Hang]]);
    let world = world(&[a, b, Arc::clone(&wise)]);
    let (session, _seen) = world.session(ROOM).await;
    let run = cancelled_by(&session, &["b", "a"], judge("wise"), cancel.clone());
    let (result, ()) = tokio::join!(run, async {
        while *wise.alive.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!(made(&result).1, 0);
    assert!(matches!(result.outcome, Outcome::Finished(_)));
    assert_eq!(*wise.alive.lock().unwrap(), 0);
}

// proves: R4, S5
#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_stored_comes_back() {
    let store = FailingStore::new();
    let world = World::among(store.clone(), &three());
    let (session, mut seen) = world.session(ROOM).await;
    store.commit.store(FOR_GOOD, Ordering::SeqCst);
    let lost = evaluate(&session, &["a", "b"], Pick::FewestTokens).await;
    let why = CommitFault::Store("the disk is full".to_owned());
    assert_eq!(lost, Err(PromptError::Lost(why)));
    assert_eq!(live(&drain(&mut seen)), []);
    store.commit.store(0, Ordering::SeqCst);
    say(&session, "next").result().await.unwrap();
    // The winner, by the journal.
    let request = world.puppet.request(0);
    let [asked, answer, notice, next] = &request[..] else {
        panic!("{request:?}");
    };
    assert_eq!([asked, answer, next], ["which?", "from b", "next"]);
    assert!(notice.contains("interrupted"), "{notice}");
}

#[tokio::test(start_paused = true)]
async fn candidates_change_nothing_and_ask_nobody() {
    let rings = Puppet::new("r", &[&[Act::Call("1", "ring")], &[Act::Say("I may not")]]);
    let looks = Puppet::new("l", &[&[Act::Call("1", "look")], &[Act::Say("I looked")]]);
    let world = world(&[rings, looks]);
    let (session, _seen) = world.session(ROOM).await;
    session.set_mode(turnery_tools::Mode::Auto).await.unwrap();
    evaluate(&session, &["r", "l"], Pick::First).await.unwrap();
    assert_eq!(*world.ran.lock().unwrap(), ["look"]);
    assert_eq!(world.person.asked.lock().unwrap().len(), 0);
    assert_eq!(session.options().mode, turnery_tools::Mode::Auto);
}

// proves: UP-15
#[tokio::test(start_paused = true)]
async fn without_candidates_the_session_itself_is_tried_and_a_stranger_is_refused() {
    let world = world(&three());
    let (session, _seen) = world.session(ROOM).await;
    let result = evaluate(&session, &[], judge("a")).await.unwrap();
    assert_eq!(made(&result), (vec!["puppet-one.1"], 0));
    let unknown = evaluate(&session, &["a", "nobody"], Pick::First).await;
    assert!(matches!(unknown, Err(PromptError::Model(_))), "{unknown:?}");
    let ticket = session.evaluate(
        Vec::new(),
        tried(&["a"]),
        Pick::First,
        PromptOptions::default(),
    );
    let refused = ticket.unwrap().result().await;
    assert!(
        matches!(refused, Err(PromptError::Continue(_))),
        "{refused:?}"
    );
}

/// The prompt goes on in the frame that the winner opened, with the winner's model.
// proves: LASH-13
#[tokio::test(start_paused = true)]
async fn a_winner_that_opens_a_frame_is_followed_into_it() {
    let [a, ..] = three();
    let acts: &[&[Act]] = &[&[Act::Call("1", "switch")], &[Act::Say("dug")]];
    let digs = Puppet::new("d", acts);
    let world = world(&[Arc::clone(&digs), a]);
    let (session, mut seen) = world.session(ROOM).await;
    let result = evaluate(&session, &["d", "a"], Pick::First).await.unwrap();
    let ids: Vec<&str> = result.loop_ids().map(short).collect();
    assert_eq!(ids, ["puppet-d.1", "puppet-a.2", "puppet-d.3"]);
    assert!(matches!(result.outcome, Outcome::Finished(_)));
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
            Seen::Info(title) => title,
            Seen::Live(_) | Seen::Replay(_) => None,
        })
        .collect();
    assert_eq!(titles, ["which?"]);
}

/// What is said meanwhile is for what comes next.
#[tokio::test(start_paused = true)]
async fn a_word_said_meanwhile_becomes_the_next_prompt() {
    let go = Arc::new(Notify::new());
    let waits = Puppet::new("w", &[&[Act::Wait(Arc::clone(&go)), Act::Say("done")]]);
    let world = world(&[Arc::clone(&waits)]);
    let (session, _seen) = world.session(ROOM).await;
    let run = evaluate(&session, &["w"], Pick::First);
    let (result, ()) = tokio::join!(run, async {
        while *waits.alive.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        session.steer(vec![Content::text("and tests")]).unwrap();
        go.notify_one();
    });
    assert_eq!(made(&result.unwrap()).1, 0);
    say(&session, "last").result().await.unwrap();
    assert_eq!(world.puppet.request(0), ["which?", "done", "and tests"]);
}

/// The second is done long before the first, and is told of after it all the same.
// proves: R4
#[tokio::test(start_paused = true)]
async fn ends_are_told_in_the_order_of_the_configurations() {
    let long = std::time::Duration::from_secs(60);
    let slow = Puppet::new("slow", &[&[Act::Pause(long), Act::Say("from slow")]]);
    let [a, b, _] = three();
    let world = world(&[slow, a, b]);
    let (session, _seen) = world.session(ROOM).await;
    let mut observer = session.observe(None);
    let models = ["slow", "a", "b"];
    evaluate(&session, &models, Pick::FewestTokens)
        .await
        .unwrap();
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "end of puppet-b.3") {
        match observer.next().await.unwrap() {
            Observed::Committed { loop_id, .. } => told.push(format!("end of {}", short(&loop_id))),
            Observed::Activity(_) => told.push("activity".to_owned()),
            other => panic!("{other:?}"),
        }
    }
    told.dedup();
    assert_eq!(
        told,
        [
            "end of puppet-slow.1",
            "end of puppet-a.2",
            "activity",
            "end of puppet-b.3"
        ]
    );
}
