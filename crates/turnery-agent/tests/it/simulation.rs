//! Simulates the session task in random worlds: model output, tool behavior, answers, interjections, hooks,
//! context size, client speed and cancels. Time is virtual, the seed is proptest's.

use crate::fixture::{EmbeddingFixture, ModelAct, check_random, drain, live_events};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use std::{
    collections::VecDeque,
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_agent::{
    CancellationToken, HookCx, Hooks, PermissionAnswer, PromptOptions, PromptResult, Session,
};
use turnery_engine::{
    Content, Event, EventKind, HookRequest, HookSet, HookVerdict, LoopRecord, LoopStatus, Message,
    Outcome, TurnStop,
    context::{ContextView, loop_chain},
    oracle, recover_interrupted_loops,
};

/// One prompt of a simulated session.
#[derive(Clone, Debug)]
struct PromptPlan {
    turns: Vec<Vec<u8>>,
    cancel_after: Option<u64>,
    /// Times of interjections; a follow-up if odd. Unit: milliseconds.
    interjections: Vec<u64>,
}

/// The world around the prompts.
#[derive(Clone, Debug)]
struct SimulatedEnv {
    answers: Vec<u8>,
    /// Verdicts of the hooks in order; `None` without hooks.
    hooks: Option<Vec<u8>>,
    /// Context usage at which it is compacted. Unit: percent.
    compact_at: u8,
    /// Number of items that the client takes before it must be read, and how long it reads one.
    capacity: usize,
    read_delay: u64,
}

fn model_act(what: u8) -> ModelAct {
    match what % 14 {
        0..=3 => ModelAct::Say("text"),
        4 => ModelAct::Call("c", "look"),
        5 => ModelAct::Call("c", "ring"),
        6 => ModelAct::Call("c", "hang"),
        7 => ModelAct::Call("c", "stubborn"),
        8 => ModelAct::Fail,
        9 | 10 => ModelAct::Call("c", "meet"),
        11 => ModelAct::Call("c", "switch"),
        12 => ModelAct::Call("c", "spend"),
        _ => ModelAct::Pause(Duration::from_millis(7)),
    }
}

fn permission_answer(what: u8) -> PermissionAnswer {
    match what % 4 {
        0 => PermissionAnswer::Selected("allow_once".to_owned()),
        1 => PermissionAnswer::Selected("reject_always".to_owned()),
        2 => PermissionAnswer::NoAnswer("no".to_owned()),
        _ => PermissionAnswer::Cancelled,
    }
}

fn any_prompt() -> impl Strategy<Value = PromptPlan> {
    let turn = prop::collection::vec(any::<u8>(), 0..6);
    let turns = prop::collection::vec(turn, 1..4);
    let interjections = prop::collection::vec(0..30u64, 0..3);
    // Half of the prompts are cancelled at once or soon; all others in the end, since a tool may hang.
    (turns, prop::option::of(0..40u64), interjections).prop_map(
        |(turns, cancel_after, interjections)| PromptPlan {
            turns,
            cancel_after,
            interjections,
        },
    )
}

fn any_env() -> impl Strategy<Value = SimulatedEnv> {
    (
        prop::collection::vec(any::<u8>(), 0..6),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..12)),
        prop_oneof![Just(0), 15..40u8],
        1..12usize,
        0..5u64,
    )
        .prop_map(
            |(answers, hooks, compact_at, capacity, read_delay)| SimulatedEnv {
                answers,
                hooks,
                compact_at,
                capacity,
                read_delay,
            },
        )
}

/// Hooks for every request, with random verdicts first and then approval.
struct RandomHooks(Mutex<VecDeque<u8>>);

impl Hooks for RandomHooks {
    fn hook_set(&self) -> HookSet {
        HookSet {
            input: true,
            before_turn: true,
            after_turn: true,
            before_tool: true,
            after_tool: true,
            compaction: true,
            on_error: true,
            checkpoint: true,
        }
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        let what = self.0.lock().unwrap().pop_front().unwrap_or_default();
        Box::pin(async move {
            match what % 16 {
                8 | 9 => HookVerdict::Warn("careful".to_owned()),
                10 => HookVerdict::Stop("no".to_owned()),
                // Only once, or the prompt would never end.
                11 if *hook == HookRequest::Checkpoint => {
                    HookVerdict::Inject(vec![Content::text("and the rest?")])
                }
                12 => panic!("whim"),
                13 => pending().await,
                14 => {
                    tokio::time::sleep(Duration::from_millis(9)).await;
                    HookVerdict::Continue
                }
                _ => ready(HookVerdict::Continue).await,
            }
        })
    }
}

/// Maximum duration of any prompt.
const MAX_PROMPT_TIME: Duration = Duration::from_secs(300);

/// Interjects into the prompt that runs then. Accepted interjections are added to `interjected`.
fn interject_later(
    session: &Session,
    number: usize,
    at: u64,
    interjected: &Arc<Mutex<Vec<String>>>,
) {
    let (session, interjected) = (session.clone(), Arc::clone(interjected));
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(at)).await;
        let text = format!("text {number}");
        let content = vec![Content::text(&*text)];
        let accepted = match at % 2 {
            0 => session.steer(content),
            _ => session.follow_up(content),
        };
        if accepted.is_ok() {
            interjected.lock().unwrap().push(text);
        }
    });
}

async fn simulate(prompts: &[PromptPlan], around: &SimulatedEnv) -> Result<(), String> {
    let script: Vec<Vec<ModelAct>> = prompts
        .iter()
        .flat_map(|prompt| &prompt.turns)
        .map(|turn| turn.iter().copied().map(model_act).collect())
        .collect();
    let script: Vec<&[ModelAct]> = script.iter().map(Vec::as_slice).collect();
    let answers: Vec<PermissionAnswer> = around
        .answers
        .iter()
        .copied()
        .map(permission_answer)
        .collect();
    let world = EmbeddingFixture::with_settings(&script, |settings| {
        settings.compact_at = around.compact_at;
        if let Some(whims) = &around.hooks {
            let whims = RandomHooks(Mutex::new(whims.iter().copied().collect()));
            settings.hooks.push(Arc::new(whims));
        }
    })
    .with_answers(&answers);
    let (session, mut seen) = world.session(around.capacity).await;

    let read_delay = Duration::from_millis(around.read_delay);
    let reader = tokio::spawn(async move {
        let mut shown = Vec::new();
        while let Some(item) = seen.recv().await {
            tokio::time::sleep(read_delay).await;
            shown.push(item);
            shown.extend(drain(&mut seen));
        }
        shown
    });
    let interjected: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut tickets = Vec::new();
    let mut spoken = 0;
    for prompt in prompts {
        let cancel = CancellationToken::new();
        let options = PromptOptions::cancelled_by(cancel.clone());
        let ticket = session.prompt(vec![Content::text("go")], options);
        tickets.push(ticket.map_err(|error| error.to_string())?);
        let after = Duration::from_millis(prompt.cancel_after.unwrap_or(20_000));
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            cancel.cancel();
        });
        for at in &prompt.interjections {
            spoken += 1;
            interject_later(&session, spoken, *at, &interjected);
        }
    }
    let mut results = Vec::new();
    for ticket in tickets {
        let result = tokio::time::timeout(MAX_PROMPT_TIME, ticket.result()).await;
        let result = result.map_err(|_| "a prompt never ended".to_owned())?;
        results.push(result.map_err(|error| error.to_string())?);
    }
    let id = session.id().clone();
    session.close().await;
    drop(session);
    if *world.model.active_calls.lock().unwrap() > 0
        || *world.client.open_questions.lock().unwrap() > 0
    {
        return Err("something is left running".to_owned());
    }
    let shown = reader.await.map_err(|error| error.to_string())?;
    let loops = world.store.loops(&id, 0).await;
    let loops = loops.map_err(|error| error.to_string())?;
    let events = live_events(&shown);
    for record in &loops {
        check_record(record, &events)?;
    }
    for result in &results {
        check_result(result, &loops)?;
    }
    let interjected = interjected.lock().unwrap().clone();
    check_interjections(&interjected, &loops)?;

    let tip = world.store.info(&id).await.map_err(|it| it.to_string())?;
    let view = ContextView::from_chain(&loop_chain(&loops, tip.tip_loop_id.as_ref()));
    oracle::check_history(view.messages())
}

/// Checks that the events shown of a loop agree with its record, and that both follow the rules.
fn check_record(record: &LoopRecord, events: &[Event]) -> Result<(), String> {
    let shown = events
        .iter()
        .filter(|event| event.loop_id == record.loop_id);
    let shown: Vec<Event> = shown.cloned().collect();
    oracle::check_live(&shown)?;
    oracle::check_stored(&record.events)?;
    // A crash may come anywhere.
    for until in 1..record.events.len() {
        let cut = recover_interrupted_loops(&[&record.events[..until]]).pop();
        oracle::check_record(&cut.ok_or("no record of an interrupted loop")?)?;
    }
    let kept = shown.into_iter().filter(|event| {
        let kind = &event.kind;
        !matches!(
            kind,
            EventKind::Delta { .. } | EventKind::ToolExecutionOutput { .. }
        )
    });
    if !kept.eq(record.events.iter().cloned()) {
        return Err("what was shown is not what was stored".to_owned());
    }
    Ok(())
}

/// Checks that the result of a prompt agrees with the record of its loops.
fn check_result(result: &PromptResult, loops: &[Arc<LoopRecord>]) -> Result<(), String> {
    let Some(last) = result.loops.last() else {
        return Err("a prompt without a loop".to_owned());
    };
    if !result.loops.iter().all(|record| loops.contains(record)) {
        return Err("a loop that was told of is not stored".to_owned());
    }
    let (before, _) = result.loops.split_at(result.loops.len() - 1);
    let switches =
        |record: &Arc<LoopRecord>| matches!(record.outcome, Some(Outcome::FrameSwitch { .. }));
    if !before.iter().all(switches) || switches(last) {
        return Err(format!("a prompt ended with {:?}", last.outcome));
    }
    let rejected = matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::InvalidInput { .. })
    );
    let status = match rejected {
        true => LoopStatus::Rejected,
        false => LoopStatus::Completed,
    };
    if last.outcome.as_ref() != Some(&result.outcome) || last.status != status {
        return Err(format!("told {:?}, stored {last:?}", result.outcome));
    }
    let turned_away = matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::Cancelled | TurnStop::PluginAbort { .. })
    );
    if last.turns.is_empty() && !rejected && !turned_away {
        return Err("a prompt without a turn".to_owned());
    }
    Ok(())
}

/// Checks that no interjection is lost or duplicated: each is in one loop, or was rejected by an input
/// filter.
fn check_interjections(interjected: &[String], loops: &[Arc<LoopRecord>]) -> Result<(), String> {
    let messages = loops.iter().flat_map(|record| &record.messages);
    let heard: Vec<&str> = messages
        .filter_map(|message| match &message.message {
            Message::User { content } => content.first()?.as_text(),
            Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        })
        .collect();
    let events = loops.iter().flat_map(|record| &record.events);
    let refused = events.filter(|event| matches!(event.kind, EventKind::InputRejected { .. }));
    let mut missing = 0;
    for text in interjected {
        match heard.iter().filter(|heard| *heard == text).count() {
            0 => missing += 1,
            1 => {}
            _ => return Err(format!("{text} was heard twice")),
        }
    }
    // A prompt that began with its cancel has interjected nothing either; its words are its own.
    let unsaid = loops.iter().filter(|record| record.messages.is_empty());
    match missing <= refused.count() + unsaid.count() {
        true => Ok(()),
        false => Err(format!("{missing} words were lost")),
    }
}

// proves: LOOP-82, R1, R2, R5, D-16, UP-30, LASH-13, LOOP-79, LOOP-52
#[test]
pub(crate) fn random_runs_agree_on_shown_and_stored() {
    let worlds = (prop::collection::vec(any_prompt(), 1..4), any_env());
    check_random(300, worlds, async |(prompts, around)| {
        prop_assert_eq!(simulate(&prompts, &around).await, Ok(()));
        Ok(())
    });
}
