//! Runs random sessions with everything that spends tokens: prompts, reruns, branches, evaluations,
//! summaries, parallel sub-agents, frames, retries, interjections and cancels.

use crate::{
    blocking_store::ClockHoldingStore,
    evidence::{Evidence, PromptFigures, ReportFigures},
    fixture::World,
    toy::ToyStep,
    usage_laws::broken_laws,
};
use futures_util::future::BoxFuture;
use proptest::{prelude::*, test_runner::TestRunner};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_engine::{
    Content, ContinuationKind, HookRequest, HookSet, HookVerdict, LoopStatus, Outcome, TurnStop,
    Usage,
};
use turnery_models::ModelName;
use turnery_sdk::{
    CancellationToken, HookCx, Hooks, ObservedEvent, PromptError, PromptHandle, PromptOptions,
    SelectionStrategy, Session, usage::source,
};
use turnery_store::SqliteStore;

/// One call of a model.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedCall {
    pub(crate) retries: u32,
    pub(crate) spends: Option<Usage>,
    /// How the response ends.
    pub(crate) end: u8,
}

/// Next action on the session.
#[derive(Clone, Debug)]
pub(crate) enum RunAction {
    Say,
    /// A prompt rejected by an input filter.
    Refused,
    /// Index of the loop to rerun.
    Rerun(usize),
    Branch(usize),
    Compact,
    Try(SelectionStrategy),
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) what: RunAction,
    pub(crate) uses_second_model: bool,
    /// Time after which the step's prompt is cancelled, if it still runs. Unit: milliseconds. Models and
    /// tools act in steps of ten, so that no cancel coincides with a response.
    pub(crate) patience: u64,
    /// Time of an interjection; a follow-up if even. Unit: tens of milliseconds.
    pub(crate) interjection: Option<u64>,
}

impl ScriptedCall {
    fn acts(&self) -> Vec<ToyStep> {
        let mut acts: Vec<ToyStep> = (1..=self.retries).map(ToyStep::Retry).collect();
        acts.push(ToyStep::Pause(Duration::from_millis(10)));
        acts.extend(self.spends.map(ToyStep::Spend));
        match self.end {
            // A judge's reply that contains a choice.
            0..=3 => acts.push(ToyStep::Say("2, I think")),
            4 => acts.push(ToyStep::Say("no choice")),
            5..=6 => acts.push(ToyStep::Call("c", "look")),
            7 => acts.push(ToyStep::Call("c", "fail")),
            8..=10 => acts.extend([ToyStep::Call("c", "task"), ToyStep::Call("d", "task")]),
            11 => acts.extend([ToyStep::Call("c", "hire"), ToyStep::Call("d", "look")]),
            12 => acts.push(ToyStep::Call("c", "switch")),
            13 => acts.push(ToyStep::Fail),
            14 => acts.push(ToyStep::Refuse),
            15 => acts.push(ToyStep::Call("c", "hang")),
            _ => acts.push(ToyStep::Hang),
        }
        acts
    }
}

fn any_answer() -> impl Strategy<Value = ScriptedCall> {
    let most = 20_000u64;
    let usage = (0..most, 0..most, 0..2 * most, 0..most, 0..most);
    let usage = usage.prop_map(
        |(input, output, reasoning, cache_read, cache_write)| Usage {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
        },
    );
    let retries = prop_oneof![4 => Just(0), 1 => 1..3u32];
    let spends = prop_oneof![1 => Just(None), 7 => usage.prop_map(Some)];
    (retries, spends, 0..17u8).prop_map(|(retries, spends, end)| ScriptedCall {
        retries,
        spends,
        end,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        6 => Just(RunAction::Say),
        1 => Just(RunAction::Refused),
        2 => (0..100usize).prop_map(RunAction::Rerun),
        2 => (0..100usize).prop_map(RunAction::Branch),
        1 => Just(RunAction::Compact),
        1 => Just(RunAction::Try(SelectionStrategy::FewestTokens)),
        1 => Just(RunAction::Try(SelectionStrategy::MostTokens)),
        3 => Just(RunAction::Try(SelectionStrategy::Judge(None))),
    ];
    let patience = prop_oneof![1 => 0..40u64, 3 => 1000..3000u64];
    let interjection = prop::option::of(0..20u64);
    (what, any::<bool>(), patience, interjection).prop_map(
        |(what, uses_second_model, patience, interjection)| Step {
            what,
            uses_second_model,
            patience: 10 * patience + 5,
            interjection,
        },
    )
}

/// Input long enough to be worth a summary.
fn long_input() -> Vec<Content> {
    vec![Content::text("so many words ".repeat(200))]
}

/// Input filter that rejects everything.
struct RejectInput;

impl Hooks for RejectInput {
    fn hook_set(&self) -> HookSet {
        HookSet {
            input: true,
            ..HookSet::default()
        }
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, _: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async { HookVerdict::Stop("no".to_owned()) })
    }
}

async fn start_step(
    session: &Session,
    what: RunAction,
    mut options: PromptOptions,
) -> PromptHandle {
    let loops = session.records().await.unwrap();
    let which = |place: usize| {
        let place = place.checked_rem(loops.len())?;
        Some(loops[place].loop_id.clone())
    };
    let ticket = match what {
        RunAction::Say => session.prompt(long_input(), options),
        RunAction::Refused => {
            options.hooks.push(Arc::new(RejectInput));
            session.prompt(long_input(), options)
        }
        RunAction::Rerun(place) => session.rerun(which(place), options),
        RunAction::Branch(place) => match which(place) {
            Some(from) => session.branch(from, long_input(), options),
            None => session.prompt(long_input(), options),
        },
        RunAction::Compact => session.compact(options),
        RunAction::Try(strategy) => {
            let both = ["toy/one", "toy/two"].map(|it| it.parse::<ModelName>().unwrap().into());
            session.evaluate(long_input(), both.to_vec(), strategy, options)
        }
    };
    ticket.unwrap()
}

/// Interjects into the prompt that runs then, if any.
fn interject_later(session: &Session, interjection: u64) {
    let session = session.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(10 * interjection + 7)).await;
        let content = vec![Content::text("one thing more")];
        let _too_late = match interjection % 2 {
            0 => session.follow_up(content),
            _ => session.steer(content),
        };
    });
}

/// Runs a session from its first prompt until it is closed.
pub(crate) async fn run_session(
    one: &[ScriptedCall],
    two: &[ScriptedCall],
    steps: &[Step],
) -> Evidence {
    let folder = tempfile::tempdir().unwrap();
    let store = ClockHoldingStore::new(SqliteStore::open(folder.path().join("sessions.db")));
    let script = |answers: &[ScriptedCall]| answers.iter().map(ScriptedCall::acts).collect();
    let world = World::with_small_context(Arc::new(store), script(one), script(two));
    let session = world.session().await;
    let mut observer = session.observe(None);
    let observed = tokio::spawn(async move {
        let mut shown = Vec::new();
        while let Some(observed) = observer.next().await {
            match observed {
                ObservedEvent::Activity(activity) => shown.push(activity),
                ObservedEvent::Committed { .. }
                | ObservedEvent::CandidatesStarted { .. }
                | ObservedEvent::WinnerSelected { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        shown
    });
    let (mut prompts, mut reports) = (Vec::new(), Vec::new());
    for any_step in steps {
        let model = ["toy/one", "toy/two"][usize::from(any_step.uses_second_model)];
        session.set_model(model).await.unwrap();
        let cancel = CancellationToken::new();
        let options = PromptOptions::cancelled_by(cancel.clone());
        let ticket = start_step(&session, any_step.what.clone(), options).await;
        if let Some(interjection) = any_step.interjection {
            interject_later(&session, interjection);
        }
        tokio::time::sleep(Duration::from_millis(any_step.patience)).await;
        cancel.cancel();
        match ticket.result().await {
            Ok(result) => prompts.push(PromptFigures::from(result)),
            Err(PromptError::Continue(_)) => {}
            Err(error) => panic!("{error}"),
        }
        reports.push(ReportFigures::from(&session.usage_report().await.unwrap()));
    }
    let root = session.id().clone();
    session.close().await;
    drop(session);
    let shown = observed.await.unwrap();
    // Abandoned sub-agents have ended long before.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let again = world.open(&root).await;
    reports.push(ReportFigures::from(&again.usage_report().await.unwrap()));
    Evidence::gather(&world, root, prompts, shown, reports).await
}

pub(crate) fn on_paused_clock<R>(life: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(life)
}

/// Lists which of the possible events happened in a session.
pub(crate) fn happened(life: &Evidence) -> Vec<&'static str> {
    let root = &life.root().records;
    let kinds = |kind| root.iter().any(|record| record.continuation_kind == kind);
    let outcome = |wanted: fn(&Outcome) -> bool| {
        let outcomes = root.iter().filter_map(|record| record.outcome.as_ref());
        outcomes.filter(|outcome| wanted(outcome)).count() > 0
    };
    let cancelled = |it: &Outcome| *it == Outcome::Stopped(TurnStop::Cancelled);
    let spent = |purpose| {
        let mut answered = life.answered.iter();
        answered.any(|it| it.source == purpose && it.usage.unwrap_or_default().total() > 0)
    };
    let depth = |wanted: usize| {
        life.sessions.values().any(|stored| {
            let mut above = 0;
            let mut parent = stored.spawned_by.as_ref();
            while let Some(id) = parent {
                above += 1;
                parent = life.sessions[id].spawned_by.as_ref();
            }
            above >= wanted
        })
    };
    let partly_paid = root.iter().any(|record| {
        record.outcome == Some(Outcome::Stopped(TurnStop::Cancelled)) && record.usage.total() > 0
    });
    let of_loser = root.iter().any(|record| {
        let group = record.parallel_group.as_ref();
        group.is_some_and(|group| !group.is_selected) && !record.children_usage.is_empty()
    });
    let events = [
        ("a rerun", kinds(ContinuationKind::Rerun)),
        ("a branch", kinds(ContinuationKind::Branch)),
        ("a compaction", kinds(ContinuationKind::Compaction)),
        ("a cancel", outcome(cancelled)),
        ("a cancel after some turns", partly_paid),
        (
            "a frame",
            outcome(|it| matches!(it, Outcome::FrameSwitch { .. })),
        ),
        (
            "a refusal",
            root.iter().any(|it| it.status == LoopStatus::Rejected),
        ),
        ("a retry", root.iter().any(|it| !it.attempts.is_empty())),
        ("a judge", spent(source::EVALUATION)),
        ("a summary", spent(source::COMPACTION)),
        (
            "a summary that is taken",
            root.iter().any(|it| it.compaction_block.is_some()),
        ),
        ("a child", depth(1)),
        ("a child's child", depth(2)),
        ("a child of a candidate that lost", of_loser),
        ("a hired child", life.hired.total() > 0),
        ("more loops than prompts", root.len() > life.prompts.len()),
    ];
    let events = events.into_iter().filter(|(_, happened)| *happened);
    events.map(|(what, _)| what).collect()
}

// proves: LASH-98, LASH-100, LASH-101, LASH-102, LASH-103, LASH-104, LASH-105, I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13
// proves: LASH-99, TURN-1, TURN-11
#[test]
fn random_sessions_keep_all_usage_laws() {
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let answers = || prop::collection::vec(any_answer(), 8..40);
    let lives = (
        answers(),
        answers(),
        prop::collection::vec(any_step(), 2..9),
    );
    let seen: Mutex<BTreeMap<&str, usize>> = Mutex::default();
    let ended = TestRunner::new(config).run(&lives, |(one, two, steps)| {
        let life = on_paused_clock(run_session(&one, &two, &steps));
        for what in happened(&life) {
            *seen.lock().unwrap().entry(what).or_default() += 1;
        }
        prop_assert_eq!(broken_laws(&life), []);
        Ok(())
    });
    let seen = seen.into_inner().unwrap();
    if let Err(found) = ended {
        panic!("{found}");
    }
    // The full session of the mutation tests contains all of them.
    assert!(seen.len() > 10, "not much has happened: {seen:?}");
}
