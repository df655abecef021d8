//! A simulation of the session task under random worlds: what the model says, what the tools do, who
//! answers, how fast the client reads, when somebody cancels. Time is virtual, the seed is proptest's.

use crate::world::{Act, World, drain, live, start};
use proptest::prelude::*;
use std::time::Duration;
use turnery_agent::{Answer, CancellationToken};
use turnery_engine::{EventKind, LoopStatus, Outcome, TurnStop, oracle};

/// One prompt of a simulated session.
#[derive(Clone, Debug)]
struct Planned {
    turns: Vec<Vec<u8>>,
    cancel_after: Option<u64>,
}

fn act(what: u8) -> Act {
    match what % 10 {
        0..=3 => Act::Say("word"),
        4 => Act::Call("c", "look"),
        5 => Act::Call("c", "ring"),
        6 => Act::Call("c", "hang"),
        7 => Act::Call("c", "stubborn"),
        8 => Act::Fail,
        _ => Act::Pause(Duration::from_millis(7)),
    }
}

fn answer(what: u8) -> Answer {
    match what % 4 {
        0 => Answer::Chose("allow_once".to_owned()),
        1 => Answer::Chose("reject_always".to_owned()),
        2 => Answer::NoAnswer("no".to_owned()),
        _ => Answer::Cancelled,
    }
}

fn planned() -> impl Strategy<Value = Planned> {
    let turn = prop::collection::vec(any::<u8>(), 0..6);
    let turns = prop::collection::vec(turn, 1..4);
    // Half of the prompts are cancelled at once or soon; all others in the end, since a tool may hang.
    (turns, prop::option::of(0..40u64)).prop_map(|(turns, cancel_after)| Planned {
        turns,
        cancel_after,
    })
}

/// A session is never found in the middle of something, and no prompt takes longer than this.
const LONGEST: Duration = Duration::from_secs(30);

async fn simulate(
    prompts: &[Planned],
    answers: &[u8],
    room: usize,
    pace: u64,
) -> Result<(), String> {
    let script: Vec<Vec<Act>> = prompts
        .iter()
        .flat_map(|prompt| &prompt.turns)
        .map(|turn| turn.iter().copied().map(act).collect())
        .collect();
    let script: Vec<&[Act]> = script.iter().map(Vec::as_slice).collect();
    let answers: Vec<Answer> = answers.iter().copied().map(answer).collect();
    let world = World::new(&script).answering(&answers);
    let (session, mut seen) = world.session(room).await;

    let reader = tokio::spawn(async move {
        let mut shown = Vec::new();
        while let Some(item) = seen.recv().await {
            tokio::time::sleep(Duration::from_millis(pace)).await;
            shown.push(item);
            shown.extend(drain(&mut seen));
        }
        shown
    });
    let mut tickets = Vec::new();
    for prompt in prompts {
        let cancel = CancellationToken::new();
        tickets.push(start(&session, "go", cancel.clone()));
        let after = Duration::from_millis(prompt.cancel_after.unwrap_or(20_000));
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            cancel.cancel();
        });
    }
    let mut outcomes = Vec::new();
    for ticket in tickets {
        let result = tokio::time::timeout(LONGEST * 10, ticket.result()).await;
        let result = result.map_err(|_| "a prompt never ended".to_owned())?;
        outcomes.push(result.map_err(|error| error.to_string())?.outcome);
    }
    if *world.puppet.alive.lock().unwrap() > 0 || *world.person.open.lock().unwrap() > 0 {
        return Err("something is left running".to_owned());
    }
    let id = session.id().clone();
    drop(session);
    let events = live(&reader.await.map_err(|error| error.to_string())?);

    let stored = world
        .store
        .loops(&id, 0)
        .await
        .map_err(|error| error.to_string())?;
    if stored.len() != prompts.len() {
        return Err(format!("{} prompts, {} loops", prompts.len(), stored.len()));
    }
    let mut history = Vec::new();
    for (record, outcome) in stored.iter().zip(&outcomes) {
        let shown: Vec<_> = events
            .iter()
            .filter(|event| event.loop_id == record.loop_id)
            .cloned()
            .collect();
        oracle::check(&shown)?;
        oracle::check_stored(&record.events)?;
        if record.status != LoopStatus::Completed || record.outcome.as_ref() != Some(outcome) {
            return Err(format!("told {outcome:?}, stored {:?}", record.outcome));
        }
        let kept: Vec<_> = shown
            .into_iter()
            .filter(|event| {
                let kind = &event.kind;
                !matches!(
                    kind,
                    EventKind::Delta { .. } | EventKind::ToolExecutionOutput { .. }
                )
            })
            .collect();
        if kept != record.events {
            return Err("what was shown is not what was stored".to_owned());
        }
        if record.on_chain {
            history.extend(record.messages.iter().cloned());
        }
        let ends_at_once = outcome == &Outcome::Stopped(TurnStop::Cancelled);
        if !ends_at_once && record.turns.is_empty() {
            return Err("a prompt without a turn".to_owned());
        }
    }
    oracle::check_history(&history)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // proves: LOOP-82, R1, R2, R5, D-16, UP-30
    #[test]
    fn every_random_world_ends_with_what_was_shown_stored_and_told_in_agreement(
        prompts in prop::collection::vec(planned(), 1..4),
        answers in prop::collection::vec(any::<u8>(), 0..6),
        room in 1..12usize,
        pace in 0..5u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let ended = runtime.block_on(simulate(&prompts, &answers, room, pace));
        prop_assert_eq!(ended, Ok(()));
    }
}
